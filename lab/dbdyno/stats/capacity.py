"""The capacity under a promise: the highest rate at which a latency stays below a limit.

The logarithm of the latency at each rate is noisy, but the true one does not decrease if the rate increases.
So it is made monotone by pooling adjacent violators (Barlow et al. 1972, Statistical Inference under Order
Restrictions), and its crossing of the limit is interpolated over the logarithm of the rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

# A latency counts as at most so many times the limit. The latency of an overloaded server depends on the
# length of the trial, and that of a failed one is infinite.
BEYOND_MAX = 10.0


def log_capacity(rates: Sequence[float], latencies: Sequence[float], limit: float) -> tuple[float, float]:
    """Lower and upper bound of the capacity's logarithm, which are equal if the latency crosses the limit
    between two of the rates; rates are in increasing order.

    A latency is infinite if the server failed or did not keep up.
    """
    # Loads slowly, and most commands compute no capacity.
    from scipy.optimize import isotonic_regression  # noqa: PLC0415

    most = math.log(BEYOND_MAX)
    excess = [min(math.log(latency / limit), most) for latency in latencies]
    fitted = [float(value) for value in isotonic_regression(excess).x]
    if fitted[0] > 0.0:
        return -math.inf, math.log(rates[0])
    for (rate, low), (next_rate, high) in pairwise(zip(rates, fitted, strict=True)):
        if high > 0.0:
            crossing = math.log(rate) + math.log(next_rate / rate) * -low / (high - low)
            return crossing, crossing
    return math.log(rates[-1]), math.inf
