"""Simulates runs that may stop after any block, with the real judge, and compares them with a fixed plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from dbdyno.decide import gate
from dbdyno.decide.comparison import comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import Design, Experiment, Stop
from dbdyno.stats.verdict_rule import ANSWERS

from .simulation import Random, Result, World, experiment, judge, simulate

MAX_BLOCKS = 20
# No verdict is possible before.
FIRST_BLOCKS = 8
# The questions of the mix: true effect in percent and its weight, all noises alike, ±2 % declared equivalent.
EFFECTS = {0.0: 6, 2.0: 4, 5.0: 4, 10.0: 3, 30.0: 3}
NOISES = (0.01, 0.03, 0.05, 0.10)
DELTA_PERCENT = 2.0
QUESTIONS = [
    (percent, noise) for percent, weight in EFFECTS.items() for noise in NOISES for _ in range(weight)
]
# Runs of one round, in which every question has its share.
CYCLE = len(QUESTIONS)


def stopping(of: Experiment, *, max_blocks: int = MAX_BLOCKS, top_up: bool = True) -> Experiment:
    """The experiment with `design.stop` instead of a fixed number of blocks."""
    design = of.design.model_dump() | {"stop": Stop(max_blocks=max_blocks, top_up=top_up)}
    return of.model_copy(update={"design": Design(**design)})


def wrong_at_any_look(of: Experiment, world: World, count: int, looks: Sequence[int], seed: int) -> float:
    """The share of runs of which the judge says something wrong after any of these numbers of blocks.

    Whatever ends a run, it shows the verdict after one of them.
    """
    random = np.random.default_rng(seed)
    wrong = 0
    for _ in range(count):
        trials = simulate(of, world, random)
        results = (judge(of, world, [one for one in trials if one.block < blocks]) for blocks in looks)
        wrong += any(result.is_false(of.design.delta_percent) for result in results)
    return wrong / count


def gated(of: Experiment, world: World, count: int, looks: Sequence[int], seed: int) -> tuple[float, float]:
    """The shares of runs in which any comparison passes the gate, and in which any is worse, after any of
    these numbers of blocks.
    """
    random = np.random.default_rng(seed)
    max_loss_percent = of.design.max_loss_percent
    assert max_loss_percent is not None, "the caller has an experiment with a gate"
    passed = worse = 0
    for _ in range(count):
        trials = simulate(of, world, random)
        results = {
            gate.result(comparison_entry(one, ""), max_loss_percent, is_decided=one.judged.is_gate_decided)
            for blocks in looks
            for one in compare_all([trial for trial in trials if trial.block < blocks], of, [])
        }
        passed += "not-inferior" in results
        worse += "worse" in results
    return passed / count, worse / count


@dataclass(frozen=True)
class Mix:
    """Runs that stop when decided, against the same runs with a fixed number of blocks.

    One value per round of the questions: the share of the fixed plan's blocks that were not needed; the
    shares of right verdicts lost against the fixed plan, and of intervals that contain the true value.
    """

    saved: tuple[float, ...]
    lost: tuple[float, ...]
    covers: tuple[float, ...]


def mix(rounds: int, *, top_up: bool, seed: int) -> Mix:
    """So many rounds, each with every question of the mix in its share."""
    random = np.random.default_rng(seed)
    fixed = experiment(blocks=MAX_BLOCKS, delta_percent=DELTA_PERCENT)
    stopped = stopping(fixed, top_up=top_up)
    shares = []
    for _ in range(rounds):
        found = [_against_fixed(fixed, stopped, question, random) for question in QUESTIONS]
        shares.append([math.fsum(values) / CYCLE for values in zip(*found, strict=True)])
    saved, lost, covers = map(tuple, zip(*shares, strict=True))
    return Mix(saved, lost, covers)


def _against_fixed(
    fixed: Experiment, stopped: Experiment, question: tuple[float, float], random: Random
) -> tuple[float, int, int]:
    """One run: the share of blocks saved, right verdicts lost (0, 1, or -1), whether the interval contains
    the truth.
    """
    percent, noise = question
    effect = math.log1p(percent / 100.0) * float(random.choice([-1.0, 1.0]))
    world = World(sd=noise, effects={"b": [effect]})
    trials = simulate(fixed, world, random)
    for used in range(FIRST_BLOCKS, MAX_BLOCKS + 1):
        result = judge(stopped, world, [one for one in trials if one.block < used])
        if result.word in ANSWERS:
            break
    lost = _is_right(judge(fixed, world, trials), effect) - _is_right(result, effect)
    return 1.0 - used / MAX_BLOCKS, lost, result.covers


def mean_and_deviation(of_rounds: Sequence[float]) -> tuple[float, float]:
    """The mean over rounds, and the standard deviation of one run that gives the error of this mean."""
    return fmean(of_rounds), stdev(of_rounds) * math.sqrt(CYCLE)


def _is_right(result: Result, effect: float) -> bool:
    """Whether the verdict is the sign of the effect, or "equivalent" without one."""
    if effect == 0.0:
        return result.word == "equivalent"
    return result.word == ("faster" if effect > 0.0 else "slower")
