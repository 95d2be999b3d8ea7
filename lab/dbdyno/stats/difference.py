"""The effects of several runs: the difference of two, and the mean of repetitions, with intervals.

The runs are independent, so each has its own interval, and that of the difference is made from both (the
method of variance estimates recovery, MOVER: Zou & Donner 2008, Stat. Med. 27:1693)::

    low  = d - sqrt((second - second.low)^2  + (first.high - first)^2)       d = second - first
    high = d + sqrt((second.high - second)^2 + (first - first.low)^2)

It needs no equal noise in the two runs, which other machines do not have, and no fixed numbers of blocks: the
intervals allow for the looks of a run that stops when its verdict is decided. The interval of the rank-sum
test, the usual one for two samples, has neither: with 20 and 8 blocks whose noise is 1 to 3 it contains the
true difference in 89 % of the experiments instead of 95 %; this one in 96 %
(tests/unit/test_stats_difference.py). With intervals by the t-test this is the interval of Cochran & Cox
(1957, Experimental Designs, section 4.14).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.special import stdtrit

from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.signed_rank import percent


def mean_of_runs(values: Sequence[float], alpha: float) -> Effect:
    """The mean of the effects of several runs of one comparison, with the interval of the t-test.

    `values` are log ratios, one per run. The width of the interval comes from the differences of the runs, so
    it contains what is fixed for a run and differs between runs, besides the noise of blocks. With one run
    the interval is unknown. Raises ValueError without finite values.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("a mean of runs needs finite values")
    centre, freedom, half = fmean(values), len(values) - 1, math.inf
    if freedom:
        half = float(stdtrit(freedom, 1.0 - alpha / 2.0)) * stdev(values) / math.sqrt(len(values))
    ends = percent(centre - half), percent(centre + half)
    return Effect(percent(centre), ends, alpha, p_value=1.0, blocks=len(values))


def difference(first: Effect, second: Effect) -> Effect | None:
    """The change from the first effect to the second, as the ratio of their ratios; the lower of the two
    confidence levels holds. The number of blocks is the smaller one.

    None if one of the effects is only a bound, or a ratio of zero or infinity. Without the interval of one of
    them the difference has none.
    """
    if not (is_exact_ratio(first) and is_exact_ratio(second)):
        return None
    (first_log, one_low, one_high), (second_log, other_low, other_high) = _logs(first), _logs(second)
    value = second_log - first_log
    ends = (
        percent(value - math.hypot(second_log - other_low, one_high - first_log)),
        percent(value + math.hypot(other_high - second_log, first_log - one_low)),
    )
    has_interval = None not in (first.interval_percent, second.interval_percent)
    return Effect(
        effect_percent=percent(value),
        interval_percent=ends if has_interval else None,
        alpha=max(first.alpha, second.alpha),
        p_value=1.0,
        blocks=min(first.blocks, second.blocks),
    )


def is_exact_ratio(effect: Effect) -> bool:
    """Whether the estimate is exact, and neither zero nor infinite."""
    return effect.bound == Bound.EXACT and -100.0 < effect.effect_percent < math.inf


def log_ratio(effect_percent: float) -> float:
    """A change in percent as a log ratio; -infinity for -100, an unknown low end."""
    return math.log1p(effect_percent / 100.0) if effect_percent > -100.0 else -math.inf


def _logs(effect: Effect) -> tuple[float, float, float]:
    """The log ratio, and the ends of its interval; infinite without one."""
    low, high = effect.interval_percent or (-100.0, math.inf)
    value = effect.effect_percent
    # Rounding of logarithms and exponentials must not place the estimate outside.
    return log_ratio(value), log_ratio(min(low, value)), log_ratio(max(high, value))
