"""Estimates the centre of paired differences, with its interval and test (Wilcoxon's signed rank).

There is one difference per block, because the block is the unit of replication. Estimate, interval and
p-value are all computed from the same sorted list, the Walsh averages ``(d_i + d_j) / 2`` for ``i <= j``, so
they always agree:

- the estimate is their median (Hodges & Lehmann 1963, Ann. Math. Stat. 34:598);
- the interval runs from the k-th smallest to the k-th largest (Hollander, Wolfe & Chicken 2014, section 3.3);
- the two-sided p-value is the smallest alpha whose interval excludes zero.

The signed-rank statistic of Wilcoxon (1945) is the number of positive Walsh averages (Tukey 1949). Up to
`EXACT_MAX` differences its null distribution is exact; beyond, it is the normal approximation with continuity
correction and with the variance reduced for ties. A Walsh average of exactly zero counts as evidence against
a difference, so the exact test is conservative if there are ties.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

# Maximum number of differences for the exact null distribution.
EXACT_MAX = 100


@dataclass(frozen=True)
class Interval:
    """A closed confidence interval."""

    low: float
    high: float
    # Probability that the interval does not contain the true value.
    alpha: float

    def excludes(self, value: float) -> bool:
        """Whether `value` is outside the interval."""
        return value < self.low or value > self.high


def percent(log_ratio: float) -> float:
    """A log ratio as a change in percent: (variant / baseline - 1) * 100; infinite if too large."""
    try:
        return math.expm1(log_ratio) * 100.0
    except OverflowError:
        return math.inf


def walsh_averages(
    differences: Sequence[float] | NDArray[np.float64], unknown: float | None = None
) -> NDArray[np.float64]:
    """The means of all n (n + 1) / 2 pairs, including each value with itself, in ascending order.

    The mean of infinity and -infinity is unknown: the result contains `unknown` instead. Raises ValueError if
    that is None.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or np.any(np.isnan(values)):
        raise ValueError("at least one difference is needed, and each must be a number")
    return _walsh_averages(tuple(values.tolist()), unknown)


@lru_cache(maxsize=256)
def _walsh_averages(differences: tuple[float, ...], unknown: float | None) -> NDArray[np.float64]:
    """The same, kept because estimate, interval and p-value need the same averages."""
    values = np.array(differences)
    rows, columns = _pairs(values.size)
    with np.errstate(invalid="ignore"):
        averages = (values[rows] + values[columns]) / 2.0
    if unknown is not None:
        averages[np.isnan(averages)] = unknown
    elif np.isnan(averages).any():
        raise ValueError("infinite differences of both signs have no mean")
    averages.sort()
    averages.flags.writeable = False
    return np.asarray(averages)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows, columns = np.triu_indices(n)
    return rows, columns


def hodges_lehmann(differences: Sequence[float] | NDArray[np.float64], unknown: float | None = None) -> float:
    """The median of the Walsh averages, which estimates the centre of symmetric differences.

    `unknown` as in `walsh_averages`; it is also the result if the two middle averages are infinity and
    -infinity.
    """
    averages = walsh_averages(differences, unknown)
    middle = averages[(averages.size - 1) // 2 : averages.size // 2 + 1]
    if unknown is not None and np.isinf(middle).all() and middle[0] != middle[-1]:
        return unknown
    return float(np.mean(middle))


@lru_cache(maxsize=EXACT_MAX + 1)
def null_counts(n: int) -> tuple[int, ...]:
    """For each value 0 .. n (n + 1) / 2 of the signed-rank statistic, the number of sign patterns that give
    it.

    These are the coefficients of the product of (1 + x^r) over all ranks r.
    """
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        for value, count in enumerate(counts):
            longer[value + rank] += count
        counts = longer
    return tuple(counts)


@lru_cache(maxsize=EXACT_MAX + 1)
def _cumulative(n: int) -> tuple[int, ...]:
    return tuple(itertools.accumulate(null_counts(n)))


def _tie_term(differences: NDArray[np.float64]) -> float:
    """By how much ties among the absolute differences reduce the variance: the sum of (t^3 - t) / 48."""
    _, sizes = np.unique(np.abs(differences), return_counts=True)
    return float(np.sum(sizes.astype(np.float64) ** 3 - sizes)) / 48.0


def _lower_tail(n: int, value: int, tie_term: float) -> float:
    """P(statistic <= value) under the null hypothesis."""
    if value < 0:
        return 0.0
    if n <= EXACT_MAX:
        return float(_cumulative(n)[value] / 2**n)
    variance = n * (n + 1) * (2 * n + 1) / 24.0 - tie_term
    return float(ndtr((value + 0.5 - n * (n + 1) / 4.0) / math.sqrt(variance)))


@lru_cache(maxsize=1024)
def cut_off(n: int, alpha: float, tie_term: float) -> int:
    """The k of the interval from the k-th smallest to the k-th largest Walsh average: the largest number with
    P(statistic <= k - 1) <= alpha / 2.
    """
    k = 0
    while k < n * (n + 1) // 4 and 2.0 * _lower_tail(n, k, tie_term) <= alpha:
        k += 1
    return k


def p_value(differences: Sequence[float] | NDArray[np.float64], unknown: float | None = None) -> float:
    """Two-sided p-value of the hypothesis that the centre of the differences is zero.

    `unknown` as in `walsh_averages`.
    """
    values = np.asarray(differences, dtype=np.float64)
    averages = walsh_averages(values, unknown)
    against = min(int(np.count_nonzero(averages <= 0)), int(np.count_nonzero(averages >= 0)))
    tie_term = 0.0 if values.size <= EXACT_MAX else _tie_term(values)
    return min(1.0, 2.0 * _lower_tail(values.size, against, tie_term))


def interval(
    differences: Sequence[float] | NDArray[np.float64], alpha: float, unknown: float | None = None
) -> Interval | None:
    """The signed-rank interval for the centre, with confidence 1 - alpha; None if the differences are too
    few.

    It excludes zero exactly if ``p_value(differences) <= alpha``. `unknown` as in `walsh_averages`.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it must be between 0 and 1")
    values = np.asarray(differences, dtype=np.float64)
    averages = walsh_averages(values, unknown)
    exact = values.size <= EXACT_MAX
    k = cut_off(values.size, alpha, 0.0 if exact else _tie_term(values))
    if k == 0:
        return None
    return Interval(low=float(averages[k - 1]), high=float(averages[-k]), alpha=alpha)


def blocks_needed(alpha: float) -> int:
    """The minimum number n of blocks with which the smallest two-sided p-value, 2 / 2^n, is at most `alpha`.

    It is 6 for 0.05, 7 for a third of that, and 8 for a sixth.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it must be between 0 and 1")
    return math.ceil(math.log2(2.0 / alpha) - 1e-12)
