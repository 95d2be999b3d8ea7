"""Tests the paired differences of hundreds of counters together (max-t sign-flip test).

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
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats.joint import sign_patterns

# Up to this number of blocks, all patterns are enumerated; beyond it, random patterns are used.
EXACT_BLOCKS = 12
# Added to every standard error, in log units, so that a tiny change is not significant however small its
# variation, and a counter that never varies has a finite statistic (Tusher et al. 2001, PNAS 98:5116).
FUDGE = 0.002
# Number of statistics that are computed at once, because more may not fit into memory.
PART = 1_000_000


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
    observed = _statistics(values, np.ones((1, values.shape[1])))[:, 0]
    patterns = sign_patterns(values.shape[1], EXACT_BLOCKS)
    parts = np.array_split(patterns, math.ceil(len(patterns) * len(values) / PART))
    largest = np.concatenate([_statistics(values, part).max(axis=0) for part in parts])
    # The observed pattern counts as one of the patterns; the factor allows for rounding errors.
    return [float(np.mean(largest >= one * (1.0 - 1e-9))) for one in observed]


def _statistics(values: NDArray[np.float64], signs: NDArray[np.float64]) -> NDArray[np.float64]:
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
