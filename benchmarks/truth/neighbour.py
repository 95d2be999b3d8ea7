"""Simulates the load of other processes: the share of the CPU time that they use during each trial, and what
that costs the trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Random = np.random.Generator
# Loss of throughput per share, in log units.
COST = 1.5
# Share that a burst uses, and the share of the trials that it hits.
BURST, HIT = 0.25, 0.15
# The busy part of each period of a loop, in lengths of a trial and as a share of its CPU time.
PERIOD, BUSY, TAKEN = 3.3, 1.0, 0.45
# Share of the CPU time that the server uses next to a neighbour that takes the rest.
USED = 0.7
# By how much less CPU time the other variants use then, in log units.
SAVED = 0.05

# Shares and log losses of trials in running order. The arguments: whether each is of the baseline, the
# logarithm of its throughput without neighbours, and the source of randomness.
Neighbour = Callable[[NDArray[np.bool_], Array, Random], tuple[Array, Array]]


def _quiet(is_baseline: NDArray[np.bool_], random: Random) -> Array:
    """What other processes use on any machine."""
    return np.abs(random.normal(0.0, 0.004, len(is_baseline)))


def _bursts(is_baseline: NDArray[np.bool_], random: Random) -> Array:
    return BURST * (random.random(len(is_baseline)) < HIT) + _quiet(is_baseline, random)


def even(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """A quarter of the CPUs during every trial."""
    shares = 0.25 + random.normal(0.0, 0.01, len(is_baseline))
    return shares, COST * shares


def unequal(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """3 % during the trials of the baseline, 9 % during the others."""
    shares = np.where(is_baseline, 0.03, 0.09) + random.normal(0.0, 0.01, len(is_baseline))
    return np.maximum(shares, 0.0), COST * np.maximum(shares, 0.0)


def bursts(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """A quarter of the CPUs in 15 % of the trials."""
    shares = _bursts(is_baseline, random)
    return shares, COST * shares


def delayed(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """The same, of which half acts on the next trial."""
    shares = _bursts(is_baseline, random)
    return shares, COST / 2.0 * (shares + np.concatenate([[0.0], shares[:-1]]))


def nonlinear(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """Up to 40 % of the CPUs, which cost nothing below 10 %, and ever more above."""
    shares = 0.4 * random.random(len(is_baseline)) ** 2
    return shares, 5.0 * np.maximum(0.0, shares - 0.1) ** 1.5


def one_sided(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """Bursts that cost the baseline nothing."""
    shares = _bursts(is_baseline, random)
    return shares, np.where(is_baseline, 0.0, COST * shares)


def loop(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """A loop on one of two CPUs: busy for the length of a trial, then idle for 2.3 times as long."""
    begins = PERIOD * random.random(len(is_baseline))
    overlaps = np.maximum(0.0, BUSY - begins) + np.maximum(0.0, begins + 1.0 - PERIOD)
    shares = TAKEN * overlaps + _quiet(is_baseline, random)
    return shares, COST * shares


def idle_time(is_baseline: NDArray[np.bool_], speed: Array, _random: Random) -> tuple[Array, Array]:
    """A neighbour that takes what the server leaves, which costs it nothing; the variants need less."""
    used = USED * np.exp(speed - np.where(is_baseline, 0.0, SAVED))
    return np.clip(1.0 - used, 0.0, 1.0), np.zeros(len(speed))


def own_load(is_baseline: NDArray[np.bool_], _speed: Array, random: Random) -> tuple[Array, Array]:
    """Load that the servers of the variants cause themselves, which costs them nothing."""
    own = np.where(is_baseline, 0.0, 0.06 + random.normal(0.0, 0.02, len(is_baseline)))
    return _quiet(is_baseline, random) + np.maximum(own, 0.0), np.zeros(len(is_baseline))


# The name of each in the table.
NEIGHBOURS: Mapping[str, Neighbour] = {
    "25 % of the CPUs all the time": even,
    "3 % next to a and 9 % next to b": unequal,
    "bursts in 15 % of the trials": bursts,
    "bursts that act on the next trial too": delayed,
    "a cost that grows faster than the load": nonlinear,
    "bursts that slow only b down": one_sided,
    "a loop in 30 % of the time": loop,
    "a neighbour that takes what the server leaves, and b needs 5 % less CPU": idle_time,
    "6 % that the server of b causes itself": own_load,
}


def add(
    name: str, is_baseline: Sequence[bool], speeds: Sequence[float], random: Random
) -> tuple[Array, Array]:
    """Shares and log losses of the trials, next to the neighbour of this name; none with "".

    `speeds` are the log throughputs without it.
    """
    if not name:
        return np.full(len(speeds), math.nan), np.zeros(len(speeds))
    return NEIGHBOURS[name](np.array(is_baseline), np.array(speeds), random)
