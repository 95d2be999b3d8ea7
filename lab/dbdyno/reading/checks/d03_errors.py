"""D03: errors are work that was not done."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_PER_1000_MAX = 1.0
# What sysbench, pgbench and HammerDB print of failed transactions, and the rate of errors in an interval.
_ERROR_LINES = linear(
    r"^\s*(?:\S*/)?(?:mysqlslap|mariadb-slap|pgbench|sysbench): .*(?:[Ee]rror|FATAL|fatal)|"
    r"^\s*(?:FATAL|ALERT|ERROR|Error)\b.*|\berr/s:? [1-9]|could not serialize access|Deadlock found"
)


def find(reading: Reading) -> Iterator[Finding]:
    """Divides errors by transactions, and looks for errors that the tool printed.

    Catches throughput of which a part was lost, such as deadlocks that sysbench retries silently.
    """
    for result in reading.results:
        errors, transactions = result.value("errors"), result.value("transactions")
        if errors and transactions and 1000 * errors / transactions > _PER_1000_MAX:
            yield finding(
                reading,
                "D03",
                "warn",
                compose(
                    "{errors:,.0f} errors in {transactions:,.0f} transactions: {share:.1f} of 1000",
                    errors=errors,
                    transactions=transactions,
                    share=1000 * errors / transactions,
                ),
                [result.figures["errors"].index],
                fix=compose("Name the errors, and compare their number between the variants"),
            )
    occupied = {index for call in reading.calls for index in range(call.first, call.last + 1)}
    printed = [
        index
        for index, text in reading.document.lines()
        if index not in occupied and _ERROR_LINES.search(text)
    ]
    if printed:
        yield finding(reading, "D03", "warn", compose("the tool printed errors"), printed[:20])


CHECK = DocumentCheck("D03", find)
