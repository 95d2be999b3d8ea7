"""The effects of several runs: the difference of two, and the mean of repetitions, with intervals.

The runs are independent, so each has its own interval, and that of the difference is made from both (the
method of variance estimates recovery, MOVER: Zou & Donner 2008, Stat. Med. 27:1693)::

    low  = d - sqrt((second - second.low)^2  + (first.high - first)^2)       d = second - first
    high = d + sqrt((second.high - second)^2 + (first - first.low)^2)

It needs no equal noise in the two runs, which other machines do not have, and no fixed numbers of blocks: the
intervals allow for the looks of a run that stops when its verdict is sure. The interval of the rank-sum test,
the usual one for two samples, has neither: with 20 and 8 blocks whose noise is 1 to 3 it contains the true
difference in 89 % of the experiments instead of 95 %; this one in 96 % (tests/unit/test_stats_difference.py).
With intervals by the t-test this is the interval of Cochran & Cox (1957, Experimental Designs, section 4.14).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import stdtrit


@dataclass(frozen=True)
class Estimate:
    """An estimate and its interval, on the scale of logarithms. An unknown end is infinite."""

    value: float
    low: float
    high: float

    @classmethod
    def of_percent(cls, value: float, low: float, high: float) -> Estimate:
        """The same as changes in percent, of which -100 is an unknown low end."""
        return cls(*(math.log1p(one / 100.0) if one > -100.0 else -math.inf for one in (value, low, high)))


def mean_of_runs(values: Sequence[float], alpha: float) -> Estimate:
    """The mean of the effects of several runs of one comparison, with the interval of the t-test.

    Its width comes from the differences of the runs, so it contains what is fixed for a run and differs
    between runs, besides the noise of blocks. With one run the interval is unknown. Raises ValueError without
    finite values.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("a mean of runs needs finite values")
    centre, freedom = fmean(values), len(values) - 1
    if freedom == 0:
        return Estimate(centre, -math.inf, math.inf)
    half = float(stdtrit(freedom, 1.0 - alpha / 2.0)) * stdev(values) / math.sqrt(len(values))
    return Estimate(centre, centre - half, centre + half)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """How much higher the second is than the first; the lower of the two confidence levels holds.

    Raises ValueError if an estimate is not finite, or not within its interval.
    """
    for one in (first, second):
        if not (math.isfinite(one.value) and one.low <= one.value <= one.high):
            raise ValueError("a difference needs finite estimates within their intervals")
    value = second.value - first.value
    return Estimate(
        value,
        value - math.hypot(second.value - second.low, first.high - first.value),
        value + math.hypot(second.high - second.value, first.value - first.low),
    )
