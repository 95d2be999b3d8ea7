"""Where a series has settled, and how far one that levels off still is from its end.

A server that was just started reads from disk, fills caches and plans statements; those seconds are not the
answer to the question. Three functions look at them:

- `mser5` cuts the beginning of one trial off. MSER-5 (White 1997, Simulation 69:323; White, Cobb & Spratt
  2000, WSC) averages the series in batches of five and cuts off the beginning whose removal makes the
  standard error of the remaining mean smallest. It needs no threshold: it weighs bias against the data that a
  longer cut throws away.
- `settle` finds the warm-up of a server from one long trial, by a threshold.
- `remaining` says what is still missing behind a warm-up, from how fast the change becomes smaller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Observations per batch; the 5 of MSER-5.
BATCH_SIZE = 5

# Batches at the end that cannot be the only ones left: a mean of very few has a small variance by chance
# (White 1997 excludes the last five).
TAIL_BATCHES = 5

# `settle`: a mean may differ from the settled one by this share, or by so many standard deviations of a
# mean where noise alone moves it farther.
SETTLED_WITHIN = 0.02
NOISE_WITHIN = 3.0
# Fewest means that `settle` can judge: thirds of two.
MEANS_MIN = 6
# Median of |x| of a standard normal variable.
NORMAL_QUARTILE = 0.6745

# `remaining`: time constants between these multiples of the three spans can be told from their means.
TAU_MIN, TAU_MAX = 0.01, 100.0
HALVINGS = 60


def mser5(series: Sequence[float], limit: int | None = None) -> int | None:
    """Observations to drop from the beginning of `series`: a multiple of five, at most `limit`.

    Without a limit at most half of the series. None for fewer than ten batches: too short to tell.
    """
    batches = len(series) // BATCH_SIZE
    if batches < 2 * TAIL_BATCHES:
        return None
    means = (
        np.asarray(series[: batches * BATCH_SIZE], dtype=np.float64).reshape(batches, BATCH_SIZE).mean(axis=1)
    )
    most = batches // 2 if limit is None else min(limit // BATCH_SIZE, batches - TAIL_BATCHES)
    # Squared standard error of the mean of what is left, for each number of batches dropped.
    errors = [float(np.var(means[drop:])) / (batches - drop) for drop in range(most + 1)]
    return int(np.argmin(errors)) * BATCH_SIZE


def settle(means: Sequence[float]) -> int | None:
    """Index of the first of `means` from which on all stay near the mean of the last third; None: never.

    Near is within 2 %, or within three standard deviations of a single mean where noise is larger. The noise
    comes from the differences of neighbours, which a slow change hardly moves, and from their median, which
    ignores the steep beginning. A change that is slow against the noise hides in that tolerance, so the
    thirds are compared too: where the last two differ surely, and what `remaining` expects beyond them is
    more than 2 %, nothing has settled. Raises ValueError for fewer than six means.
    """
    if len(means) < MEANS_MIN:
        raise ValueError(f"{len(means)} means; at least {MEANS_MIN} are needed")
    values = np.asarray(means, dtype=np.float64)
    third = len(values) // 3
    level = float(values[-third:].mean())
    if level <= 0.0 or not np.all(np.isfinite(values)):
        return None
    noise = _noise(values) / level
    if _still_moves(values, third, noise):
        return None
    within = max(SETTLED_WITHIN, NOISE_WITHIN * noise)
    outside = np.flatnonzero(np.abs(values / level - 1.0) > within)
    first = int(outside[-1]) + 1 if outside.size else 0
    return first if first < len(values) else None


def _noise(values: NDArray[np.float64]) -> float:
    """Standard deviation of a single value, from the differences of neighbours."""
    return float(np.median(np.abs(np.diff(values)))) / NORMAL_QUARTILE / math.sqrt(2.0)


def _still_moves(values: NDArray[np.float64], third: int, noise: float) -> bool:
    """Whether the last third surely differs from the one before it, and more is to come."""
    last = float(values[-third:].mean())
    middle = float(values[-2 * third : -third].mean())
    first = float(values[: -2 * third].mean())
    if min(first, middle) <= 0.0:
        # Something in its first third, nothing since, or nothing before: no law of approach fits.
        return middle <= 0.0
    late, early = math.log(last / middle), math.log(last / first)
    sure = abs(late) > max(SETTLED_WITHIN, NOISE_WITHIN * noise * math.sqrt(2.0 / third))
    edges = (0.0, float(len(values) - 2 * third), float(len(values) - third), float(len(values)))
    return sure and remaining(early, late, edges) > SETTLED_WITHIN


def remaining(early: float, late: float, edges: tuple[float, float, float, float]) -> float:
    """How far the mean of the last of three spans still is from where the series ends, as a log ratio.

    `edges` are the bounds of the spans in time, `early` is log(last / first), `late` log(last / middle). What
    is missing is taken to fade exponentially, so the ratio of the two changes gives the time constant.
    Infinite where the change does not become smaller: no end is in sight. Never negative.
    """
    if late == 0.0:
        return 0.0
    share = late / early if early else math.inf
    length = edges[3] - edges[0]
    if share <= 0.0 or share >= _fading(TAU_MAX * length, edges)[0]:
        return math.inf
    low, high = TAU_MIN * length, TAU_MAX * length
    for _ in range(HALVINGS):
        tau = math.sqrt(low * high)
        if _fading(tau, edges)[0] < share:
            low = tau
        else:
            high = tau
    return abs(late) * _fading(high, edges)[1]


def _fading(tau: float, edges: tuple[float, float, float, float]) -> tuple[float, float]:
    """Of a series whose gap fades with `tau`: late / early, and the gap in the last span / late."""
    missing = [
        tau / (end - begin) * (math.exp(-(begin - edges[0]) / tau) - math.exp(-(end - edges[0]) / tau))
        for begin, end in itertools.pairwise(edges)
    ]
    early, late = missing[0] - missing[2], missing[1] - missing[2]
    return late / early, missing[2] / late if late > 0.0 else 0.0
