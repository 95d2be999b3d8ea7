"""The precision that a number of blocks and a length of trials will give.

That of a number of blocks follows from the scatter of the blocks' log ratios.

For normal differences with standard deviation s, the interval of the signed-rank test after n blocks with
cut-off k has the mean half width h s, and a true difference of d s is found with a chance of 90 %. h and d
come from simulated differences with a fixed seed, so that they belong to the test that is used, and are the
same in every call.

The length of a trial that gives the most precision per minute follows from `Components` (Kalibera & Jones
2013, "Rigorous benchmarking in reasonable time", ISMM, equation 3).

The log ratio of a block has the variance B + W / t with trials of t seconds: B is what differs from block to
block, and W / t what the seconds of a trial leave. A block costs c + m t seconds, with m trials and an
overhead of c for starts, restores and warm-ups. The variance of a mean of blocks in a given time is in
proportion to (B + W / t) (c + m t), which is smallest at t = sqrt((c / m) (W / B)). The exact intervals of
few blocks are wider than such a mean's, so `design/planning.py` compares the half widths of whole blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Components:
    """Variance of a block's log ratio: the part between blocks, and that of one second of the trials."""

    between: float
    within: float

    def deviation(self, trial_s: float) -> float:
        """The standard deviation with trials of this length."""
        return math.sqrt(self.between + self.within / trial_s)


def components(ratios: Sequence[float], seconds: Sequence[Sequence[float]], loads: int) -> Components | None:
    """The components from the log ratios of the blocks, each the mean over `loads`, and the transactions of
    every second of each trial. None with too few of them.

    The seconds count as independent of each other. What they have in common belongs to the blocks.
    """
    usable = [
        np.asarray(second, dtype=float) for second in seconds if len(second) > 1 and np.mean(second) > 0.0
    ]
    if len(ratios) < 2 or not usable:
        return None
    trial_s = float(np.mean([len(entry) for entry in usable]))
    of_second = float(np.mean([np.var(entry, ddof=1) / np.mean(entry) ** 2 for entry in usable]))
    within = 2.0 * of_second / loads
    return Components(max(0.0, float(np.var(ratios, ddof=1)) - within / trial_s), within)
