"""P15: a difference needs repetitions, in an order in which time cannot favour one variant."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# Fewer repetitions than this give no verdict, as in dbdyno's own experiments.
BLOCKS_MIN = 6


def find(reading: Reading) -> Iterator[Finding]:
    """Counts the results of each variant and load, and looks at the order of the variants.

    Catches comparisons of one run with one run, which cannot tell a difference from the noise.
    """
    if not reading.contrasts:
        yield from _without_comparison(reading)
        return
    compared = list(
        {
            id(one): one for contrast in reading.contrasts for one in (contrast.baseline, contrast.variant)
        }.values()
    )
    if any(series.doubt for series in compared):
        text = compose(
            "which results repeat the same variant and load is not certain: no interval is computed"
        )
        yield finding(reading, "P15", "warn", text, (one.results[0].first for one in compared if one.doubt))
        return
    fewest = min(min(Counter(one.connections for one in series.results).values()) for series in compared)
    # mysqlslap repeats by itself: the shortest and the longest time differ.
    repeats = all(one.value("min_s") != one.value("max_s") for series in compared for one in series.results)
    if repeats or (fewest >= BLOCKS_MIN and not _is_sequential(reading)):
        return
    runs = compose("one run") if fewest == 1 else compose("{fewest} runs", fewest=fewest)
    order = compose(", all of one variant before all of the next") if _is_sequential(reading) else ""
    if fewest == 1:
        consequence = compose(
            "how much two runs of one variant differ is not known, so a difference proves nothing"
        )
    elif fewest < BLOCKS_MIN:
        consequence = compose("too few for an interval")
    else:
        consequence = compose("what changed on the machine meanwhile counts for one variant")
    yield finding(
        reading,
        "P15",
        "warn",
        compose(
            "{runs} of each variant and load{order}: {consequence}",
            runs=runs,
            order=order,
            consequence=consequence,
        ),
        (series.results[0].first for series in compared),
        fix=compose(
            "Repeat every run at least {blocks} times, the variants in alternating order", blocks=BLOCKS_MIN
        ),
    )


def _without_comparison(reading: Reading) -> Iterator[Finding]:
    if not reading.results and reading.claims:
        yield finding(
            reading,
            "P15",
            "warn",
            compose("no result of a run was recognized, so the difference cannot be judged"),
            (claim.index for claim in reading.claims),
            fix=compose("Show every run's output, at least {blocks} of each variant", blocks=BLOCKS_MIN),
        )
    for series in reading.series:
        if len(series.results) == len({one.connections for one in series.results}):
            text = compose("each load was run once, so how much its result varies is not known")
            yield finding(reading, "P15", "note", text, (one.first for one in series.results))


def _is_sequential(reading: Reading) -> bool:
    """Whether every variant's results stand together."""
    places = sorted(
        (one.first, number) for number, series in enumerate(reading.series) for one in series.results
    )
    turns = sum(before != after for (_, before), (_, after) in itertools.pairwise(places))
    return turns == len(reading.series) - 1


CHECK = DocumentCheck("P15", find)
