"""R07: a sweep that ends below the server's limit says nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.checks.p16_loads import curve_of
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# Throughput that rises by more than this to the last load has not reached its highest value.
_RISE = 1.1
_LOADS_MIN = 4


def find(reading: Reading) -> Iterator[Finding]:
    """Looks whether throughput still rises at the highest load.

    Catches claims about the highest throughput without it. In a published benchmark it rises by a fifth and
    by a quarter from 512 to 1024 connections.
    """
    for series in reading.series:
        curve = curve_of(series)
        if len(curve) < _LOADS_MIN or curve[-2][1] <= 0:
            continue
        rise = curve[-1][1] / curve[-2][1]
        if rise > _RISE:
            yield finding(
                reading,
                "R07",
                "note",
                compose(
                    "throughput still rises by {percent:.0f} % from {before} to {last} connections: its "
                    "highest value is not reached",
                    percent=100 * (rise - 1),
                    before=curve[-2][0],
                    last=curve[-1][0],
                ),
                (curve[-2][2].first, curve[-1][2].first),
                fix=compose("Add loads until throughput falls"),
                subject=series.label,
            )


CHECK = DocumentCheck("R07", find)
