"""Guarantees about the load of other processes, which every verdict takes into account."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from dbdyno.experiment.model import Experiment

from . import capacity, factors, neighbour, slices, stopping
from .row import Guarantee, Row, Sample
from .simulation import Result, World, experiment, repeat

BURSTS, EVEN = "bursts in 15 % of the trials", "25 % of the CPUs all the time"
ONE_SIDED = "bursts that slow only b down"


def guarantees() -> list[Guarantee]:
    """Every guarantee, in the order of the table."""
    thirty = World(neighbour=BURSTS, effects={"b": [math.log(1.3)]})
    return [
        *(
            _false_words("2 equal variants", experiment(loads=loads), World(neighbour=name, sd=0.03), 30)
            for name in neighbour.NEIGHBOURS
            for loads in (1, 3)
        ),
        _false_words(
            "2 factors without effect", experiment(factors=factors.TWO), World(neighbour=BURSTS, sd=0.03), 31
        ),
        _false_words(
            "b fails in 2 of 8 blocks", experiment(loads=3), World(neighbour=BURSTS, failures={"b": 2}), 32
        ),
        Guarantee(_stopped, cost=4),
        Guarantee(_of_capacity, cost=2),
        Guarantee(_in_slices, cost=2),
        _at_least(
            f"twelve times as fast with {EVEN}: verdict faster",
            World(neighbour=EVEN, effects={"b": [math.log(12.0)]}),
            lambda result: result.word == "faster",
            0.9,
        ),
        _at_least(
            f"30 % faster with {BURSTS}: verdict faster", thirty, lambda result: result.word == "faster", 0.9
        ),
        _at_least(
            f"30 % faster with {BURSTS}: the interval contains the true value",
            thirty,
            lambda result: result.covers,
            0.95,
        ),
        _at_least(
            f"30 % faster at 2 loads with {ONE_SIDED}: verdict faster",
            World(neighbour=ONE_SIDED, effects={"b": [math.log(1.3)] * 2}),
            lambda result: result.word == "faster",
            0.75,
            loads=2,
        ),
    ]


def _false_words(text: str, of: Experiment, world: World, seed: int) -> Guarantee:
    """The share of experiments with any wrong verdict."""
    loads = len(of.load.points())
    where = f"{text}, {loads} load{'s' if loads > 1 else ''}, with {world.neighbour}"
    return Guarantee(partial(_measure_false_words, where, of, world, seed))


def _measure_false_words(where: str, of: Experiment, world: World, seed: int, sample: Sample) -> list[Row]:
    results = repeat(of, world, sample.count, sample.seed(seed))
    return [Row(f"{where}: any wrong verdict", sample.count, _share(results, Result.is_false), 0.05)]


def _stopped(sample: Sample) -> list[Row]:
    of, looks = stopping.stopping(experiment(), max_blocks=20), (8, 11, 14, 17, 20)
    world = World(neighbour=BURSTS, sd=0.03)
    wrong = stopping.wrong_at_any_look(of, world, sample.count, looks, seed=sample.seed(33))
    text = f"2 equal variants with {BURSTS}, judged up to 20 blocks whatever ends the run: any wrong verdict"
    return [Row(text, sample.count, wrong, 0.05)]


def _of_capacity(sample: Sample) -> list[Row]:
    return [capacity.false_words(BURSTS, sample, 35)]


def _in_slices(sample: Sample) -> list[Row]:
    results = slices.repeat(experiment(), 0.0, sample.count, sample.seed(36), has_bursts=True)
    text = "2 equal variants in slices, with bursts in 15 % of the time: any wrong verdict"
    return [Row(text, sample.count, _share(results, Result.is_false), 0.05)]


def _at_least(
    text: str, world: World, holds: Callable[[Result], bool], limit: float, loads: int = 1
) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        results = repeat(experiment(loads=loads), world, sample.count, sample.seed(34))
        return [Row(text, sample.count, _share(results, holds), limit, at_most=False)]

    return Guarantee(measure)


def _share(results: Sequence[Result], holds: Callable[[Result], bool]) -> float:
    return sum(map(holds, results)) / len(results)
