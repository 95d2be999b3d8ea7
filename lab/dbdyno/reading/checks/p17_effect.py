"""P17: a setting must change what it is meant to change."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_COUNTERS = linear(
    r"(?:SHOW|show) (?:GLOBAL |global |ENGINE |engine "
    r")?(?:STATUS|status|INNODB|innodb)|Innodb_\w+|Handler_\w+|performance_schema|pg_stat_\w+|events_waits|"
    r"EXPLAIN|iostat|vmstat|pidstat|\bperf (?:stat|record|top)",
)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for a counter of the server or the system besides the results of a setting.

    Catches effects without a cause. A published benchmark explains a difference by fewer waits for mutexes;
    its queries scan a table, and no wait was counted.
    """
    named = [one for one in reading.series if " = " in one.label]
    if len(named) < 2 or any(_COUNTERS.search(text) for text in reading.document.texts):
        return
    yield finding(
        reading,
        "P17",
        "note",
        compose(
            "no counter shows that {name} changed what the server does", name=named[0].label.split(" = ")[0]
        ),
        (one.results[0].first for one in named),
        fix=compose("Show the waits, reads or writes that the setting is about, for every variant"),
    )


CHECK = DocumentCheck("P17", find)
