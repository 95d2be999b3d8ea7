"""Where a series has settled, and how far a converging one is still from its limit.

A server that was just started reads from disk, fills caches and plans statements; those seconds are not the
answer to the question. Three functions look at them:

- `mser5` cuts the beginning of one trial off. MSER-5 (White 1997, Simulation 69:323; White, Cobb & Spratt
  2000, WSC) averages the series in batches of five and cuts off the beginning whose removal makes the
  standard error of the remaining mean smallest. It needs no threshold: it weighs bias against the data that a
  longer cut throws away.
- `settle` finds how long a server needs to become warm, from one warm-up trial.
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

# `settle`: seconds of one mean; a mean may differ from the settled one by this share, or by so many standard
# deviations of a mean where noise alone moves it farther.
MEAN_S = 5
SETTLED_WITHIN = 0.02
NOISE_WITHIN = 3.0
# Fewest means: thirds of two.
MEANS_MIN = 6
# So many means in a row: fewer outside later are a stall and no warm-up.
MEANS_IN_A_ROW = 3
# How much better than a constant an exponential or a step must fit, as an F ratio:
# chance reaches 8 in 4 of 1,000 series of a minute, the best time constant or step taken.
F_MIN = 8.0
TAUS = 40
# Largest autocorrelation of what a fit leaves that is allowed for.
CORRELATION_MAX = 0.9
# Median of |x| of a standard normal variable.
NORMAL_QUARTILE = 0.6745

# `remaining`: time constants between these multiples of the three spans can be distinguished by their means.
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


def settle(series: Sequence[float]) -> float | None:
    """Seconds until a series of one value a second has settled; None where it has not at its end.

    It has settled from the first of three means of 5 s in a row that lie near the median of the last third:
    within 2 %, or three standard deviations of a mean where noise is larger. Noise comes from differences of
    neighbours, which a slow change hardly moves, and from their median, which ignores a steep beginning. What
    leaves that range later is a stall of the server or of the machine, and no longer warm-up would avoid it.

    A slow approach hides in noise. So an exponential and a step are fitted too: where the closer of the two
    is significant, the series has settled no earlier than the step, or than 2 % of the approach are left. A
    step in the last third is none: nobody knows whether it lasts.
    Raises ValueError for fewer than six means.
    """
    count = len(series) // MEAN_S
    if count < MEANS_MIN:
        raise ValueError(f"{len(series)} seconds; at least {MEANS_MIN * MEAN_S} are needed")
    values = np.asarray(series[: count * MEAN_S], dtype=np.float64)
    means = values.reshape(count, MEAN_S).mean(axis=1)
    level = float(np.median(means[-(count // 3) :]))
    if level <= 0.0 or not np.all(np.isfinite(values)):
        return None
    noise = max(_noise(means), _noise(values) / math.sqrt(MEAN_S)) / level
    within = max(SETTLED_WITHIN, NOISE_WITHIN * noise)
    inside = np.abs(means / level - 1.0) <= within
    settled_s = max(float(_first_run(inside) * MEAN_S), _change_s(values / level, noise))
    return settled_s if settled_s < count * MEAN_S else None


def _first_run(inside: NDArray[np.bool_]) -> int:
    """Where the first run of true values begins that is long enough; behind the end where there is none."""
    runs = np.lib.stride_tricks.sliding_window_view(inside, MEANS_IN_A_ROW).all(axis=1)
    return int(np.argmax(runs)) if runs.any() else int(inside.size)


def _noise(values: NDArray[np.float64]) -> float:
    """Standard deviation of a single value, from the differences of neighbours."""
    return float(np.median(np.abs(np.diff(values)))) / NORMAL_QUARTILE / math.sqrt(2.0)


def _change_s(values: NDArray[np.float64], noise: float) -> float:
    """Seconds until a step, or until 2 % are left of an exponential approach, whichever fits better.

    0 where it is not significant. `noise` is the standard deviation of a mean of 5 s.
    """
    count = values.size
    around = float(np.sum((values - values.mean()) ** 2))
    rest, seconds, fitted = min(_exponential(values), _step(values), key=lambda fit: fit[0])
    # Seconds are correlated where noise is slow: then the means have more of it than the seconds explain, and
    # what drifts on the machine looks like an approach.
    variance = max(rest / (count - 3), MEAN_S * noise**2, np.finfo(np.float64).tiny)
    left = (values - fitted).reshape(-1, MEAN_S).mean(axis=1)
    correlation = float(left[1:] @ left[:-1]) / max(float(left @ left), np.finfo(np.float64).tiny)
    correlation = min(max(correlation, 0.0), CORRELATION_MAX)
    variance *= (1.0 + correlation) / (1.0 - correlation)
    return seconds if (around - rest) / 2.0 / variance > F_MIN else 0.0


def _exponential(values: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64]]:
    """The closest exponential approach: the sum of squares around it, the seconds to 2 % of it, values."""
    count = values.size
    centred = values - values.mean()
    around = float(centred @ centred)
    at = np.arange(count + 1.0)
    rest, seconds, fitted = around, 0.0, np.full(count, values.mean())
    for tau in np.geomspace(0.5, 2.0 * count, TAUS):
        gone = np.exp(-at / tau)
        left = tau * (gone[:-1] - gone[1:])
        mean = float(left.mean())
        left -= mean
        slope = float(left @ centred) / float(left @ left)
        if around - slope * float(left @ centred) < rest:
            rest = around - slope * float(left @ centred)
            fitted = values.mean() + slope * left
            level = float(values.mean()) - slope * mean
            share = abs(slope) / level if level > 0.0 else math.inf
            seconds = float(tau) * math.log(share / SETTLED_WITHIN) if share > SETTLED_WITHIN else 0.0
    return rest, seconds, fitted


def _step(values: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64]]:
    """The closest step before the last third, as `_exponential`; 0 seconds where it is below 2 %."""
    sums, before = np.cumsum(values), np.arange(1, values.size - values.size // 3 + 1)
    cut = sums[: before.size]
    explained = cut**2 / before + (sums[-1] - cut) ** 2 / (values.size - before)
    at = int(np.argmax(explained))
    below, above = sums[at] / before[at], (sums[-1] - sums[at]) / (values.size - before[at])
    size = abs(below / above - 1.0) if above > 0.0 else math.inf
    rest = float(values @ values) - float(explained[at])
    fitted = np.where(np.arange(values.size) < before[at], below, above)
    return max(rest, 0.0), float(before[at]) if size > SETTLED_WITHIN else 0.0, fitted


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
