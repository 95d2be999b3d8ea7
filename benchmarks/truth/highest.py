"""Simulates curves over the loads, and counts the intervals of the highest throughput that miss the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from dbdyno.decide.decision import compare_all
from dbdyno.decide.secondary_metrics import highest_throughput
from dbdyno.experiment.model import Experiment
from dbdyno.store.measured import MeasuredTrial

from .row import Guarantee, Row, Sample
from .simulation import World, experiment, simulate
from .stopping import stopping

# Log throughput over the loads: one peak, one at another load, several loads that are equally good, and one
# that is slightly better than its neighbours.
PEAK = (-0.5, -0.2, 0.0, -0.2, -0.5)
LATER_PEAK = (-0.6, -0.4, -0.2, 0.0, -0.2)
PLATEAU = (-0.5, 0.0, 0.0, 0.0, 0.0)
NEAR_TIES = (-0.5, -0.02, 0.0, -0.02, -0.5)
NOISE = "heavy+drifting+stalls+bimodal+growing"


def guarantees() -> list[Guarantee]:
    """The guarantees about the highest throughput; the first curve is that of the baseline."""
    fixed = experiment(loads=len(PEAK))
    stopped = stopping(experiment(loads=3), max_blocks=16)
    looks = (8, 12, 16)
    curves = {
        "equal peaks at different loads": (PEAK, LATER_PEAK),
        "two plateaus": (PLATEAU, PLATEAU),
        "a peak against a plateau": (PEAK, PLATEAU),
        "near ties against a peak": (NEAR_TIES, PEAK),
    }
    last = f"a peak against a plateau, 3 loads, judged up to {looks[-1]} blocks whatever ends the run"
    return [
        *(Guarantee(partial(_covers, text, fixed, pair, (8,)), cost=8) for text, pair in curves.items()),
        Guarantee(partial(_covers, last, stopped, (PEAK[1:4], PLATEAU[1:4]), looks), cost=24),
    ]


def _covers(
    guarantee: str, of: Experiment, curves: Sequence[Sequence[float]], looks: Sequence[int], sample: Sample
) -> list[Row]:
    random = np.random.default_rng(sample.seed(41))
    world = World(noise=NOISE, effects=dict(zip("ab", curves, strict=True)))
    percent = math.expm1(max(curves[1]) - max(curves[0])) * 100.0
    covered = 0
    for _ in range(sample.count):
        trials = simulate(of, world, random)
        covered += all(
            _contains(of, [one for one in trials if one.block < blocks], percent) for blocks in looks
        )
    text = f"highest throughput, {guarantee}, noise of every kind: the interval contains the ratio"
    return [Row(text, sample.count, covered / sample.count, 0.95, at_most=False)]


def _contains(of: Experiment, trials: Sequence[MeasuredTrial], percent: float) -> bool:
    (comparison,) = compare_all(trials, of, [])
    highest = highest_throughput(comparison, of)
    assert highest is not None, "a closed loop with several loads has a highest throughput"
    assert highest.interval_percent is not None, "the blocks are enough"
    low, high = highest.interval_percent
    return (low is None or low <= percent) and (high is None or percent <= high)
