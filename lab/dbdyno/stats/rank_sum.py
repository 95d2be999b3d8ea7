"""The shift between two independent samples: estimate and interval of the rank-sum test.

In a cross-over design the blocks in which the baseline ran first and those in which the variant ran first are
two samples. Half the shift of their log ratios is what the position in the order does; half the shift of
their position differences is what the variant does, whatever the position does (Koch 1972, Biometrics
28:577).

Estimate: the median of all pairwise differences (Hodges & Lehmann 1963). Interval: the k-th smallest and the
k-th largest of them, k from the null distribution of Mann and Whitney's U (Hollander, Wolfe & Chicken 2014,
section 4.3), counted exactly up to `EXACT_MAX` pairs and by the normal approximation above.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

# Largest number of pairs whose null distribution is counted exactly.
EXACT_MAX = 2_500


@dataclass(frozen=True)
class Shift:
    """How much higher the first sample lies than the second."""

    estimate: float
    low: float
    high: float


def shift(first: Sequence[float], second: Sequence[float], alpha: float) -> Shift | None:
    """The shift and its interval at confidence 1 - alpha; None where the samples are too small to reach it.

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
    """How many of the arrangements of both samples give each value 0 .. small * large of U.

    The coefficients of the Gaussian binomial: the product of (1 - x^(large + i)) / (1 - x^i), one i at a
    time. Exact integers.
    """
    degree = small * large
    counts = [1] + [0] * degree
    for step in range(1, small + 1):
        for power in range(degree, large + step - 1, -1):
            counts[power] -= counts[power - large - step]
        for power in range(step, degree + 1):
            counts[power] += counts[power - step]
    return tuple(counts)
