"""R01: the mean of a run that goes on changing is not the server's throughput."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_INTERVALS_MIN = 6
# Means of the first and the last third that differ by more than this.
_CHANGE = 0.2


def find(reading: Reading) -> Iterator[Finding]:
    """Compares the first with the last third of the intervals that the tool printed.

    Catches runs that were still warming up, or whose disk or cache was exhausted on the way.
    """
    for result in reading.results:
        values = result.intervals
        third = len(values) // 3
        if len(values) < _INTERVALS_MIN or not sum(values[:third]):
            continue
        change = (sum(values[-third:]) / third) / (sum(values[:third]) / third) - 1
        if abs(change) > _CHANGE:
            yield finding(
                reading,
                "R01",
                "warn",
                compose(
                    "throughput of the last third of the run differs from the first third by {change:+.0f} %",
                    change=100 * change,
                ),
                [result.first],
                fix=compose("Warm up longer, and measure until the intervals no longer change"),
            )


CHECK = DocumentCheck("R01", find)
