"""R12: whether all slices together show the same difference of throughput as the typical slice.

The log ratio of a block is the median over its slices, so a loss in less than half of them hardly changes it:
a variant that stalls in every fifth slice loses throughput that the verdict does not show. In each block the
ratio of the throughputs over all slices is divided by the median ratio. Between equal variants its logarithm
is symmetric around zero, so the signed-rank test applies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.finding import Finding
from dbdyno.judge.comparison import Comparison, Pairs
from dbdyno.judge.slices import block_ratio
from dbdyno.judge.wording import interval
from dbdyno.stats.signed_rank import hodges_lehmann, percent
from dbdyno.stats.signed_rank import interval as signed_rank_interval
from dbdyno.text import compose

# Smaller differences, in percent, are not reported unless a zone of equivalence is declared.
REPORTED_MIN_PERCENT = 1.0


def totals_findings(comparison: Comparison, alpha: float) -> Iterator[Finding]:
    """The finding R12 of one comparison; `alpha` is its share of the error rate of all of them.

    Other metrics than throughput are those of all slices anyway.
    """
    if comparison.scale.metric != THROUGHPUT:
        return
    by_load = [_excess(pairs) for pairs in comparison.pairs]
    blocks = set.intersection(*(set(of_load) for of_load in by_load)) if by_load else set()
    rows = [fmean(of_load[block] for of_load in by_load) for block in sorted(blocks)]
    ends = signed_rank_interval(rows, alpha) if rows else None
    if ends is None or not ends.excludes(0.0):
        return
    delta = comparison.scale.delta_percent
    excess, low, high = (percent(value) for value in (hodges_lehmann(rows), ends.low, ends.high))
    if abs(excess) <= (REPORTED_MIN_PERCENT if delta is None else delta / 2.0):
        return
    baseline, variant, workload = comparison.names
    yield Finding(
        "R12",
        "warn",
        compose(
            "over all slices the throughput of {variant} against {baseline} on {workload} is "
            "{size} than in the typical slice ({interval} %): one of them stalls in "
            "some slices, and the verdict on throughput is about the typical slice",
            variant=variant,
            baseline=baseline,
            workload=workload,
            size=compose("{percent} % higher", percent=f"{excess:.1f}")
            if excess > 0.0
            else compose("{percent} % lower", percent=f"{-excess:.1f}"),
            interval=interval((low, high)),
        ),
        {"workload": workload, "excess_percent": excess, "interval_percent": [low, high]},
        variant,
        fix=compose(
            'Look at the slices in measured.json; pairing = "trials" in [design] compares the totals'
        ),
    )


def _excess(pairs: Pairs) -> dict[int, float]:
    """Block -> log ratio over all slices, minus that of the typical slice, where both are finite."""
    excess: dict[int, float] = {}
    for block, base in pairs.baseline.items():
        other = pairs.variant[block]
        typical = block_ratio([(-1.0, base), (1.0, other)], THROUGHPUT)
        if typical is not None and math.isfinite(typical):
            total = math.log(other.value(THROUGHPUT) / base.value(THROUGHPUT))
            excess[block] = total - typical
    return excess
