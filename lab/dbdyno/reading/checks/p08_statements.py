"""P08: a lookup must find its row by a key, not by a random number for each row."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks.non_deterministic import find_conditions
from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.limits import SQL_MAX, SQL_TOTAL_MAX
from dbdyno.reading.reading import Reading
from dbdyno.text import compose


def find(reading: Reading) -> Iterator[Finding]:
    """Parses the statements of the calls.

    Catches table scans that look like lookups. `WHERE id = FLOOR(RAND() * 10000000)` draws a number for each
    row, so a published benchmark scanned ten million rows 100 times and took it for 100 lookups.
    """
    seen: set[str] = set()
    parsed = 0
    for call in reading.calls:
        statement = call.options.get("query", "").strip().rstrip(";")
        if not statement or statement in seen or len(statement) > SQL_MAX or parsed > SQL_TOTAL_MAX:
            continue
        seen.add(statement)
        parsed += len(statement)
        for condition in find_conditions(statement, "mysql"):
            if condition.evaluated_per == "row":
                yield finding(
                    reading,
                    "P08",
                    "stop",
                    compose(
                        "{function}() in {condition} is evaluated for every row, so each query scans the "
                        "table and returns "
                        "none, one or several rows",
                        function=condition.function,
                        condition=condition.text,
                    ),
                    range(call.first, call.last + 1),
                    fix=compose("Draw the key in the client, and look at EXPLAIN"),
                )


CHECK = DocumentCheck("P08", find)
