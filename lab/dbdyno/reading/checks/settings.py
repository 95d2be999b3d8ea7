"""Whether the settings of the servers hold, differ in one thing only, and suit the data and the machine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.experiment.quantities import is_equal, number
from dbdyno.reading.attribution import Series
from dbdyno.reading.call import Call
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.claim import Claim
from dbdyno.reading.document import Document
from dbdyno.reading.limits import linear
from dbdyno.reading.result import Result
from dbdyno.reading.setting import Settings
from dbdyno.text import compose, join
from dbdyno.variables.differences import is_weaker

_CONFIRMED_MAX = 4
# Settings that say where the server is, not what it does.
_PLACES = linear(r"port|socket|pid|dir$|^user$|log_error|bind|server_id|listen|character|collation")


@check("P04")
def effective_values(
    results: Sequence[Result], settings: Sequence[Settings], claims: Sequence[Claim]
) -> Iterator[Mistake]:
    """Looks for settings of configuration files that no output of the server confirms.

    Catches files that the server did not read. A published benchmark mounts a my.cnf into a container and
    never reads a variable back; a server ignores a file that everybody can write.

    Rule: a setting in a file is a wish; the server must have been asked for its value.
    """
    shown = {name for block in settings if block.is_shown for name in block.values}
    files = [block for block in settings if not block.is_shown]
    missing = {
        name for block in files for name in block.values if name not in shown and not _PLACES.search(name)
    }
    if not missing or not (results or claims):
        return
    names = ", ".join(sorted(missing)[:_CONFIRMED_MAX]) + (" …" if len(missing) > _CONFIRMED_MAX else "")
    yield Mistake(
        "warn",
        compose("no output of the server confirms {names}", names=names),
        (block.first for block in files),
        fix=compose("Show SHOW VARIABLES, or pg_settings, of every variant"),
    )


_Values = Mapping[str, tuple[str, int]]
# Settings of the same thing under an older and a newer name: what the older ones amount to.
_REDO = ("innodb_log_file_size", "innodb_log_files_in_group", "innodb_redo_log_capacity")
_FILES_DEFAULT = 2
_DIFFERENCES_SHOWN_MAX = 5
# With more differences than this the blocks are of different things, such as a primary and a replica.
_DIFFERENCES_MAX = 12


@dataclass(frozen=True)
class _Difference:
    name: str
    first: str
    second: str
    indexes: tuple[int, ...]


@check("P05")
def second_difference(settings: Sequence[Settings], series: Sequence[Series]) -> Iterator[Mistake]:
    """Compares the configuration files of a document, renamed settings by what they amount to.

    Catches a second difference. A published benchmark says that both servers have been configured alike as
    far as possible; one has 512 MB of redo log and the other 1 GB.

    Rule: variants must differ only in what is compared.
    """
    blocks = [block for block in settings if not (block.is_shown or block.is_inline)]
    named = _named(series)
    for before, after in itertools.pairwise(blocks):
        differences = list(_differences(before.values, after.values))
        others = differences[1:] if len(differences) > 1 else []
        is_named = {difference.name for difference in differences} <= named
        is_redo = [difference for difference in differences if difference.name == "redo log"]
        if (not others and not is_redo) or is_named or len(differences) > _DIFFERENCES_MAX:
            continue
        listed = "; ".join(
            f"{difference.name}: {difference.first}, {difference.second}"
            for difference in differences[:_DIFFERENCES_SHOWN_MAX]
        )
        yield Mistake(
            "warn",
            compose("the two configurations differ in {listed}", listed=listed),
            [index for difference in differences for index in difference.indexes],
            fix=compose("Change one setting at a time, or run all combinations"),
        )


def _named(series: Sequence[Series]) -> set[str]:
    """The settings that name the variants."""
    return {part.split(" = ")[0] for entry in series for part in entry.label.split(", ") if " = " in part}


def _differences(before: _Values, after: _Values) -> Iterator[_Difference]:
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


def _redo_bytes(values: _Values) -> int | None:
    """The size of the redo log by either name; None if the file does not set it."""
    if "innodb_redo_log_capacity" in values:
        size = number(values["innodb_redo_log_capacity"][0])
        return int(size) if size is not None else None
    if "innodb_log_file_size" not in values:
        return None
    size = number(values["innodb_log_file_size"][0])
    files = number(values.get("innodb_log_files_in_group", (str(_FILES_DEFAULT), 0))[0])
    return int(size * files) if size is not None and files is not None else None


@check("P06")
def durability(settings: Sequence[Settings]) -> Iterator[Mistake]:
    """Looks for settings under which a commit does not wait for the disk.

    Catches speed that was paid with transactions: such a variant is fast for another reason than the one that
    is compared.

    Rule: a server that may lose transactions is another one.
    """
    weak = {
        name: entry
        for block in settings
        for name, entry in block.values.items()
        if name != "transaction_isolation" and is_weaker(name, _values(block), "mysql")
    }
    if weak:
        yield Mistake(
            "warn",
            compose(
                "a crash loses committed transactions: {settings}",
                settings=join(", ", (f"{name} = {value}" for name, (value, _) in weak.items())),
            ),
            (index for _, index in weak.values()),
            fix=compose("Say so with every result"),
        )


def _values(block: Settings) -> dict[str, str]:
    """The values of a file, with a binary log, as MySQL 8.0 has one, unless the file says otherwise."""
    block_values = {name: value.strip("'\"") for name, (value, _) in block.values.items()}
    return {"log_bin": "ON", **block_values}


# A row of sbtest with its share of both indexes, in InnoDB's pages at 15/16 and after splits.
_ROW_BYTES = (220, 260)
_BORDERLINE = (0.8, 1.25)
_CACHES = ("innodb_buffer_pool_size", "shared_buffers")
_GIB = 1 << 30


@check("P14")
def cache(calls: Sequence[Call], settings: Sequence[Settings]) -> Iterator[Mistake]:
    """Compares the size of sysbench's tables with that of the cache.

    Catches results that depend on a few per cent of cache. A published benchmark has 40 GB of data and a pool
    of 40 GB.

    Rule: whether the data fit into the server's cache decides what is measured.
    """
    call = next((entry for entry in calls if entry.tool == "sysbench" and entry.phase == "prepare"), None)
    cache_bytes = _cache_bytes(settings)
    if call is None or cache_bytes is None:
        return
    rows = (call.number("tables", "oltp-tables-count") or 1) * (
        call.number("table-size", "oltp-table-size") or 10_000
    )
    low, high = (rows * size for size in _ROW_BYTES)
    size, index = cache_bytes
    values = {"low": low / _GIB, "high": high / _GIB, "cache": size / _GIB}
    if high < _BORDERLINE[0] * size:
        text = compose(
            "about {low:.3g} to {high:.3g} GiB of data fit into {cache:.3g} GiB of cache: nothing is read "
            "from disk",
            **values,
        )
        yield Mistake("note", text, (call.first, index))
    elif low <= _BORDERLINE[1] * size:
        text = compose(
            "about {low:.3g} to {high:.3g} GiB of data are about as large as the cache ({cache:.3g} GiB), "
            "so small differences of the "
            "cache change the result",
            **values,
        )
        yield Mistake(
            "warn",
            text,
            (call.first, index),
            fix=compose("Choose data of half or of twice the cache"),
        )


def _cache_bytes(settings: Sequence[Settings]) -> tuple[float, int] | None:
    """The size of the server's cache in the first settings that have it, and the line."""
    sizes = (
        (float(number(block.values[name][0]) or 0.0), block.values[name][1])
        for block in settings
        for name in _CACHES
        if name in block.values
    )
    return next((size for size in sizes if size[0]), None)


