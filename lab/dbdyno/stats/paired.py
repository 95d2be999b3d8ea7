"""From pairs of values to effects: one per load point, and one for the whole curve.

::

    pairs per block and point -> log ratios -> estimate, Holm level, interval   (points)
                              -> mean over the points of a block -> the same    (curve, tested once)

A log ratio may be known by bounds alone, where a percentile is "more than x". Estimate, interval and the
signed-rank statistic never fall when a difference rises, so over all that the log ratios may be, each of them
lies between its value at all the lower bounds and its value at all the upper ones: what is printed is
certain, however the latencies would have ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dbdyno.stats.holm import holm
from dbdyno.stats.signed_rank import hodges_lehmann, interval, p_value, percent

ALPHA = 0.05


class Bound(StrEnum):
    """What an estimate is."""

    EXACT = "exact"
    AT_LEAST = "at-least"
    AT_MOST = "at-most"


@dataclass(frozen=True)
class Effect:
    """A change of variant against baseline, in percent of the baseline."""

    effect_percent: float
    # None where so few blocks cannot reach the level. An end that nothing is known of is -100 or infinity.
    interval_percent: tuple[float, float] | None
    # Level of this interval, after adjustment.
    alpha: float
    p_value: float
    blocks: int
    bound: Bound = Bound.EXACT


def _effect(lows: Sequence[float], highs: Sequence[float], alpha: float) -> Effect:
    low, high = interval(lows, alpha), interval(highs, alpha)
    least, most = hodges_lehmann(lows), hodges_lehmann(highs)
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
    """The largest p-value within the bounds: 1 where they leave the sign open, else the nearer end's."""
    if hodges_lehmann(lows) <= 0.0 <= hodges_lehmann(highs):
        return 1.0 if list(lows) != list(highs) else p_value(lows)
    return max(p_value(lows), p_value(highs))


def effects(
    log_ratios: Sequence[Sequence[float]],
    alpha: float = ALPHA,
    upper: Sequence[Sequence[float]] | None = None,
) -> tuple[Effect | None, ...]:
    """One effect per point, its interval at the level Holm gives it; None for a point without pairs.

    `log_ratios` holds, for each point, one log ratio per block; with `upper` they are lower bounds, and those
    the upper ones. A point without pairs still counts in the family: a planned test that failed does not make
    the others easier.
    """
    bounds = list(zip(log_ratios, upper if upper is not None else log_ratios, strict=True))
    p_values = [_p_value(lows, highs) if len(lows) else 1.0 for lows, highs in bounds]
    return tuple(
        _effect(lows, highs, decision.alpha) if len(lows) else None
        for (lows, highs), decision in zip(bounds, holm(p_values, alpha), strict=True)
    )


def curve_log_ratios(by_point: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean log ratio over all points, per block; blocks that lack a point are left out.

    The mean of log ratios weighs every point alike, whatever its throughput. A block that lacks a point would
    average another curve, so it cannot stand beside the others.
    """
    if not by_point:
        return {}
    complete = set(by_point[0]).intersection(*map(set, by_point[1:]))
    return {block: float(np.mean([point[block] for point in by_point])) for block in sorted(complete)}


def curve_effect(
    log_ratios: Sequence[float], alpha: float = ALPHA, upper: Sequence[float] | None = None
) -> Effect | None:
    """The effect over the whole curve: one number per block, tested once, so nothing is to be adjusted.

    With `upper` the log ratios are lower bounds, and those the upper ones.
    """
    return _effect(log_ratios, upper if upper is not None else log_ratios, alpha) if len(log_ratios) else None
