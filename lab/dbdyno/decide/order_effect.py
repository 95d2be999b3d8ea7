"""R10: the order effect, that is, whether it matters which variant of a block runs first.

The order is random and about balanced, so an order effect makes the interval wider and hardly shifts the
estimate. If the order effect is significant, its finding also gives the variant's effect without it
(cross-over estimate), because::

    log ratio of a block in which the variant ran later      = effect + order effect
    log ratio of a block in which the variant ran earlier    = effect - order effect

The blocks in which the baseline ran first and those in which the variant ran first are two independent
samples. Half the shift of their log ratios (variant to baseline) is the order effect. Half the shift of their
log ratios of the later to the earlier variant is the effect of the variant without the order effect (Koch
1972, Biometrics 28:577).

The shift is the median of all pairwise differences (Hodges & Lehmann 1963). Its interval is that of the
rank-sum test at 95 %: from the k-th smallest to the k-th largest of these differences, where k comes from the
null distribution of Mann and Whitney's U (Hollander, Wolfe & Chicken 2014, section 4.3): the exact one up to
`EXACT_MAX` pairs, else its normal approximation. It cannot reach a level of 1 % with 4 and 4 blocks, so
whether the finding is reported also depends on a t-test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtr

from dbdyno.stats.paired import ALPHA, Ratios
from dbdyno.stats.signed_rank import percent
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import OrderEffect

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
    later, earlier = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (np.isfinite(later).all() and np.isfinite(earlier).all()):
        raise ValueError("a shift needs finite values")
    if not later.size or not earlier.size:
        return None
    differences = np.sort((later[:, None] - earlier[None, :]).ravel())
    k = _cut_off(*sorted((later.size, earlier.size)), alpha)
    if k == 0:
        return None
    return Shift(float(np.median(differences)), float(differences[k - 1]), float(differences[-k]))


def shift_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of "no shift" by Student's t-test, for levels that few blocks do not reach by
    ranks; 1 with fewer than three values, or without any variation and shift.

    Samples with outliers or several modes make it larger rather than smaller (Box & Watson 1962, Biometrika
    49:93).
    """
    later, earlier = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    freedom = later.size + earlier.size - 2
    if freedom < 1 or not later.size or not earlier.size:
        return 1.0
    shifted = abs(float(later.mean() - earlier.mean()))
    squares = float(np.sum((later - later.mean()) ** 2) + np.sum((earlier - earlier.mean()) ** 2))
    error = math.sqrt(squares / freedom * (1.0 / later.size + 1.0 / earlier.size))
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


def order_effect(
    ratios: Ratios, trials: Sequence[MeasuredTrial], baseline: str, variant: str
) -> OrderEffect | None:
    """The order effect in one comparison, or in several that run in the same order; `trials` are the trials
    of their workloads.

    None if only a bound of some ratio is known, or if blocks are too few.
    """
    # Block and variant -> the lowest index of a trial.
    first: dict[tuple[int, str], int] = {}
    for trial in trials:
        key = (trial.block, trial.variant)
        first[key] = min(first.get(key, trial.index), trial.index)
    if not ratios.is_exact:
        return None
    later = [r for block, r in ratios.lows.items() if first[block, baseline] < first[block, variant]]
    earlier = [r for block, r in ratios.lows.items() if first[block, baseline] > first[block, variant]]
    position = shift(later, earlier, ALPHA)
    crossover = shift(later, [-ratio for ratio in earlier], ALPHA)
    if position is None or crossover is None:
        return None
    effect, ends = _halved(position)
    without, without_ends = _halved(crossover)
    return OrderEffect(
        effect_percent=effect,
        interval_percent=ends,
        blocks=(len(later), len(earlier)),
        crossover_percent=without,
        crossover_interval_percent=without_ends,
        p_value=shift_p_value(later, earlier),
    )


def _halved(shifted: Shift) -> tuple[float, tuple[float, float]]:
    """Half of a shift of log ratios, in percent: estimate and interval."""
    estimate, low, high = (percent(value / 2.0) for value in (shifted.estimate, shifted.low, shifted.high))
    return estimate, (low, high)
