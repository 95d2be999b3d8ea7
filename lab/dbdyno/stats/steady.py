"""Where a series has settled: the MSER-5 cut.

A server that was just started reads from disk, fills caches and plans statements; those seconds are not the
answer to the question. MSER-5 (White 1997, Simulation 69:323; White, Cobb & Spratt 2000, WSC) averages the
series in batches of five and cuts off the beginning whose removal makes the standard error of the remaining
mean smallest. It needs no threshold, which is why it is used here: it weighs bias against the data that a
longer cut throws away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Observations per batch; the 5 of MSER-5.
BATCH_SIZE = 5

# Batches at the end that cannot be the only ones left: a mean of very few has a small variance by chance
# (White 1997 excludes the last five).
TAIL_BATCHES = 5


@dataclass(frozen=True)
class Cut:
    """How much of a series is warm-up."""

    # Observations to drop from the beginning; a multiple of the batch size.
    observations: int
    # False when the best cut lies in the second half: the series had not settled, and `observations` is only
    # a half.
    settled: bool


def mser5(series: Sequence[float]) -> Cut:
    """The MSER-5 cut of `series`, sought in its first half.

    A series too short for it (fewer than ten batches) is not cut and not called settled.
    """
    batches = len(series) // BATCH_SIZE
    if batches < 2 * TAIL_BATCHES:
        return Cut(0, False)
    means = (
        np.asarray(series[: batches * BATCH_SIZE], dtype=np.float64).reshape(batches, BATCH_SIZE).mean(axis=1)
    )
    candidates = batches - TAIL_BATCHES + 1
    # Squared standard error of the mean of what is left, for each number of batches dropped.
    errors = np.array([np.var(means[drop:]) / (batches - drop) for drop in range(candidates)])
    half = batches // 2
    best, best_in_half = int(np.argmin(errors)), int(np.argmin(errors[: half + 1]))
    return Cut(best_in_half * BATCH_SIZE, settled=best <= half)
