"""P01: prepare, run and cleanup must name the same tables and the same server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose, join

# Options that say which data: sizes, and where they are. Threads, time and the test may differ.
_SIZES = ("tables", "table-size", "oltp-tables-count", "oltp-table-size", "scale")
_DEFAULTS = {"mysql-port": "3306", "pgsql-port": "5432", "mysql-db": "sbtest", "pgsql-db": "sbtest"}
_PLACE = ("host", "port", "socket", "db")
# A value that the document does not tell.
_UNKNOWN = linear(r"[$<>{}*]|xx", re.IGNORECASE)


def find(reading: Reading) -> Iterator[Finding]:
    """Compares the options of every run and cleanup with those of the prepare above it.

    Catches runs over rows that do not exist. A published benchmark loaded 100,000 rows per table and read
    uniformly among 1,000,000: nine of ten lookups found nothing.
    """
    prepared: Call | None = None
    seen: set[tuple[str, ...]] = set()
    for call in reading.calls:
        if call.phase == "prepare":
            prepared = call
        elif prepared is not None and call.tool == prepared.tool and call.phase in ("run", "cleanup"):
            differences = list(_differences(prepared, call))
            key = (call.phase, *differences)
            if differences and key not in seen:
                seen.add(key)
                yield _finding(reading, prepared, call, differences)


def _finding(reading: Reading, prepared: Call, call: Call, differences: Sequence[str]) -> Finding:
    is_size = any(text.startswith(_SIZES) for text in differences)
    # An option that is missing may be in the environment or in a file.
    is_sure = any(" is missing, " not in text for text in differences)
    return finding(
        reading,
        "P01",
        "stop" if is_sure else "warn",
        compose(
            "{phase} differs from prepare: {differences}",
            phase=call.phase,
            differences=join("; ", differences),
        )
        + (_consequence(prepared, call) if is_size else ""),
        (prepared.first, call.first),
        fix=compose("Take both from one definition, and count the rows before the first run"),
    )


def _consequence(prepared: Call, call: Call) -> str:
    """What the difference does to the run."""
    loaded, used = _rows(prepared), _rows(call)
    if call.phase != "run" or not loaded or not used or loaded >= used:
        return ""
    return compose(". Of uniform keys {percent:.3g} % name no row", percent=100 * (1 - loaded / used))


def _rows(call: Call) -> int | None:
    return call.number("table-size", "oltp-table-size")


def _differences(prepared: Call, call: Call) -> Iterator[str]:
    names = [*_SIZES, *(f"{prepared.driver}-{part}" for part in _PLACE), "host", "port", "dbname"]
    for name in names:
        before, after = (one.options.get(name, _DEFAULTS.get(name)) for one in (prepared, call))
        if before == after or not before or (after and _UNKNOWN.search(before + after)):
            continue
        if after:
            yield compose("{name} is {after}, not {before}", name=name, before=before, after=after)
        elif name not in _SIZES and name != "dbname":
            yield compose("{name} is missing, and prepare has {before}", name=name, before=before)


CHECK = DocumentCheck("P01", find)
