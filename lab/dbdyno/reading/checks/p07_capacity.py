"""P07: the server's limits must suffice for the highest load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dbdyno.checks.limits import Capacity, Demand, server_capacities
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.limits import DESCRIBED_MAX
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.reading.statements import prepared_statements
from dbdyno.text import compose

# The limits of a server whose document does not set them (MySQL 5.7 to 9, MariaDB 10.6 to 12).
_DEFAULTS = {"max_prepared_stmt_count": "16382", "max_connections": "151"}
# Servers that speak MySQL's protocol and have other limits.
_FOREIGN = linear(r"tidb|oceanbase|seekdb|polardb|vitess|singlestore|doris|starrocks", re.IGNORECASE)
_ERROR = re.compile(r"1461.{0,200}max_prepared_stmt_count|max_prepared_stmt_count.{0,200}1461")


def find(reading: Reading) -> Iterator[Finding]:
    """Multiplies connections by the prepared statements of each, which sysbench keeps per table and kind.

    Catches loads that cannot have run as described. A published benchmark plans 500 connections with 46
    statements each; with the default limit 356 connections are possible.
    """
    is_foreign = any(_FOREIGN.search(text) for text in reading.document.texts)
    seen: set[tuple[str, str]] = set()
    highest_of: dict[str, int] = {}
    for call in reading.calls:
        if call.phase == "run":
            highest_of[call.test] = max(highest_of.get(call.test, 0), call.connections or 0)
    described: dict[tuple[str, ...], int | None] = {}
    declared = _declared(reading)
    # sysbench stops at a limit, so loads whose output is shown fitted.
    shown = {one.connections for one in reading.results if one.tool.startswith("sysbench")}
    for call in reading.calls:
        if call.tool != "sysbench" or call.phase != "run" or call.driver != "mysql" or is_foreign:
            continue
        highest = highest_of[call.test] or max(reading.loads, default=0)
        key = (call.test, call.options.get("tables", ""), call.options.get("skip-trx", "off"))
        if call.options.get("db-ps-mode") == "disable":
            statements: int | None = 0
        elif key in described:
            statements = described[key]
        elif len(described) < DESCRIBED_MAX:
            statements = described[key] = _count(call)
        else:
            _leave_out(reading, call)
            continue
        if not highest or statements is None:
            continue
        demand = Demand(highest, call.number("tables", "oltp-tables-count") or 1, statements)
        for capacity in server_capacities({**_DEFAULTS, **declared}, demand, {}, started=False):
            named = (call.test, capacity.limit_name)
            if (
                capacity.limit_name not in _DEFAULTS
                or capacity.required(highest) <= capacity.limit
                or named in seen
            ):
                continue
            if capacity.limit_name == "max_connections" and not (reading.settings or statements == 0):
                # Servers of clouds have other defaults.
                continue
            seen.add(named)
            if highest not in shown:
                yield _finding(reading, call, capacity, highest)
    yield from _reached(reading)


def _leave_out(reading: Reading, call: Call) -> None:
    text = compose(
        "the prepared statements of more than {limit} kinds of calls are not counted", limit=DESCRIBED_MAX
    )
    reading.document.left_out.add("described", reading.document.numbers[call.first], text)


def _reached(reading: Reading) -> Iterator[Finding]:
    """The error of a limit that was reached, if prepared statements were then switched off."""
    error = next((index for index, text in reading.document.lines() if _ERROR.search(text)), None)
    off = next((call for call in reading.calls if call.options.get("db-ps-mode") == "disable"), None)
    if error is not None and off is not None:
        yield finding(
            reading,
            "P07",
            "stop",
            compose(
                "max_prepared_stmt_count was reached, and prepared statements were switched off instead of "
                "raising it"
            ),
            (error, off.first),
            fix=compose(
                "Raise max_prepared_stmt_count: without prepared statements the server parses every statement"
            ),
        )


def _declared(reading: Reading) -> Mapping[str, str]:
    """The limits that the document shows."""
    return {
        name: value
        for block in reading.settings
        for name, (value, _) in block.values.items()
        if name in _DEFAULTS
    }


def _count(call: Call) -> int | None:
    try:
        return prepared_statements(call)
    except Problem:
        return None


def _finding(reading: Reading, call: Call, capacity: Capacity, highest: int) -> Finding:
    planned = reading.loads.get(highest, call.first)
    largest = (capacity.limit - capacity.fixed) // capacity.per_connection
    is_default = capacity.limit_name not in _declared(reading)
    return finding(
        reading,
        "P07",
        "stop",
        compose(
            "{connections} connections need {need:,} {unit} ({each} each), and {limit_name} is "
            "{limit:,}{default}: "
            "at most {largest} connections fit",
            connections=highest,
            need=capacity.required(highest),
            unit=capacity.unit,
            each=capacity.per_connection,
            limit_name=capacity.limit_name,
            limit=capacity.limit,
            default=compose(" unless it was changed") if is_default else "",
            largest=largest,
        ),
        (call.first, planned),
        fix=compose("Show the limit that was set, or the errors of this load"),
    )


CHECK = DocumentCheck("P07", find)
