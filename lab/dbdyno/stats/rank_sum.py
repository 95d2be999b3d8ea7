"""Estimates the shift between two independent samples, with the interval of the rank-sum test.

In a cross-over design the blocks in which the baseline ran first and those in which the variant ran first are
two samples. Half the shift of their log ratios (variant to baseline) is the order effect. Half the shift of
their log ratios of the later to the earlier variant is the effect of the variant without the order effect
(Koch 1972, Biometrics 28:577).

Estimate: the median of all pairwise differences (Hodges & Lehmann 1963). Interval: from the k-th smallest to
the k-th largest of these differences, where k comes from the null distribution of Mann and Whitney's U
(Hollander, Wolfe & Chicken 2014, section 4.3): the exact one up to `EXACT_MAX` pairs, else its normal
approximation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtr

# Maximum number of pairs for the exact null distribution.
EXACT_MAX = 2_500


@dataclass(frozen=True)
class Shift:
    """How much higher the first sample is than the second: estimate and interval."""

    estimate: float
    low: float
    high: float


def shift(first: Sequence[float], second: Sequence[float], alpha: float) -> Shift | None:
    """The shift and its interval at confidence 1 - alpha; None if the samples are too small to reach it.

    Raises ValueError for values that are not finite.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ValueError("a shift needs finite values")
    if not one.size or not other.size:
        return None
    differences = np.sort((one[:, None] - other[None, :]).ravel())
    k = _cut_off(*sorted((one.size, other.size)), alpha)
    if k == 0:
        return None
    return Shift(float(np.median(differences)), float(differences[k - 1]), float(differences[-k]))


def shift_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of "no shift" by Student's t-test, for levels that few blocks do not reach by
    ranks; 1 with fewer than three values, or without any variation and shift.

    Samples with outliers or several modes make it larger rather than smaller (Box & Watson 1962, Biometrika
    49:93).
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    freedom = one.size + other.size - 2
    if freedom < 1 or not one.size or not other.size:
        return 1.0
    shifted = abs(float(one.mean() - other.mean()))
    squares = float(np.sum((one - one.mean()) ** 2) + np.sum((other - other.mean()) ** 2))
    error = math.sqrt(squares / freedom * (1.0 / one.size + 1.0 / other.size))
    if error == 0.0:
        return 0.0 if shifted > 0.0 else 1.0
    return float(2.0 * stdtr(freedom, -shifted / error))


@lru_cache(maxsize=256)
def _cut_off(small: int, large: int, alpha: float) -> int:
    """The largest k with P(U <= k - 1) <= alpha / 2."""
    pairs = small * large
    if pairs > EXACT_MAX:
        deviation = math.sqrt(pairs * (small + large + 1) / 12.0)
        return max(0, math.floor(pairs / 2.0 + float(ndtri(alpha / 2.0)) * deviation))
    counts = null_counts(small, large)
    whole = sum(counts)
    below = itertools.accumulate(counts)
    return sum(2 * count <= alpha * whole for count in itertools.islice(below, pairs // 2))


@lru_cache(maxsize=256)
def null_counts(small: int, large: int) -> tuple[int, ...]:
    """For each value 0 .. small * large of U, the number of arrangements of both samples that give it.

    These are the coefficients of the Gaussian binomial, the product of (1 - x^(large + i)) / (1 - x^i) over
    i.
    """
    degree = small * large
    counts = [1] + [0] * degree
    for step in range(1, small + 1):
        for power in range(degree, large + step - 1, -1):
            counts[power] -= counts[power - large - step]
        for power in range(step, degree + 1):
            counts[power] += counts[power - step]
    return tuple(counts)
