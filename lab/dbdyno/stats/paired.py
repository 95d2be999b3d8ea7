"""Computes effects from paired log ratios: one per load, with simultaneous intervals, and one over all loads.

::

    log ratio per load and block -> joint sign-flip test     -> estimate and interval per load
                                 -> mean over the loads,     -> estimate, interval and p-value over all
                                    one number per block        loads, by the signed-rank test

Of some log ratios only bounds are known: a percentile may be "more than x". Others are infinite: a trial in
which the server failed has throughput 0. Estimate, interval and signed-rank statistic never decrease if a
difference increases. So the true value of each is between its value for all lower bounds and its value for
all upper bounds. In the joint test an infinite difference counts as a large finite one
(`stats.joint.finite_row`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from graphlib import TopologicalSorter

from dbdyno.stats.covariate import Rule
from dbdyno.stats.joint import JointInterval, joint_intervals
from dbdyno.stats.repeated import Looks, repeated
from dbdyno.stats.repeated_joint import repeated_joint_intervals
from dbdyno.stats.signed_rank import hodges_lehmann, interval, p_value, percent

ALPHA = 0.05
# Lower and upper bound of a logarithm.
LogBounds = tuple[float, float]


class Bound(StrEnum):
    """Whether an estimate is exact or a bound."""

    EXACT = "exact"
    AT_LEAST = "at-least"
    AT_MOST = "at-most"


@dataclass(frozen=True)
class Effect:
    """A change of variant against baseline, in percent of the baseline."""

    effect_percent: float
    # None if the blocks are too few to reach the significance level. An unknown end is -100 or infinity.
    interval_percent: tuple[float, float] | None
    # Probability that the interval does not contain the true value; of simultaneous intervals, that any of
    # them does not.
    alpha: float
    # 1 if nothing was tested.
    p_value: float
    blocks: int
    bound: Bound = Bound.EXACT

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval_percent is not None and not (
            self.interval_percent[0] <= 0.0 <= self.interval_percent[1]
        )

    def lies_within(self, delta_percent: float) -> bool:
        """Whether the whole interval is within ±delta."""
        ends = self.interval_percent
        return ends is not None and -delta_percent <= ends[0] and ends[1] <= delta_percent

    def lies_outside(self, delta_percent: float) -> bool:
        """Whether the whole interval is outside ±delta."""
        ends = self.interval_percent
        return ends is not None and (ends[0] > delta_percent or ends[1] < -delta_percent)

    def with_zero(self) -> Effect:
        """The effect with its interval extended to contain zero."""
        if self.interval_percent is None:
            return self
        low, high = self.interval_percent
        return replace(self, interval_percent=(min(low, 0.0), max(high, 0.0)))


@dataclass(frozen=True)
class Ratios:
    """Log ratios at one load: block -> lower and upper bound, which are equal if the ratio is known."""

    lows: Mapping[int, float]
    highs: Mapping[int, float]
    # How they were adjusted for the load of other processes.
    rule: Rule = Rule.EQUAL
    # The values as measured, if the bounds are those of what other processes may have cost; else None.
    measured: Mapping[int, float] | None = None

    @classmethod
    def of(cls, bounds: Mapping[int, LogBounds]) -> Ratios:
        """The ratios with these bounds, by block."""
        lows = {block: low for block, (low, _) in bounds.items()}
        return cls(lows, {block: high for block, (_, high) in bounds.items()})

    @property
    def is_exact(self) -> bool:
        """Whether every ratio is known and finite."""
        return all(math.isfinite(low) and low == self.highs[block] for block, low in self.lows.items())

    def against(self, change_percent: float) -> Ratios:
        """The ratios to the baseline changed by so much: their p-value tests this change instead of zero."""
        null = math.log1p(change_percent / 100.0)
        return Ratios(
            {block: low - null for block, low in self.lows.items()},
            {block: high - null for block, high in self.highs.items()},
            self.rule,
            self.measured and {block: entry - null for block, entry in self.measured.items()},
        )


def ratio_bounds(base: LogBounds, bounds: LogBounds) -> LogBounds:
    """Bounds of a log ratio, from the bounds of both logarithms; infinite if unknown."""
    return sum_bounds([(-1.0, base), (1.0, bounds)])


def sum_bounds(terms: Sequence[tuple[float, LogBounds]]) -> LogBounds:
    """Bounds of a sum of logarithms with weights; infinite if unknown, as for infinite terms of both signs.

    The lower bound takes the lower bounds of added terms and the upper bounds of subtracted terms.
    """
    low = sum(weight * bounds[weight < 0.0] for weight, bounds in terms)
    high = sum(weight * bounds[weight > 0.0] for weight, bounds in terms)
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def effect(ratios: Ratios, alpha: float = ALPHA, looks: Looks | None = None) -> Effect | None:
    """The effect by the signed-rank test, without regard to other effects; None without blocks.

    With `looks`, interval and p-value allow for a look after every block; the blocks of `ratios` are in the
    order in which they ran.
    """
    lows, highs = list(ratios.lows.values()), list(ratios.highs.values())
    if not lows:
        return None
    least, most = hodges_lehmann(lows, -math.inf), hodges_lehmann(highs, math.inf)
    if looks is not None:
        result = repeated(lows, highs, alpha, looks)
        low = high = result.interval
        if low is not None:
            # An earlier look may have excluded the estimate.
            least, most = (min(max(entry, low.low), low.high) for entry in (least, most))
        # A direction that an earlier look has found, and the estimate contradicts, is not a result.
        p_value = result.p_above if least > 0.0 else result.p_below if most < 0.0 else 1.0
    else:
        low, high = interval(lows, alpha, -math.inf), interval(highs, alpha, math.inf)
        p_value = _p_value(lows, highs)
    bound, value = _estimate(ratios, least, most)
    return Effect(
        effect_percent=percent(value),
        interval_percent=None if low is None or high is None else (percent(low.low), percent(high.high)),
        alpha=alpha,
        p_value=p_value,
        blocks=len(lows),
        bound=bound,
    )


def _estimate(ratios: Ratios, least: float, most: float) -> tuple[Bound, float]:
    """The estimate as measured; if that is only known within bounds, the smallest or the largest possible
    one.
    """
    if ratios.measured:
        return Bound.EXACT, min(max(hodges_lehmann(list(ratios.measured.values())), least), most)
    if least == most:
        return Bound.EXACT, least
    if math.isfinite(least) or not math.isfinite(most):
        return Bound.AT_LEAST, least
    return Bound.AT_MOST, most


def _p_value(lows: Sequence[float], highs: Sequence[float]) -> float:
    """The largest p-value that the bounds permit; 1 if the sign of the effect is unknown."""
    if lows == highs and not (math.inf in lows and -math.inf in lows):
        return p_value(lows)
    if hodges_lehmann(lows, -math.inf) <= 0.0 <= hodges_lehmann(highs, math.inf):
        return 1.0
    return max(p_value(lows, -math.inf), p_value(highs, math.inf))


def joint_effects(
    loads: Sequence[Ratios], alpha: float = ALPHA, looks: Looks | None = None, *, only: int | None = None
) -> tuple[Effect | None, ...]:
    """One effect per load, with simultaneous intervals of confidence 1 - alpha; None without blocks.

    `looks` as for `effect`. With `only`, the effect of this load alone is computed; the others are None.
    P-values are adjusted for all loads. If only bounds are known at a load, the lower bounds are one row of
    the joint test, and the upper bounds another.
    """
    blocks = _all_blocks(loads)
    bounds = [[load.lows] if load.lows == load.highs else [load.lows, load.highs] for load in loads]
    rows = [[row.get(block, math.nan) for block in blocks] for of_load in bounds for row in of_load]
    load_of_row = [load for load, of_load in enumerate(bounds) for _ in of_load]
    selected = [row for row, load in enumerate(load_of_row) if only in (None, load)]
    if looks is None:
        intervals = joint_intervals(rows, alpha, selected)
    else:
        intervals = repeated_joint_intervals(rows, alpha, looks, selected)
    of_loads: list[list[JointInterval | None]] = [[] for _ in loads]
    for load, entry in zip(load_of_row, intervals, strict=True):
        of_loads[load].append(entry)
    return tuple(
        _joint_effect(ratios, of_load[0], of_load[-1], alpha)
        if ratios.lows and only in (None, load)
        else None
        for load, (ratios, of_load) in enumerate(zip(loads, of_loads, strict=True))
    )


def _joint_effect(
    ratios: Ratios, of_lows: JointInterval | None, of_highs: JointInterval | None, alpha: float
) -> Effect:
    """The effect at one load, from the rows of its bounds; the estimate is limited to the interval."""
    lows, highs = list(ratios.lows.values()), list(ratios.highs.values())
    least, most = hodges_lehmann(lows, -math.inf), hodges_lehmann(highs, math.inf)
    ends, p_value = None, 1.0
    if of_lows is not None and of_highs is not None:
        # The finite value in place of an infinite one depends on its distance from zero, so an end beyond
        # zero on that side is unknown.
        low = -math.inf if -math.inf in lows and of_lows.low <= 0.0 else of_lows.low
        high = math.inf if math.inf in highs and of_highs.high >= 0.0 else of_highs.high
        least, most = (min(max(entry, low), high) for entry in (least, most))
        if of_lows is of_highs or least > 0.0:
            p_value = of_lows.p_value
        elif most < 0.0:
            p_value = of_highs.p_value
        ends = percent(low), percent(high)
    bound, value = _estimate(ratios, least, most)
    return Effect(
        effect_percent=percent(value),
        interval_percent=ends,
        alpha=alpha,
        p_value=p_value,
        blocks=len(lows),
        bound=bound,
    )


def mean_ratios(loads: Sequence[Ratios]) -> Ratios:
    """The mean log ratio over all loads, per block.

    Every load has the same weight, whatever its throughput. Blocks without a result at some load are left
    out, because their means would not be comparable with the others.
    """
    if not loads:
        return Ratios({}, {})
    blocks = [block for block in loads[0].lows if all(block in ratios.lows for ratios in loads)]
    measured = None
    if any(ratios.measured for ratios in loads) and all(
        ratios.measured or ratios.is_exact for ratios in loads
    ):
        measured = {
            block: _mean([(load.measured or load.lows)[block] for load in loads], 0.0) for block in blocks
        }
    return Ratios(
        {block: _mean([ratios.lows[block] for ratios in loads], -math.inf) for block in blocks},
        {block: _mean([ratios.highs[block] for ratios in loads], math.inf) for block in blocks},
        measured=measured,
    )


def _all_blocks(loads: Sequence[Ratios]) -> list[int]:
    """The blocks of all loads in the order in which they ran; each load has its blocks in that order."""
    before: dict[int, set[int]] = {}
    for ratios in loads:
        passed: list[int] = []
        for block in ratios.lows:
            before.setdefault(block, set()).update(passed)
            passed.append(block)
    return list(TopologicalSorter(before).static_order())


def _mean(values: Sequence[float], unknown: float) -> float:
    """The mean; `unknown` if `values` contains both infinity and -infinity."""
    if math.inf in values and -math.inf in values:
        return unknown
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values)
