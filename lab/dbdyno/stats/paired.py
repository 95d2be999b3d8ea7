"""From paired log ratios to effects: one per load level, with simultaneous intervals, and one over all.

::

    log ratio per level and block -> joint sign-flip test      -> estimate and interval per level
                                  -> mean over the levels,     -> estimate, interval and p-value over all
                                     one number per block         levels, by the signed rank

A log ratio may be known by bounds alone: a percentile may be "more than x", and a trial that its server
failed has throughput 0, so that its log ratio is infinite. Estimate, interval and the signed-rank statistic
never fall when a difference rises, so over all that the log ratios may be, each of them is between its
value at all the lower bounds and its value at all the upper ones: what is printed is certain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dbdyno.stats.joint import JointInterval, joint_intervals
from dbdyno.stats.signed_rank import hodges_lehmann, interval, p_value, percent

ALPHA = 0.05


class Bound(StrEnum):
    """Whether an estimate is exact or a bound."""

    EXACT = "exact"
    AT_LEAST = "at-least"
    AT_MOST = "at-most"


@dataclass(frozen=True)
class Effect:
    """A change of variant against baseline, in percent of the baseline."""

    effect_percent: float
    # None if there are too few blocks to reach the level. An unknown end is -100 or infinity.
    interval_percent: tuple[float, float] | None
    # Probability that the interval misses the true value; for several levels, that any of the intervals does.
    alpha: float
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

    def with_zero(self) -> Effect:
        """The same effect with its interval extended to contain zero, for an effect that may have no
        direction.
        """
        if self.interval_percent is None:
            return self
        low, high = self.interval_percent
        return replace(self, interval_percent=(min(low, 0.0), max(high, 0.0)))


@dataclass(frozen=True)
class Ratios:
    """Log ratios of one level: block -> lower and upper bound, equal where the ratio is known."""

    lows: Mapping[int, float]
    highs: Mapping[int, float]

    @property
    def exact(self) -> bool:
        """Whether every ratio is known and finite."""
        return all(math.isfinite(low) and low == self.highs[block] for block, low in self.lows.items())


def effect(ratios: Ratios, alpha: float = ALPHA) -> Effect | None:
    """The effect by the signed-rank test, tested individually; None without blocks."""
    lows, highs = list(ratios.lows.values()), list(ratios.highs.values())
    if not lows:
        return None
    low, high = interval(lows, alpha, -math.inf), interval(highs, alpha, math.inf)
    least, most = hodges_lehmann(lows, -math.inf), hodges_lehmann(highs, math.inf)
    if least == most:
        bound = Bound.EXACT
    else:
        bound = Bound.AT_LEAST if math.isfinite(least) or not math.isfinite(most) else Bound.AT_MOST
    return Effect(
        effect_percent=percent(most if bound == Bound.AT_MOST else least),
        interval_percent=None if low is None or high is None else (percent(low.low), percent(high.high)),
        alpha=alpha,
        p_value=_p_value(lows, highs),
        blocks=len(lows),
        bound=bound,
    )


def _p_value(lows: Sequence[float], highs: Sequence[float]) -> float:
    """The largest p-value within the bounds: 1 if the sign is unknown, else that of the end
    nearer to zero.
    """
    if lows == highs and not (math.inf in lows and -math.inf in lows):
        return p_value(lows)
    if hodges_lehmann(lows, -math.inf) <= 0.0 <= hodges_lehmann(highs, math.inf):
        return 1.0
    return max(p_value(lows, -math.inf), p_value(highs, math.inf))


def joint_effects(levels: Sequence[Ratios], alpha: float = ALPHA) -> tuple[Effect | None, ...]:
    """One effect per level, with simultaneous intervals at confidence 1 - alpha; None without blocks.

    Levels with bounds have no t statistic: each keeps the signed-rank interval at its share of alpha, and the
    others share the rest. A level without blocks also has a share. P-values are adjusted for all levels.
    """
    share = alpha / max(1, len(levels))
    exact = [index for index, level in enumerate(levels) if level.lows and level.exact]
    blocks = sorted(set().union(*(levels[index].lows for index in exact)))
    rows = [[levels[index].lows.get(block, math.nan) for block in blocks] for index in exact]
    together = share * len(exact)
    joint = dict(zip(exact, joint_intervals(rows, together) if together else [], strict=True))
    effects: list[Effect | None] = []
    for index, level in enumerate(levels):
        alone = effect(level, share)
        if alone is None:
            effects.append(None)
        elif index not in joint:
            effects.append(replace(alone, alpha=alpha, p_value=min(1.0, alone.p_value * len(levels))))
        else:
            effects.append(_with_joint(alone, joint[index], alpha, len(levels) / len(exact)))
    return tuple(effects)


def _with_joint(alone: Effect, joint: JointInterval | None, alpha: float, adjust: float) -> Effect:
    """The effect of one level with its joint interval, into which the estimate is clipped."""
    if joint is None:
        return replace(alone, interval_percent=None, alpha=alpha, p_value=1.0)
    estimate = min(max(math.log1p(alone.effect_percent / 100.0), joint.low), joint.high)
    return replace(
        alone,
        effect_percent=percent(estimate),
        interval_percent=(percent(joint.low), percent(joint.high)),
        alpha=alpha,
        p_value=min(1.0, joint.p_value * adjust),
    )


def mean_ratios(levels: Sequence[Ratios]) -> Ratios:
    """The mean log ratio over all levels, per block; blocks that lack a level are left out.

    The mean of log ratios weighs every level alike, whatever its throughput. A block that lacks a level would
    average another curve, so it cannot be compared with the others.
    """
    if not levels:
        return Ratios({}, {})
    blocks = sorted(set(levels[0].lows).intersection(*(set(level.lows) for level in levels[1:])))
    return Ratios(
        {block: _mean([level.lows[block] for level in levels], -math.inf) for block in blocks},
        {block: _mean([level.highs[block] for level in levels], math.inf) for block in blocks},
    )


def _mean(values: Sequence[float], unknown: float) -> float:
    """The mean; `unknown` if it contains infinite values of both signs."""
    if math.inf in values and -math.inf in values:
        return unknown
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values)
