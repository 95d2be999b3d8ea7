"""R05: where a setting cannot have an effect, the difference shows the noise."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# Settings that divide what several connections would wait for.
_CONCURRENT = linear(r"instances|thread_pool|thread_handling|concurrency|partitions|spin|_parts\b|parallel")
_NOISE_PERCENT = 0.5


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at the difference with one connection, if the variants differ in a setting against waiting of
    connections for each other.

    Catches noise that is taken for an effect. In a published benchmark eight buffer pool instances are 2 %
    faster with one
    connection, which never waits for another one; the effect of 8 % with ten connections rests on one run
    each.
    """
    for contrast in reading.contrasts:
        if not _CONCURRENT.search(contrast.variant.label) or len(contrast.pairs) < 2:
            continue
        alone = next((pair for pair in contrast.pairs if pair.connections == 1), None)
        if alone is not None and abs(alone.change_percent) > _NOISE_PERCENT:
            figure = contrast.figure
            yield finding(
                reading,
                "R05",
                "warn",
                compose(
                    "with one connection {label} can have no effect, and the difference is {change:+.1f} %: "
                    "that much is noise",
                    label=contrast.variant.label,
                    change=alone.change_percent,
                ),
                (alone.baseline.figures[figure].index, alone.variant.figures[figure].index),
                fix=compose("Repeat all runs, and compare the baseline with itself"),
            )
            return


CHECK = DocumentCheck("R05", find)
