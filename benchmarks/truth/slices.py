"""Simulates trials in slices, and gives them to the real judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from dbdyno.experiment.model import Experiment
from dbdyno.store.measured import MeasuredTrial

from . import neighbour
from .simulation import Random, Result, World, figures_of, judge, simulate

# Slices of a trial.
SLICES = 40
# Standard deviations, in log units: of the machine's change from one slice to the next, and of the noise of
# a slice, which is t with 3 degrees of freedom.
DRIFT, NOISE = 0.05, 0.1
# Share of the slices in which a server stalls; in a tenth of these it does nothing.
STALLS = 0.1
# Turns that a burst of other processes lasts on average.
BURST_TURNS = 20


def with_slices(
    trials: Sequence[MeasuredTrial], random: Random, *, has_bursts: bool = False
) -> list[MeasuredTrial]:
    """The trials with slices, in which the servers of a block take turns in random order; with bursts of
    other processes, whose share is recorded for each turn.
    """
    made = []
    for _, group in groupby(sorted(trials, key=_place), key=_place):
        block = list(group)
        count = (len(block), SLICES)
        # The place of each trial's slice among those of the same number.
        turns = random.permuted(np.tile(np.arange(len(block)), (SLICES, 1)), axis=1).T
        machine = np.cumsum(random.normal(0.0, DRIFT, SLICES * len(block))).reshape(SLICES, len(block))
        burst = neighbour.BURST * has_bursts * _bursts(SLICES * len(block), random).reshape(machine.shape)
        machine = machine - neighbour.COST * burst
        of_turns = burst[np.arange(SLICES), turns].mean(axis=1)
        log_rates = machine[np.arange(SLICES), turns] + random.standard_t(3, count) * NOISE / math.sqrt(3.0)
        stalled = np.where(random.random(count) < 0.1, 0.0, random.uniform(0.05, 0.8, count))
        shares = np.exp(log_rates) * np.where(random.random(count) < STALLS, stalled, 1.0)
        for trial, of_trial, foreign in zip(block, shares, of_turns, strict=True):
            rates = trial.value("throughput") * of_trial
            slices = dict(enumerate(map(float, rates)))
            made.append(
                replace(
                    trial,
                    figures=figures_of(float(rates.mean())),
                    slices=slices,
                    foreign=float(foreign) if has_bursts else None,
                )
            )
    return sorted(made, key=lambda trial: trial.index)


def _bursts(turns: int, random: Random) -> NDArray[np.bool_]:
    """Whether other processes use the CPUs in each turn: in `neighbour.HIT` of all."""
    ends = random.random(turns) < 1.0 / BURST_TURNS
    ends[0] = True
    return (random.random(turns) < neighbour.HIT)[np.maximum.accumulate(np.where(ends, np.arange(turns), 0))]


def repeat(of: Experiment, effect: float, count: int, seed: int, *, has_bursts: bool = False) -> list[Result]:
    """So many runs in slices of an experiment whose variant b has that effect, in log units."""
    random = np.random.default_rng(seed)
    world = World(sd=0.02, effects={"b": [effect]})
    return [
        judge(of, world, with_slices(simulate(of, world, random), random, has_bursts=has_bursts))
        for _ in range(count)
    ]


def _place(trial: MeasuredTrial) -> tuple[int, str, object]:
    return trial.block, trial.workload, trial.point
