"""R02: a run that writes changes the data of the next one."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_WRITING = ("read_write", "write_only", "oltp_insert", "oltp_delete", "oltp_update", "tpcc")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for several loads of a writing test after one prepare.

    Catches later loads over other data than the first ones. In a published benchmark most ids did not exist,
    and each run inserted a part of them, so later runs found more rows.
    """
    runs = [
        call for call in reading.calls if call.phase == "run" and is_writing(call) and not call.is_alternative
    ]
    prepares = [call for call in reading.calls if call.phase == "prepare"]
    loads = {call.connections for call in runs} - {None} or set(reading.loads)
    if runs and len(prepares) == 1 and max(len(loads), len({one.connections for one in reading.results})) > 1:
        yield finding(
            reading,
            "R02",
            "warn",
            compose(
                "all loads write to the same tables, which are loaded once, so each one begins with the "
                "rows that those before it left"
            ),
            (prepares[0].first, runs[0].first),
            fix=compose("Load or restore the tables before every run, or vary the order"),
        )


def is_writing(call: Call) -> bool:
    """Whether a call's test changes rows."""
    if call.tool == "pgbench":
        return "select-only" not in call.options and call.test in ("", "tpcb-like", "simple-update")
    if call.options.get("oltp-read-only") == "on":
        return False
    return call.test == "oltp" or any(part in call.test for part in _WRITING)


CHECK = DocumentCheck("R02", find)
