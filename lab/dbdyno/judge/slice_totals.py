"""R12: whether all slices together show the same difference of throughput as the typical slice.

The log ratio of a block is the median over its slices, so a loss in less than half of them hardly changes it:
a variant that stalls in every fifth slice loses throughput that the verdict does not show. In each block the
ratio of the throughputs over all slices is divided by the median ratio. Between equal variants its logarithm
is symmetric around zero. All comparisons of a run are tested together by the joint sign-flip test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.finding import Finding
from dbdyno.judge.comparison import Comparison, Pairs
from dbdyno.judge.slices import block_ratio
from dbdyno.judge.wording import interval
from dbdyno.stats.family import ADVISORY_ALPHA, is_within
from dbdyno.stats.joint import JointInterval, joint_intervals
from dbdyno.stats.signed_rank import hodges_lehmann, percent
from dbdyno.text import compose

# Smaller differences, in percent, are not reported unless a zone of equivalence is declared.
REPORTED_MIN_PERCENT = 1.0


def totals_findings(comparisons: Sequence[Comparison]) -> Iterator[Finding]:
    """The findings R12 of all comparisons of a run, which share an error rate.

    Other metrics than throughput are those of all slices anyway.
    """
    rows = [(one, _row(one)) for one in comparisons if one.scale.metric == THROUGHPUT]
    tested = [(one, row) for one, row in rows if row]
    blocks = sorted({block for _, row in tested for block in row})
    values = [[row.get(block, math.nan) for block in blocks] for _, row in tested]
    for (one, row), joint in zip(tested, joint_intervals(values, ADVISORY_ALPHA), strict=True):
        if joint is not None and is_within(joint.p_value, ADVISORY_ALPHA):
            yield from _finding(one, list(row.values()), joint)


def _row(comparison: Comparison) -> dict[int, float]:
    """Block -> the excess of the totals, the mean over the loads, where all loads have one."""
    by_load = [_excess(pairs) for pairs in comparison.pairs]
    blocks = set.intersection(*(set(of_load) for of_load in by_load)) if by_load else set()
    return {block: fmean(of_load[block] for of_load in by_load) for block in sorted(blocks)}


def _finding(comparison: Comparison, row: Sequence[float], joint: JointInterval) -> Iterator[Finding]:
    """The finding about a significant excess, unless it is small."""
    delta = comparison.scale.delta_percent
    centre = min(max(hodges_lehmann(row), joint.low), joint.high)
    excess, low, high = (percent(value) for value in (centre, joint.low, joint.high))
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
