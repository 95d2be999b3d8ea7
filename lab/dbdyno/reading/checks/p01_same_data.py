"""P01: prepare, run and cleanup must name the same tables and the same server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import get_args

from dbdyno.experiment.oltp_name import OltpName
from dbdyno.finding import Finding
from dbdyno.reading.call import Call, whole_number
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose, join

# Options that say which data: sizes, and where they are. Threads, time and the test may differ.
_SIZES = ("tables", "table-size", "oltp-tables-count", "oltp-table-size", "scale")
_DEFAULTS = {"mysql-port": "3306", "pgsql-port": "5432", "mysql-db": "sbtest", "pgsql-db": "sbtest"}
_ROWS = ("table-size", "oltp-table-size")
_SIZE_DEFAULTS = {"tables": "1", "table-size": "10000"}
# A command that a document has cut.
_CUT = re.compile(r"\.\.|…")
_PLACE = ("host", "port", "socket", "db")
# A value that the document does not tell.
_UNKNOWN = linear(r"[$<>{}*]|xx", re.IGNORECASE)


def find(reading: Reading) -> Iterator[Finding]:
    """Compares the options of every run and cleanup with those of the prepare of the same server, or else of
    the prepare above it, with sysbench's defaults for what they leave out; and the prepares of all servers.

    Catches runs over rows that do not exist. A published benchmark loaded 100,000 rows per table and read
    uniformly among 1,000,000: nine of ten lookups found nothing.
    """
    # The last prepare of each place, with those of the same line: a loop or a branch decides between them.
    prepared: dict[tuple[str, ...], list[Call]] = {}
    last: Call | None = None
    seen: set[tuple[str, ...]] = set()
    for call in reading.calls:
        if call.phase == "prepare":
            other = None if last is None or last.tool != call.tool else last
            if other is not None and other.first != call.first and _place(other) != _place(call):
                yield from _between_servers(reading, other, call, seen)
            same = prepared.get(_place(call), [])
            prepared[_place(call)] = [*(one for one in same if one.first == call.first), call]
            last = call
            continue
        befores = prepared.get(_place(call), [last] if last is not None else [])
        if befores and call.tool == befores[-1].tool and call.phase in ("run", "cleanup"):
            before = min(befores, key=lambda one: len(list(_differences(one, call))))
            differences = list(_differences(before, call))
            key = (call.phase, *differences)
            if differences and key not in seen:
                seen.add(key)
                yield _finding(reading, before, call, differences)


def _place(call: Call) -> tuple[str, ...]:
    """The server and the database of a call."""
    parts = (
        (f"{call.driver}-{part}" for part in _PLACE)
        if call.tool == "sysbench"
        else ("host", "port", "dbname")
    )
    return (call.tool, call.driver, *(call.options.get(name, _DEFAULTS.get(name, "")) for name in parts))


def _between_servers(
    reading: Reading, one: Call, other: Call, seen: set[tuple[str, ...]]
) -> Iterator[Finding]:
    """The sizes that are not the same on two servers, of the same test."""
    if one.test != other.test:
        return
    differences = [text for text in _differences(one, other) if text.startswith(_SIZES)]
    key = ("prepare", *differences)
    if differences and key not in seen:
        seen.add(key)
        yield finding(
            reading,
            "P01",
            "stop",
            compose("the servers have different data: {differences}", differences=join("; ", differences)),
            (one.first, other.first),
            fix=compose("Take both from one definition, and count the rows before the first run"),
        )


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
    if call.phase != "run" or not loaded or not used or loaded == used:
        return ""
    if loaded > used:
        return compose(". The run uses {used:,} of {loaded:,} rows of each table", used=used, loaded=loaded)
    return compose(". Of uniform keys {percent:.3g} % name no row", percent=100 * (1 - loaded / used))


def _rows(call: Call) -> int | None:
    name = next((name for name in _ROWS if name in call.options), "table-size")
    text = _value(call, name)
    return None if text is None else whole_number(text)


def _value(call: Call, name: str) -> str | None:
    """The value of an option, or sysbench's default of it if the call is complete."""
    text = call.options.get(name, _DEFAULTS.get(name))
    is_complete = (
        call.tool == "sysbench"
        and call.test in get_args(OltpName)
        and "config-file" not in call.options
        and not call.unknown
        and not any(_CUT.search(text) for text in (*call.options, *call.options.values()))
    )
    return _SIZE_DEFAULTS.get(name) if text is None and is_complete else text


def _differences(prepared: Call, call: Call) -> Iterator[str]:
    names = [*_SIZES, *(f"{prepared.driver}-{part}" for part in _PLACE), "host", "port", "dbname"]
    for name in names:
        before, after = (_value(one, name) for one in (prepared, call))
        if not {name} & (prepared.options.keys() | call.options.keys()):
            continue
        if before == after or not before or (after and _UNKNOWN.search(before + after)):
            continue
        if after and whole_number(before) is not None and whole_number(before) == whole_number(after):
            # 1M is 1048576 for both.
            continue
        if after:
            is_default = name in _SIZES and name not in call.options
            yield compose(
                "{name} is {after}{default}, not {before}",
                name=name,
                before=before,
                after=after,
                default=compose(" (the default)") if is_default else "",
            )
        elif name not in _SIZES and name != "dbname":
            yield compose("{name} is missing, and prepare has {before}", name=name, before=before)


CHECK = DocumentCheck("P01", find)
