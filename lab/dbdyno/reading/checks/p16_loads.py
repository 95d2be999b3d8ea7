"""P16: a sweep must include loads below the server's limit; R07: and the limit itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.attribution import Series
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import THROUGHPUTS, Result
from dbdyno.text import compose

_LOADS_MIN = 3


def find(reading: Reading) -> Iterator[Finding]:
    """Looks where throughput is highest over the loads of each variant.

    Catches sweeps of overloads only, in which latency is the number of connections divided by throughput,
    whatever is compared. In a published benchmark throughput falls from the first load to the last.
    """
    curves = [curve for series in reading.series if len(curve := curve_of(series)) >= _LOADS_MIN]
    falling = [curve for curve in curves if all(a[1] >= b[1] for a, b in itertools.pairwise(curve))]
    if curves and len(falling) == len(curves):
        yield finding(
            reading,
            "P16",
            "warn",
            compose(
                "throughput falls from the lowest load ({connections} connections) on: every load is beyond "
                "the server's limit",
                connections=curves[0][0][2].connections,
            ),
            (point[2].first for point in curves[0]),
            fix=compose("Add loads below: 1, 2, 4 … connections"),
        )


def curve_of(series: Series) -> list[tuple[int, float, Result]]:
    """Connections, throughput and result by rising load; of several results at one load the first."""
    points: dict[int, tuple[int, float, Result]] = {}
    for result in series.results:
        value = next((value for name in THROUGHPUTS if (value := result.value(name))), None)
        if result.connections is not None and value is not None:
            points.setdefault(result.connections, (result.connections, value, result))
    return sorted(points.values(), key=lambda point: point[0])


CHECK = DocumentCheck("P16", find)
