"""P07: the server's limits must suffice for the highest load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dbdyno.checks.capacities import Capacity, Demand, server_capacities
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.reading.statements import prepared_statements
from dbdyno.text import compose

# The limits of a server whose document does not set them (MySQL 5.7 to 9, MariaDB 10.6 to 12).
_DEFAULTS = {"max_prepared_stmt_count": "16382", "max_connections": "151"}
# Servers that speak MySQL's protocol and have other limits.
_FOREIGN = re.compile(r"tidb|oceanbase|seekdb|polardb|vitess|singlestore|doris|starrocks", re.IGNORECASE)
_ERROR = re.compile(r"1461.*max_prepared_stmt_count|max_prepared_stmt_count.*1461")


def find(reading: Reading) -> Iterator[Finding]:
    """Multiplies connections by the prepared statements of each, which sysbench keeps per table and kind.

    Catches loads that cannot have run as described. A published benchmark plans 500 connections with 46
    statements each; with the default limit 356 connections are possible.
    """
    is_foreign = any(_FOREIGN.search(text) for text in reading.document.texts)
    seen: set[tuple[str, str]] = set()
    for call in reading.calls:
        if call.tool != "sysbench" or call.phase != "run" or call.driver != "mysql" or is_foreign:
            continue
        same = [one.connections or 0 for one in reading.calls if (one.test, one.phase) == (call.test, "run")]
        highest = max(same) or max(reading.loads, default=0)
        statements = 0 if call.options.get("db-ps-mode") == "disable" else _count(call)
        if not highest or statements is None:
            continue
        demand = Demand(highest, call.number("tables", "oltp-tables-count") or 1, statements)
        for capacity in server_capacities({**_DEFAULTS, **_declared(reading)}, demand, {}, started=False):
            key = (call.test, capacity.limit_name)
            if (
                capacity.limit_name not in _DEFAULTS
                or capacity.required(highest) <= capacity.limit
                or key in seen
            ):
                continue
            if capacity.limit_name == "max_connections" and not (reading.settings or statements == 0):
                # Servers of clouds have other defaults.
                continue
            seen.add(key)
            yield _finding(reading, call, capacity, highest)
    yield from _reached(reading)


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
