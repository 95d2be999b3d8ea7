"""Q04: every number must come from a run that can be looked at."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_IMAGE = re.compile(
    r"!\[[^\]\[]{0,300}+\]\(([^)\s]{1,2000}+)|<img\b[^<>]{0,500}?\bsrc=[\"']?([^\"'\s<>]{1,2000}+)",
    re.IGNORECASE,
)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for pictures that are shown twice, and for results that only a picture has.

    Catches one chart as the result of several tests. A published benchmark shows the same picture for three
    workloads.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for index, text in reading.document.lines():
        for match in _IMAGE.finditer(text):
            places[match[1] or match[2]].append(index)
    for indexes in places.values():
        if len(indexes) > 1 and reading.claims:
            yield finding(
                reading,
                "Q04",
                "stop",
                compose("the same picture is shown as {number} results", number=len(indexes)),
                indexes,
            )
    if places and not reading.results and reading.claims:
        yield finding(
            reading,
            "Q04",
            "warn",
            compose("the results are in pictures only: no number can be checked"),
            [indexes[0] for indexes in places.values()],
            fix=compose("Publish the output of every run"),
        )


CHECK = DocumentCheck("Q04", find)
