"""Simulates pairs of runs, and counts what `dbdyno diff` says of them that is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.decide.comparison import comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import Experiment
from dbdyno.runs.replication import Names, compare_comparisons
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.several_runs import RepeatedComparison, RepeatedEffect
from dbdyno.store.verdict import Family, VerdictFile

from .row import Guarantee, Row, Sample
from .simulation import Random, World, experiment, simulate
from .stopping import FIRST_BLOCKS, stopping

NOISE = "heavy+drifting+stalls+bimodal+growing"
DIRECTIONS = ("faster", "slower")
# Standard deviation of the log ratio of two variants between runs.
BETWEEN = 0.01
# Rounding errors of logarithms.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Two:
    """Two runs of one experiment: their worlds, and the plan of each."""

    first: World
    second: World
    of: Experiment
    of_second: Experiment

    def differences(self, variant: str, loads: int) -> list[float]:
        """The true difference of the effects at each load, in log units."""
        one, other = (list(world.effects.get(variant, [0.0] * loads)) for world in (self.first, self.second))
        return [after - before for before, after in zip(one, other, strict=True)]


def guarantees() -> list[Guarantee]:
    """The guarantees about two runs: the same effect in both, and other effects in the second."""
    one, ten = experiment(), math.log(1.1)
    quiet, noisy = _world(ten, sd=0.02), _world(ten, sd=0.06)
    stopped = stopping(one, max_blocks=20)
    many = experiment(variants=4, loads=3)
    same = Two(_world(ten), _world(ten), one, one)
    weaker, stronger = (
        replace(same, first=_plain(ten, 0.02), second=_plain(share * ten, 0.02)) for share in (0.5, 1.5)
    )
    unequal = Two(quiet, noisy, experiment(blocks=20), one)
    several = Two(_worlds(many), _worlds(many), many, many)
    return [
        _wrong("the same effect of 10 %", same),
        _wrong("the same effect of 10 %, 2 and 6 % noise, 20 and 8 blocks", unequal),
        _wrong(
            "the same effect of 10 %, both runs stop when decided",
            replace(same, of=stopped, of_second=stopped),
            cost=8,
        ),
        _wrong("4 variants, 3 loads, the same effects", several, cost=8),
        _wrong("an effect of 10 %, half of it in the second run, 2 % noise", weaker),
        _wrong("an effect of 10 %, 1.5 times it in the second run, 2 % noise", stronger),
        _word("replicates", _strong(1.0), "an effect of 20 % in both runs"),
        _word("does-not-replicate", _strong(0.0), "an effect of 20 %, none in the second run"),
    ]


def limits(count: int) -> list[Row]:
    """What is not guaranteed: the interval of a run is that of its blocks, so that what is fixed for a run
    counts as a difference of the effects.
    """
    rows = []
    for sd in (0.02, 0.05):
        world = replace(_plain(math.log(1.1), sd), place_sd=BETWEEN / math.sqrt(2.0))
        two = Two(world, world, experiment(), experiment())
        wrong = sum(_is_wrong(two, _answers(two, random)) for random in _randoms(Sample(count))) / count
        text = f"runs that differ by {100 * BETWEEN:g} %, diff, the same effect of 10 %, {100 * sd:g} % noise"
        rows.append(Row(f"{text}: any wrong word", count, wrong, 0.05))
    return rows


def _strong(share: float) -> Two:
    """An effect of 20 % with normal noise of 3 %, of which the second run has this share."""
    first, second = (_plain(part * math.log(1.2), 0.03) for part in (1.0, share))
    return Two(first, second, experiment(), experiment())


def _plain(effect: float, sd: float) -> World:
    return World(sd=sd, effects={"b": [effect]})


def _world(effect: float, sd: float = 0.05) -> World:
    return World(noise=NOISE, sd=sd, effects={"b": [effect]})


def _worlds(of: Experiment) -> World:
    loads = len(of.load.points())
    effects = {"b": [math.log(1.1)] * loads, "c": [math.log(0.8)] * loads, "d": [0.1, 0.0, -0.1]}
    return World(noise=NOISE, effects=effects)


def _wrong(text: str, two: Two, *, cost: int = 2) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        found = [_answers(two, random) for random in _randoms(sample)]
        wrong = sum(_is_wrong(two, one) for one in found)
        return [Row(f"diff, {text}: any wrong word", sample.count, wrong / sample.count, 0.05)]

    return Guarantee(measure, cost)


def _word(word: str, two: Two, text: str) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        found = [_answers(two, random)[0].curve for random in _randoms(sample)]
        share = sum(one is not None and one.word == word for one in found) / sample.count
        guarantee = f"diff, {text}, 3 % noise, 8 blocks each: {word.replace('-', ' ')}"
        return [Row(guarantee, sample.count, share, 0.80, at_most=False)]

    return Guarantee(measure, cost=2)


def _randoms(sample: Sample) -> Sequence[Random]:
    return np.random.default_rng(sample.seed(51)).spawn(sample.count)


def _answers(two: Two, random: Random) -> list[RepeatedComparison]:
    """What `dbdyno diff` says of one pair of runs."""
    files = [
        _verdict(of, _trials(of, world, random))
        for of, world in ((two.of, two.first), (two.of_second, two.second))
    ]
    return compare_comparisons(files[0], files[1], Names(), same_points=True)


def _trials(of: Experiment, world: World, random: Random) -> list[MeasuredTrial]:
    """The trials of a run; one with `design.stop` ends with the block after which it has a direction."""
    trials = simulate(of, world, random)
    if of.design.stop is None:
        return trials
    so_far = trials
    for blocks in range(FIRST_BLOCKS, of.design.blocks + 1):
        so_far = [one for one in trials if one.block < blocks]
        if all(one.verdict in DIRECTIONS for one in compare_all(so_far, of, [])):
            break
    return so_far


def _verdict(of: Experiment, trials: Sequence[MeasuredTrial]) -> VerdictFile:
    return VerdictFile(
        experiment=of.name,
        baseline=of.variants[0].name,
        order_seed=None,
        family=Family(sentences=1, alpha=0.05, text=""),
        comparisons=[comparison_entry(one, "") for one in compare_all(trials, of, [])],
        checks=[],
    )


def _is_wrong(two: Two, answers: Sequence[RepeatedComparison]) -> bool:
    """Whether any word on all loads combined contradicts the truth."""
    loads = len(two.of.load.points())
    return any(
        one.curve is not None
        and one.curve.first.verdict in DIRECTIONS
        and _contradicts(one.curve, math.fsum(two.differences(one.variant, loads)) / loads)
        for one in answers
    )


def _contradicts(one: RepeatedEffect, truth: float) -> bool:
    """Whether a word contradicts the true difference. It is about half of the effect that the first run has
    found, which is not the true one.
    """
    assert one.first.effect_percent is not None, "the servers do not fail"
    effect = math.log1p(one.first.effect_percent / 100.0)
    # Positive: towards a stronger effect.
    stronger, half = math.copysign(1.0, effect) * truth, abs(effect) / 2.0
    if one.word == "replicates":
        return abs(truth) > half + ROUNDING
    if one.word == "does-not-replicate":
        return -ROUNDING <= stronger <= half
    return False
