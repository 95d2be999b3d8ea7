"""Simultaneous intervals of effects at several loads, by inverting the joint sign-flip test.

All loads are measured in the same blocks, so their differences are correlated. A correction that ignores this
(Holm, Bonferroni) needs more blocks: nine for ten loads. The sign-flip test needs six: if the variants are
equal, swapping them in any block changes nothing, so every pattern of signs over the blocks is as likely as
the observed one. The differences are rows, one per load, with one value per block. For row j and a candidate
effect theta, row j is shifted by theta, every other row by its own mean, and

::

p_j(theta) = share of sign patterns in which the largest |t| of all rows is at least the observed |t| of row j
J_j        = {theta : p_j(theta) > alpha}

For each pattern, the theta for which its largest |t| is at least that of row j form an interval around the
mean of the row. It contains every theta between the mean of the blocks whose signs the pattern keeps and the
mean of those whose signs it changes, and every theta so near to the mean that another row has the larger |t|.
So J_j is an interval too, and its ends are ends of such intervals, so they are computed without a search.

Each J_j is exact for symmetric differences. All of them together contain the true values with probability 1 -
alpha (Westfall & Young 1993, Resampling-Based Multiple Testing, ch. 2; Romano & Wolf 2005, J. Am. Stat.
Assoc. 100:94). Six blocks are enough for any number of loads, and the order of the rows does not matter.

A difference is infinite if a server failed. It has no mean, so it counts as a large finite one; `finite_row`
says how large.

`family_p_values` tests the paired differences of hundreds of counters together (max-t sign-flip test).

Tests at 5 % each would find dozens of changes between two identical servers. With Holm's correction eight
blocks could not find any, because the signed-rank test has no p-value below 2 / 2^8. The joint sign-flip test
can: if the variants are equal, swapping them in any block changes nothing, so every pattern of signs over the
blocks is as likely as the observed one. The test takes the largest statistic of all counters for each
pattern. The p-value of a counter is the share of patterns whose largest statistic is at least that of the
counter (Westfall & Young 1993, Resampling-Based Multiple Testing, ch. 4; for sign changes Nichols & Holmes
2002, Hum. Brain Mapp. 15:1). The chance of even one false positive is at most the significance level, however
the counters are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Up to this number of blocks, all patterns are enumerated; beyond it, random patterns are used.
EXACT_BLOCKS = 16
RANDOM_PATTERNS = 4096
SEED = 20_240_607
# Smaller relative differences are rounding errors.
ROUNDING = 1e-9
# Share of a row's sum of squares below which the variation around the mean is a rounding error.
VARIATION_MIN = 1e-12
# Size of infinite values in a row without other ones. As a log ratio it is -100 % or infinite.
FAR = 1000.0

# The same number for tests of hundreds of counters.
EXACT_BLOCKS_OF_COUNTERS = 12
# Added to every standard error, in log units, so that a tiny change is not significant however small its
# variation, and a counter that never varies has a finite statistic (Tusher et al. 2001, PNAS 98:5116).
FUDGE = 0.002
# Number of statistics that are computed at once, because more may not fit into memory.
STATISTICS_AT_ONCE = 1_000_000

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointInterval:
    """The result of the joint test for one row. An end that the test cannot determine is infinite."""

    low: float
    high: float
    # P-value of the null hypothesis that the effect of this row is zero, adjusted for all rows.
    p_value: float


def joint_intervals(
    rows: Sequence[Sequence[float]], alpha: float, selected: Collection[int] | None = None
) -> list[JointInterval | None]:
    """One interval per row, in the same order; the intervals are simultaneous with confidence 1 - alpha.

    A row contains one difference per block, NaN if the block has none; all rows have the same blocks. The
    result is None for a row with too few blocks to reach `alpha`, and for those not `selected`, if given.
    Raises ValueError for rows of different lengths.
    """
    if len({len(row) for row in rows}) > 1:
        raise ValueError("every row needs one difference per block, NaN where there is none")
    if not rows or not rows[0]:
        return [None] * len(rows)
    values = np.array([finite_row(np.array(row, dtype=np.float64)) for row in rows])
    signs = sign_patterns(values.shape[1], EXACT_BLOCKS)
    centred = values - np.array([mean(row) for row in values])[:, None]
    largest, second, owner = _two_largest(centred, signs)
    return [
        _invert(values[row], np.where(owner == row, second, largest), signs, alpha)
        if selected is None or row in selected
        else None
        for row in range(len(rows))
    ]


def _two_largest(rows: Array, signs: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """For each pattern the largest |t| of the rows, the second largest, and the row that has the largest."""
    largest, second = np.zeros(len(signs)), np.zeros(len(signs))
    owner = np.full(len(signs), -1)
    for number, row in enumerate(rows):
        of_row = _statistics(row, signs)
        is_largest = of_row > largest
        second = np.where(is_largest, largest, np.maximum(second, of_row))
        largest = np.where(is_largest, of_row, largest)
        owner[is_largest] = number
    return largest, second, owner


def finite_row(row: Array) -> Array:
    """The row, in which infinite values are finite ones of the same sign.

    They are as far from zero as the farthest finite value, and at least twice as far as the mean one, because
    the largest of n ranks is about twice the mean rank. No sign influences this distance, so every pattern of
    signs stays as likely as the observed one if the effect is zero.
    """
    if not np.isinf(row).any():
        return row
    sizes = np.abs(row[np.isfinite(row)])
    distance = max(sizes.max(), 2.0 * sizes.mean()) if sizes.any() else FAR
    return np.asarray(np.clip(row, -distance, distance))


def mean(row: Array) -> float:
    """The mean of the values that are present; 0 without any."""
    present = row[~np.isnan(row)]
    return float(present.mean()) if present.size else 0.0


def _statistics(row: Array, signs: Array) -> Array:
    """|t| of one row under every pattern; 0 if mean and variation are 0."""
    present = ~np.isnan(row)
    values, count = row[present], int(present.sum())
    if count < 2:
        return np.zeros(len(signs))
    means = signs[:, present] @ values / count
    return np.asarray(np.sqrt(squares_of_t(means**2, values @ values / count, count - 1)))


def squares_of_t(means: Array, squares: Array | np.float64, freedom: Array | int) -> Array:
    """The square of t, from the square of the mean under each pattern and the mean square of the row."""
    # A pattern of signs changes the mean of a row but not its sum of squares.
    rest = squares - means
    is_rounding = rest <= VARIATION_MIN * squares
    rest[is_rounding] = 1.0
    statistics = means * freedom / rest
    statistics[is_rounding] = np.where(means[is_rounding] > 0.0, np.inf, 0.0)
    return np.asarray(statistics)


def _invert(row: Array, largest: Array, signs: Array, alpha: float) -> JointInterval | None:
    """The interval of one row; `largest` is the largest |t| of the other rows under every pattern."""
    present = ~np.isnan(row)
    values, count = row[present], int(present.sum())
    if count < 2 or 0.5 ** (count - 1) > alpha:
        return None
    centre, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(count)
    with np.errstate(invalid="ignore"):
        # An infinite |t| of another row times a standard error of 0 would be NaN.
        reach = np.where(np.isinf(largest), np.inf, largest * error)
    kept, changed = _part_means(values, signs[:, present])
    tolerance = ROUNDING * float(np.abs(values).max())
    lows = np.minimum(np.minimum(kept, changed), centre - reach) - tolerance
    highs = np.maximum(np.maximum(kept, changed), centre + reach) + tolerance
    # A theta outside the interval has a p-value of at most alpha: at most this many patterns contain it.
    rejected = math.floor(alpha * len(signs) * (1.0 + ROUNDING))
    return JointInterval(
        low=float(np.partition(lows, rejected)[rejected]),
        high=-float(np.partition(-highs, rejected)[rejected]),
        p_value=float(np.mean((lows <= 0.0) & (highs >= 0.0))),
    )


def _part_means(values: Array, signs: Array) -> tuple[Array, Array]:
    """For each pattern, the mean of the values whose signs it keeps, and of those whose signs it changes.

    If it keeps or changes all, the two are -infinity and infinity: the |t| of such a pattern is always the
    observed one.
    """
    keeps = np.count_nonzero(signs > 0.0, axis=1)
    changes = len(values) - keeps
    sums = (values.sum() + signs @ values) / 2.0
    is_uniform = (keeps == 0) | (changes == 0)
    kept = np.where(is_uniform, -np.inf, sums / np.maximum(keeps, 1))
    changed = np.where(is_uniform, np.inf, (values.sum() - sums) / np.maximum(changes, 1))
    return kept, changed


@lru_cache(maxsize=32)
def sign_patterns(blocks: int, exact: int) -> Array:
    """Patterns of signs, one per row: all of them for up to `exact` blocks, else random ones.

    The first row is the observed pattern. If all are enumerated, the first sign is fixed, because a pattern
    and its opposite have the same |t|.
    """
    if blocks <= exact:
        numbers = np.arange(2 ** (blocks - 1))
        bits = (numbers[:, None] >> np.arange(blocks - 1)) & 1
        return np.column_stack([np.ones(len(numbers)), 1.0 - 2.0 * bits])
    random = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(RANDOM_PATTERNS, blocks))
    return np.vstack([np.ones((1, blocks)), random])


def family_p_values(differences: Sequence[Sequence[float]]) -> list[float]:
    """A p-value for each row, adjusted for all rows; a row contains one finite difference per block, NaN if
    the block has none.

    Raises ValueError if rows differ in length. With fewer than two differences the p-value is 1.
    """
    if len({len(row) for row in differences}) > 1:
        raise ValueError("every row needs one difference per block")
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0 or values.shape[1] < 2:
        return [1.0] * len(differences)
    observed = _fudged_statistics(values, np.ones((1, values.shape[1])))[:, 0]
    patterns = sign_patterns(values.shape[1], EXACT_BLOCKS_OF_COUNTERS)
    parts = np.array_split(patterns, math.ceil(len(patterns) * len(values) / STATISTICS_AT_ONCE))
    largest = np.concatenate([_fudged_statistics(values, part).max(axis=0) for part in parts])
    # The observed pattern counts as one of the patterns; the factor allows for rounding errors.
    return [float(np.mean(largest >= entry * (1.0 - 1e-9))) for entry in observed]


def _fudged_statistics(values: Array, signs: Array) -> Array:
    """|mean| / (standard error + fudge), of every row under every pattern: rows x patterns; 0 with fewer than
    two differences.
    """
    counts = np.count_nonzero(~np.isnan(values), axis=1)[:, None]
    present = np.nan_to_num(values)
    means = present @ signs.T / np.maximum(counts, 1)
    # A pattern of signs changes the mean of a row but not its sum of squares.
    squares = np.sum(present**2, axis=1)[:, None] - counts * means**2
    errors = np.sqrt(np.maximum(squares, 0.0) / np.maximum(counts * (counts - 1), 1))
    return np.asarray(np.where(counts < 2, 0.0, np.abs(means) / (errors + FUDGE)))
