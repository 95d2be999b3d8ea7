"""P05: variants must differ only in what is compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbdyno.experiment.quantities import is_equal, number
from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

Values = Mapping[str, tuple[str, int]]
# Settings of the same thing under an older and a newer name: what the older ones amount to.
_REDO = ("innodb_log_file_size", "innodb_log_files_in_group", "innodb_redo_log_capacity")
_FILES_DEFAULT = 2
_SHOWN_MAX = 5
# With more differences than this the blocks are of different things, such as a primary and a replica.
_DIFFERENCES_MAX = 12


@dataclass(frozen=True)
class _Difference:
    name: str
    first: str
    second: str
    indexes: tuple[int, ...]


def find(reading: Reading) -> Iterator[Finding]:
    """Compares the configuration files of a document, renamed settings by what they amount to.

    Catches a second difference. A published benchmark says that both servers have been configured alike as
    far as possible; one has 512 MB of redo log and the other 1 GB.
    """
    blocks = [block for block in reading.settings if not (block.is_shown or block.is_inline)]
    named = _named(reading)
    for before, after in itertools.pairwise(blocks):
        differences = list(_differences(before.values, after.values))
        others = differences[1:] if len(differences) > 1 else []
        is_named = {one.name for one in differences} <= named
        is_redo = [one for one in differences if one.name == "redo log"]
        if (not others and not is_redo) or is_named or len(differences) > _DIFFERENCES_MAX:
            continue
        listed = "; ".join(f"{one.name}: {one.first}, {one.second}" for one in differences[:_SHOWN_MAX])
        yield finding(
            reading,
            "P05",
            "warn",
            compose("the two configurations differ in {listed}", listed=listed),
            [index for one in differences for index in one.indexes],
            fix=compose("Change one setting at a time, or run all combinations"),
        )


def _named(reading: Reading) -> set[str]:
    """The settings that name the variants."""
    return {part.split(" = ")[0] for one in reading.series for part in one.label.split(", ") if " = " in part}


def _differences(before: Values, after: Values) -> Iterator[_Difference]:
    first, second = _redo_bytes(before), _redo_bytes(after)
    if first and second and first != second:
        indexes = tuple(values[name][1] for values in (before, after) for name in _REDO if name in values)
        yield _Difference(
            "redo log", f"{first / (1 << 20):,.0f} MiB", f"{second / (1 << 20):,.0f} MiB", indexes
        )
    for name in sorted(before.keys() & after.keys() - set(_REDO)):
        if not is_equal(name, before[name][0], after[name][0]):
            yield _Difference(name, before[name][0], after[name][0], (before[name][1], after[name][1]))
    for name in sorted(before.keys() ^ after.keys() - set(_REDO)):
        values = before if name in before else after
        texts = (before[name][0] if name in before else "–", after[name][0] if name in after else "–")
        yield _Difference(name, *texts, (values[name][1],))


def _redo_bytes(values: Values) -> int | None:
    """The size of the redo log by either name; None if the file does not set it."""
    if "innodb_redo_log_capacity" in values:
        size = number(values["innodb_redo_log_capacity"][0])
        return int(size) if size is not None else None
    if "innodb_log_file_size" not in values:
        return None
    size = number(values["innodb_log_file_size"][0])
    files = number(values.get("innodb_log_files_in_group", (str(_FILES_DEFAULT), 0))[0])
    return int(size * files) if size is not None and files is not None else None


CHECK = DocumentCheck("P05", find)
