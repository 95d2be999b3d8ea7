"""From pairs of values to effects: one per load point, and one for the whole curve.

::

    pairs per block and point -> log ratios -> estimate, Holm level, interval   (points)
                              -> mean over the points of a block -> the same    (curve, tested once)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.stats.holm import holm
from dbdyno.stats.signed_rank import Interval, hodges_lehmann, interval, p_value, percent

ALPHA = 0.05


@dataclass(frozen=True)
class Effect:
    """A change of variant against baseline, in percent of the baseline."""

    effect_percent: float
    # None where so few blocks cannot reach the level.
    interval_percent: tuple[float, float] | None
    # Level of this interval, after adjustment.
    alpha: float
    p_value: float
    blocks: int


def _effect(log_ratios: Sequence[float], alpha: float, p: float) -> Effect:
    found: Interval | None = interval(log_ratios, alpha)
    return Effect(
        effect_percent=percent(hodges_lehmann(log_ratios)),
        interval_percent=None if found is None else (percent(found.low), percent(found.high)),
        alpha=alpha,
        p_value=p,
        blocks=len(log_ratios),
    )


def effects(log_ratios: Sequence[Sequence[float]], alpha: float = ALPHA) -> tuple[Effect | None, ...]:
    """One effect per point, its interval at the level Holm gives it; None for a point without pairs.

    `log_ratios` holds, for each point, one log ratio per block. A point without pairs still counts in the
    family: a planned test that failed does not make the others easier.
    """
    p_values = [p_value(values) if len(values) else 1.0 for values in log_ratios]
    decisions = holm(p_values, alpha)
    return tuple(
        _effect(values, decision.alpha, p) if len(values) else None
        for values, decision, p in zip(log_ratios, decisions, p_values, strict=True)
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


def curve_effect(log_ratios: Sequence[float], alpha: float = ALPHA) -> Effect | None:
    """The effect over the whole curve: one number per block, tested once, so nothing is to be adjusted."""
    return _effect(log_ratios, alpha, p_value(log_ratios)) if len(log_ratios) else None
