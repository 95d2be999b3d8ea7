"""The precision that a number of blocks will give, from the scatter of the blocks' log ratios.

For normal differences with standard deviation s, the interval of the signed-rank test after n blocks with
cut-off k has the mean half width h s, and a true difference of d s is found with a chance of 90 %. h and d
come from simulated differences with a fixed seed, so that they belong to the test that is used, and are the
same in every call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import chdtri

from dbdyno.stats.signed_rank import walsh_averages

# Chance that a true difference is found, and confidence of the upper bound of the scatter.
POWER, CONFIDENCE = 0.9, 0.8
SAMPLES, SEED = 2_000, 1
# With more blocks the simulation takes seconds, and these constants of the normal approximation agree with it
# within 4 %.
SIMULATED_BLOCKS, HALF_WIDTH, DETECTED = 50, 1.05, 1.35


@lru_cache(maxsize=256)
def factors(blocks: int, cut_off: int) -> tuple[float, float] | None:
    """The factors h and d of an interval from the `cut_off`-th smallest to the `cut_off`-th largest Walsh
    average; None if the cut-off is 0, which is no interval.
    """
    if cut_off == 0:
        return None
    if blocks > SIMULATED_BLOCKS:
        mean, variance = blocks * (blocks + 1) / 4.0, blocks * (blocks + 1) * (2 * blocks + 1) / 24.0
        half = HALF_WIDTH * (mean - cut_off) / math.sqrt(variance * blocks)
        return half, half + DETECTED / math.sqrt(blocks)
    random = np.random.default_rng([SEED, blocks])
    ends = np.array(
        [
            (averages[cut_off - 1], averages[-cut_off])
            for averages in map(walsh_averages, random.normal(size=(SAMPLES, blocks)))
        ]
    )
    half = float(np.mean(ends[:, 1] - ends[:, 0])) / 2.0
    return half, float(np.quantile(-ends[:, 0], POWER))


def scatter(groups: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """The standard deviation within groups of differences, and its upper bound with 80 % confidence.

    The groups may have different means, like comparisons with different effects. None if they have no two
    differences.
    """
    freedom = sum(len(group) - 1 for group in groups if group)
    if freedom < 1:
        return None
    squares = sum(float(np.sum((np.asarray(group) - np.mean(group)) ** 2)) for group in groups if group)
    return math.sqrt(squares / freedom), math.sqrt(squares / float(chdtri(freedom, CONFIDENCE)))
