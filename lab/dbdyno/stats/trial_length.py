"""The length of a trial that gives the most precision per minute (Kalibera & Jones 2013, "Rigorous
benchmarking in reasonable time", ISMM, equation 3).

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

import numpy as np


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
    usable = [np.asarray(one, dtype=float) for one in seconds if len(one) > 1 and np.mean(one) > 0.0]
    if len(ratios) < 2 or not usable:
        return None
    trial_s = float(np.mean([len(one) for one in usable]))
    of_second = float(np.mean([np.var(one, ddof=1) / np.mean(one) ** 2 for one in usable]))
    within = 2.0 * of_second / loads
    return Components(max(0.0, float(np.var(ratios, ddof=1)) - within / trial_s), within)