_PLATFORM = linear(r"(?:--platform[= ]|\bplatform:\s*)[\"']?(linux/\w+)")
_MEMORY = linear(r"(?:--memory[= ]|(?<!\S)-m |\bmem_limit:\s*)[\"']?(\d+(?:\.\d+)?[kmg])b?\b", re.IGNORECASE)
_CONTAINER = linear(r"\b(?:docker|podman|nerdctl) run\b|\bmem_limit:", re.IGNORECASE)
# Above this share of the limit the server has too little memory for everything but its cache.
_SHARE_MAX = 0.8


@check("P19")
def containers(document: Document, settings: Sequence[Settings]) -> Iterator[Mistake]:
    """Looks at the platform and the memory of containers.

    Catches figures of an emulated server. A published benchmark starts its server with --platform linux/amd64
    and does not say on which processor.

    Rule: a container may be emulated, and may have less memory than the server is set to use.
    """
    for index, text in document.lines():
        if match := _PLATFORM.search(text):
            yield Mistake(
                "warn",
                compose(
                    "the container is made for {platform}: a machine with another processor emulates it, "
                    "several times slower",
                    platform=match[1],
                ),
                [index],
                fix=compose("Say which processor the machine has, and use an image for it"),
            )
            break
    limit = next(
        (
            (number(match[1].upper()), index)
            for index, text in document.lines()
            if _CONTAINER.search(text) and (match := _MEMORY.search(text))
        ),
        None,
    )
    cache_bytes = _cache_bytes(settings)
    if (
        limit is not None
        and limit[0]
        and cache_bytes is not None
        and cache_bytes[0] > _SHARE_MAX * float(limit[0])
    ):
        yield Mistake(
            "stop",
            compose(
                "the cache has {cache:.3g} GiB, and the container {limit:.3g} GiB of memory",
                cache=cache_bytes[0] / _GIB,
                limit=float(limit[0]) / _GIB,
            ),
            (limit[1], cache_bytes[1]),
            fix=compose("Give the container more memory, or the server a smaller cache"),
        )
