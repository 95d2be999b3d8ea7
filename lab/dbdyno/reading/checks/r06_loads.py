"""R06: a direction that depends on the load is no single verdict."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose


def find(reading: Reading) -> Iterator[Finding]:
    """Looks whether the variant with more throughput is the same at all loads.

    Catches one sentence about two answers. In a published benchmark one instance class is 4 % slower up to 64
    connections and 5 to 13 % faster from 256 on.
    """
    seen: set[int] = set()
    for contrast in reading.contrasts:
        if (
            contrast.is_better is None
            and len(contrast.pairs) > 1
            and any(contrast.changes)
            and id(contrast.variant) not in seen
        ):
            seen.add(id(contrast.variant))
            yield finding(
                reading,
                "R06",
                "warn",
                compose("the direction depends on the load: {sentence}", sentence=contrast.sentence),
                (pair.variant.figures[contrast.figure].index for pair in contrast.pairs),
                fix=compose("Give a verdict for each load, with an interval that holds for all of them"),
            )


CHECK = DocumentCheck("R06", find)
