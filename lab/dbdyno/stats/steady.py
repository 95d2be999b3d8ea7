"""Detects when throughput has reached steady state, and estimates how far it still is from steady state.

A server that was just started reads from disk, fills caches and prepares statements, so it is not yet as fast
as later.

- `mser5` determines how much of the beginning of one trial to discard. MSER-5 (White 1997, Simulation 69:323;
  White, Cobb & Spratt 2000, WSC) averages the series in batches of five, and discards the beginning without
  which the mean of the rest has the smallest standard error. It needs no threshold, because a mean of fewer
  values has a larger standard error.
- `settle` determines how long a server needs to become warm, from one warm-up trial.
- `remaining` extrapolates how far a series is from its limit, from how fast its changes become smaller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Observations per batch; the 5 of MSER-5.
BATCH_SIZE = 5

# Minimum number of batches that remain: very few may have a small variance by chance (White 1997 excludes the
# last 5).
TAIL_BATCHES = 5

# `settle` averages over MEAN_S seconds. The series has settled when a mean differs from the final one by at
# most SETTLED_WITHIN (a share), or by at most NOISE_WITHIN standard deviations of a mean if that is more.
MEAN_S = 5
SETTLED_WITHIN = 0.02
NOISE_WITHIN = 3.0
# Minimum number of means: two for each third of the series.
MEANS_MIN = 6
# So many consecutive means must be within that range. Means outside it afterwards are a stall, not warm-up.
MEANS_IN_A_ROW = 3
# An exponential or a step fits significantly better than a constant from this F ratio on. By chance 4 of
# 1,000 warm series of a minute reach it.
F_MIN = 8.0
# Number of time constants that the fit of the exponential tries.
TAUS = 40
# Limit for the estimated autocorrelation of the residuals.
CORRELATION_MAX = 0.9
# Median of the absolute value of a standard normal variable.
NORMAL_QUARTILE = 0.6745

# `remaining` searches for a time constant between these multiples of the length of the three spans.
TAU_MIN, TAU_MAX = 0.01, 100.0
# Steps of that bisection.
HALVINGS = 60


def mser5(series: Sequence[float], limit: int | None = None) -> int | None:
    """The number of values to discard at the beginning of `series`: a multiple of five, at most `limit`.

    Without `limit` it is at most half of the series. None if there are fewer than ten batches, which is too
    short.
    """
    batches = len(series) // BATCH_SIZE
    if batches < 2 * TAIL_BATCHES:
        return None
    means = (
        np.asarray(series[: batches * BATCH_SIZE], dtype=np.float64).reshape(batches, BATCH_SIZE).mean(axis=1)
    )
    most = batches // 2 if limit is None else min(limit // BATCH_SIZE, batches - TAIL_BATCHES)
    # Squared standard error of the mean of the rest, for each number of discarded batches. The variances come
    # from sums from the end on; differences from the last mean keep those of a constant rest exactly zero.
    rests = batches - np.arange(most + 1)
    differences = means[::-1] - means[-1]
    mean, mean_square = (
        np.cumsum(values)[::-1][: most + 1] / rests for values in (differences, differences**2)
    )
    errors = (mean_square - mean**2) / rests
    return int(np.argmin(errors)) * BATCH_SIZE


def settle(series: Sequence[float]) -> float | None:
    """Seconds until a series with one value per second has settled; None if it has not settled at its end.

    It has settled at the first of three consecutive 5 s means that are all within 2 % of the median of the
    last third, or within three standard deviations of a mean if noise is larger. The noise is estimated by
    the median difference of neighbours, on which a slow change or a steep beginning has little influence.
    Later means outside the range are stalls of the server or the machine, which a longer warm-up would not
    avoid.

    Noise can hide a slow approach from the means. So an exponential and a step are fitted too. If the better
    fit is significant, the series has not settled before the step, or before only 2 % of the approach remain.
    A step in the last third is ignored, because it may not last. Raises ValueError for fewer than six means.
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
    """The index of the first of `MEANS_IN_A_ROW` consecutive true values; the length if there are none."""
    runs = np.lib.stride_tricks.sliding_window_view(inside, MEANS_IN_A_ROW).all(axis=1)
    return int(np.argmax(runs)) if runs.any() else int(inside.size)


def _noise(values: NDArray[np.float64]) -> float:
    """Standard deviation of a single value, estimated from the differences of neighbours."""
    return float(np.median(np.abs(np.diff(values)))) / NORMAL_QUARTILE / math.sqrt(2.0)


def _change_s(values: NDArray[np.float64], noise: float) -> float:
    """Seconds until a step, or until 2 % of an exponential approach remain, whichever fits better.

    0 if the fit is not significantly better than a constant. `noise` is the standard deviation of a 5 s mean.
    """
    count = values.size
    around = float(np.sum((values - values.mean()) ** 2))
    rest, seconds, fitted = min(_exponential(values), _step(values), key=lambda fit: fit[0])
    # Slow noise makes neighbouring values correlated, and drift of the machine then looks like an approach.
    # So the variance is at least that of the 5 s means, and is increased for autocorrelation of the
    # residuals.
    variance = max(rest / (count - 3), MEAN_S * noise**2, np.finfo(np.float64).tiny)
    left = (values - fitted).reshape(-1, MEAN_S).mean(axis=1)
    correlation = float(left[1:] @ left[:-1]) / max(float(left @ left), np.finfo(np.float64).tiny)
    correlation = min(max(correlation, 0.0), CORRELATION_MAX)
    variance *= (1.0 + correlation) / (1.0 - correlation)
    return seconds if (around - rest) / 2.0 / variance > F_MIN else 0.0


def _exponential(values: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64]]:
    """The best fit of an exponential approach: residual sum of squares, seconds until 2 % remain,
    fitted values.
    """
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
    """The best fit of a step before the last third, as for `_exponential`; 0 seconds if it is below 2 %."""
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
    """How far the mean of the last of three spans is from the limit of the series, as a log ratio.

    `edges` are the times at which the spans begin and end, `early` is log(last / first), `late` is log(last /
    middle). The distance to the limit is assumed to decrease exponentially, so the ratio of the two changes
    gives the time constant. The result is infinite if the changes do not become smaller. It is never
    negative.
    """
    if late == 0.0:
        return 0.0
    share = late / early if early else math.inf
    length = edges[3] - edges[0]
    if share <= 0.0 or share >= _ratios_for(TAU_MAX * length, edges)[0]:
        return math.inf
    low, high = TAU_MIN * length, TAU_MAX * length
    for _ in range(HALVINGS):
        tau = math.sqrt(low * high)
        if _ratios_for(tau, edges)[0] < share:
            low = tau
        else:
            high = tau
    return abs(late) * _ratios_for(high, edges)[1]


def _ratios_for(tau: float, edges: tuple[float, float, float, float]) -> tuple[float, float]:
    """For a distance that decreases with time constant `tau`: late / early, and the distance in the last span
    / late.
    """
    distances = [
        tau / (end - begin) * (math.exp(-(begin - edges[0]) / tau) - math.exp(-(end - edges[0]) / tau))
        for begin, end in itertools.pairwise(edges)
    ]
    early, late = distances[0] - distances[2], distances[1] - distances[2]
    return late / early, distances[2] / late if late > 0.0 else 0.0
