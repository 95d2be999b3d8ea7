"""Q03: a claim must name what it is about, and all that was planned must be shown."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_SHOWN_MAX = 8


def find(reading: Reading) -> Iterator[Finding]:
    """Compares the loads that are planned with those that are shown and claimed.

    Catches claims about chosen loads. A published benchmark claims 20 % on average over 2 to 3000 threads;
    its sentences name one load each.
    """
    loads = reading.loads
    shown = {one.connections for one in reading.results}
    missing = sorted(set(loads) - shown) if reading.results and shown - {None} else []
    if missing and set(loads) & shown:
        yield finding(
            reading,
            "Q03",
            "warn",
            compose(
                "planned and not shown: {missing} connections",
                missing=", ".join(map(str, missing[:_SHOWN_MAX]))
                + (" …" if len(missing) > _SHOWN_MAX else ""),
            ),
            (loads[number] for number in missing),
        )
    if reading.results or len(loads) < 2:
        return
    for claim in reading.claims:
        if claim.percents and len(claim.connections) != 1:
            yield finding(
                reading,
                "Q03",
                "warn",
                compose(
                    "{percent:g} % at which load? {number} loads are planned, and the numbers of none are "
                    "shown",
                    percent=claim.percents[0],
                    number=len(loads),
                ),
                [claim.index],
                fix=compose("Show every load with its interval, and the mean over all"),
            )


CHECK = DocumentCheck("Q03", find)
