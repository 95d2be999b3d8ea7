"""Simultaneous intervals of several load levels, by inverting the joint sign-flip test.

Every level is tested on the same blocks, so their differences hang together, and a correction that ignores
this (Holm, Bonferroni) wastes blocks: ten levels would need nine of them. The sign-flip test does not: where
nothing differs, exchanging the variants of any block changes nothing, so every pattern of signs over the
blocks is as likely as the one that was seen. For level j and a candidate theta, row j is shifted by theta,
every other row by its own mean, and

::

    p_j(theta) = share of sign patterns in which the largest |t| of all rows reaches row j's own |t|
    J_j        = {theta : p_j(theta) > alpha}

A pattern reaches row j's |t| exactly for the theta of an interval around the row's mean: those between the
means of the blocks whose signs it keeps and of those that it changes, and those near enough to the mean that
another row's |t| is larger. So J_j is an interval, and its ends are ends of patterns: nothing is searched.

Each J_j alone is exact for symmetric differences; together they cover all truths with probability 1 - alpha
(Westfall & Young 1993, Resampling-Based Multiple Testing, ch. 2; Romano & Wolf 2005, J. Am. Stat. Assoc.
100:94). Six blocks are enough for any number of levels, and the order of the list does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Up to this number of blocks, all patterns are enumerated; beyond it, random patterns are used.
EXACT_BLOCKS = 16
RANDOM_PATTERNS = 4096
SEED = 20_240_607
# Smaller relative differences are rounding errors, which depend on the order of a summation.
ROUNDING = 1e-9

# Share of a row's sum of squares below which the variation around the mean is a rounding error.
NO_SPREAD = 1e-12

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointInterval:
    """The result of the joint test for one level. An end that the test cannot determine is infinite."""

    low: float
    high: float
    # P-value of the null hypothesis "this level's difference is zero", adjusted for all levels.
    p_value: float


def joint_intervals(rows: Sequence[Sequence[float]], alpha: float) -> list[JointInterval | None]:
    """One interval per row, in the same order; the intervals are simultaneous at confidence 1 - alpha.

    A row contains one difference per block, NaN if the block has none at this level; all rows have the same
    blocks. The result is None for a row with too few blocks to reach `alpha`. Raises ValueError for infinite
    values and for rows that differ in length.
    """
    if len({len(row) for row in rows}) > 1:
        raise ValueError("every row needs one difference per block, NaN where there is none")
    values = np.asarray(rows, dtype=np.float64)
    if values.size == 0:
        return [None] * len(rows)
    if np.isinf(values).any():
        raise ValueError("a joint interval needs finite differences")
    signs = sign_patterns(values.shape[1], EXACT_BLOCKS)
    centred = values - np.array([_mean(row) for row in values])[:, None]
    of_others = np.array([_statistics(row, signs) for row in centred])
    return [_invert(values[row], np.delete(of_others, row, axis=0), signs, alpha) for row in range(len(rows))]


def _mean(row: Array) -> float:
    present = row[~np.isnan(row)]
    return float(present.mean()) if present.size else 0.0


def _statistics(row: Array, signs: Array) -> Array:
    """|t| of one row under every pattern; 0 where it has no spread and no mean."""
    present = ~np.isnan(row)
    values, count = row[present], int(present.sum())
    if count < 2:
        return np.zeros(len(signs))
    means = signs[:, present] @ values / count
    return _t(means, float(values @ values), count)


def _t(means: Array, squares: float, count: int) -> Array:
    # Signs change the mean of a row, and not its sum of squares.
    deviations = np.maximum(squares - count * means**2, 0.0)
    small = deviations <= NO_SPREAD * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.abs(means) / np.sqrt(deviations / (count - 1) / count)
    statistics[small] = np.where(np.abs(means[small]) > 0.0, np.inf, 0.0)
    return np.asarray(statistics)


def _invert(row: Array, others: Array, signs: Array, alpha: float) -> JointInterval | None:
    present = ~np.isnan(row)
    values, count = row[present], int(present.sum())
    if count < 2 or 0.5 ** (count - 1) > alpha:
        return None
    largest = others.max(axis=0) if len(others) else np.zeros(len(signs))
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(count)
    with np.errstate(invalid="ignore"):
        # A balanced row of two values has a pattern of signs with an infinite |t|.
        reach = np.where(np.isinf(largest), np.inf, largest * error)
    kept, changed = _part_means(values, signs[:, present])
    tolerance = ROUNDING * float(np.abs(values).max())
    lows = np.minimum(np.minimum(kept, changed), mean - reach) - tolerance
    highs = np.maximum(np.maximum(kept, changed), mean + reach) + tolerance
    # As many patterns as may reach a theta outside.
    rejected = math.floor(alpha * len(signs) * (1.0 + ROUNDING))
    return JointInterval(
        low=float(np.partition(lows, rejected)[rejected]),
        high=-float(np.partition(-highs, rejected)[rejected]),
        p_value=float(np.mean((lows <= 0.0) & (highs >= 0.0))),
    )


def _part_means(values: Array, signs: Array) -> tuple[Array, Array]:
    """Per pattern the means of the values whose signs it keeps and of those that it changes.

    Infinite, of opposite signs, where it changes none or all: such a pattern reaches every |t|.
    """
    keeps = np.count_nonzero(signs > 0.0, axis=1)
    changes = len(values) - keeps
    sums = (values.sum() + signs @ values) / 2.0
    whole = (keeps == 0) | (changes == 0)
    kept = np.where(whole, -np.inf, sums / np.maximum(keeps, 1))
    changed = np.where(whole, np.inf, (values.sum() - sums) / np.maximum(changes, 1))
    return kept, changed


@lru_cache(maxsize=32)
def sign_patterns(blocks: int, exact: int) -> Array:
    """All patterns of signs for up to `exact` blocks, else random ones, one per row; the first row is the
    observed pattern.

    The first sign is fixed, because a pattern and its opposite have the same statistics.
    """
    if blocks <= exact:
        numbers = np.arange(2 ** (blocks - 1))
        bits = (numbers[:, None] >> np.arange(blocks - 1)) & 1
        return np.column_stack([np.ones(len(numbers)), 1.0 - 2.0 * bits])
    random = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(RANDOM_PATTERNS, blocks))
    return np.vstack([np.ones((1, blocks)), random])
