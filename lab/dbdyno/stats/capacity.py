"""How much a server can do: the capacity under a latency objective, and the highest throughput of several
loads.

**Capacity** is the highest rate at which a latency stays below a limit. The logarithm of the latency at each
rate is noisy, but the true one does not decrease if the rate increases. So it is made monotone by pooling
adjacent violators (Barlow et al. 1972, Statistical Inference under Order Restrictions), and its crossing of
the limit is interpolated over the logarithm of the rate.

**Highest throughput**: the ratio of the highest throughputs of two variants, which may be at different loads.

::

    theta = max over l of b(l) - max over k of a(k)      b, a: true log throughput of variant and baseline

The load of the highest measured mean is partly chosen by its noise, so its mean is too high (the winner's
curse). The bias is not the same for both variants: one with a plateau has more loads to choose from. In
simulations (8 blocks, 5 % noise; a with a clear peak, b equally fast at five loads) 95 % intervals of the
ratios of each block's maxima contain theta in 40 % of the runs, with 20 blocks in 2 %. A load chosen by the
other blocks has no bias, but the blocks' values then depend on each other: 87 % with 8 blocks and 76 % with
20, if both variants are equally fast at three loads.

So theta gets a projected interval, which holds for any two curves (Andrews, Kitagawa & McCloskey 2024,
Q. J. Econ. 139:305). Write low(l, k) and high(l, k) for the ends of the interval of b(l) - a(k):

::

    theta >= min over k of b(x) - a(k)     for every load x     low  = min over k of low(x, k)
    theta <= max over l of b(l) - a(y)     for every load y     high = max over l of high(l, y)

x and y are the loads of the highest medians. As they are chosen by the data, low(x, k) must hold for any x:
for each k the intervals over all l are simultaneous. Of the k, only the one with the true maximum matters
(Berger 1982, Technometrics 24:295), so they need no correction. The same is true of the other end. The
simultaneous intervals are two-sided, so that each end of this one misses theta with half of alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from dbdyno.stats.paired import Effect, Ratios, effect, joint_effects
from dbdyno.stats.repeated import Looks

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


def highest_effect(
    ratios: Sequence[Sequence[Ratios]], highest: tuple[int, int], alpha: float, looks: Looks | None = None
) -> Effect | None:
    """The change of the highest throughput; None without blocks. Its p-value is that of the two loads alone.

    `ratios[k][l]` are those of the variant at load l to the baseline at load k. `highest` are the loads of
    the highest medians of baseline and variant. `looks` as for `joint_effects`.
    """
    of_baseline, of_variant = highest
    single = effect(ratios[of_baseline][of_variant], alpha, looks)
    if single is None:
        return None
    by_variant_load = zip(*ratios, strict=True)
    below = [joint_effects(row, alpha, looks, only=of_variant)[of_variant] for row in ratios]
    above = [joint_effects(row, alpha, looks, only=of_baseline)[of_baseline] for row in by_variant_load]
    known_intervals = [
        entry.interval_percent for entry in (*below, *above) if entry and entry.interval_percent
    ]
    if len(known_intervals) < len(below) + len(above):
        return replace(single, interval_percent=None)
    low, high = (
        min(ends[0] for ends in known_intervals[: len(below)]),
        max(ends[1] for ends in known_intervals[len(below) :]),
    )
    estimate = min(max(single.effect_percent, low), high)
    return replace(single, effect_percent=estimate, interval_percent=(low, high))
