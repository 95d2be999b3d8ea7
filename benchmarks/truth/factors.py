"""Simulates factors, of which one may have an effect, and counts what the real judge says of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.decide.contrasts import AssessedContrast
from dbdyno.decide.factorial import judge_contrasts, verdicts
from dbdyno.experiment.model import Experiment, Factor
from dbdyno.store.measured import MeasuredTrial

from .row import Guarantee, Row, Sample
from .simulation import Claim, World, experiment, simulate
from .stopping import stopping

ALL = "heavy+drifting+stalls+bimodal+growing"
TWO = (Factor(name="version", levels=("x", "y")), Factor(name="threads", levels=("s", "t", "u")))
THREE = tuple(
    Factor(name=name, levels=(f"{name}-0", f"{name}-1")) for name in ("version", "threads", "cache")
)
# The effect of the second level of the first factor, where it has one.
REAL = math.log(1.2)


@dataclass(frozen=True)
class Case:
    """A factorial design, and what counts as wrong."""

    guarantee: str
    of: Experiment
    world: World
    # Effect of the first factor, in log units.
    effect: float = 0.0
    # Numbers of blocks after which a run is judged.
    looks: Sequence[int] = (8,)
    cost: int = 4


def guarantees() -> list[Guarantee]:
    """Any wrong word about a main effect or an interaction."""
    three = "2 x 2 x 2, one factor changes throughput by 20 %"
    looks = (8, 12, 16)
    stopped = stopping(experiment(factors=THREE), max_blocks=looks[-1])
    cases = (
        Case("2 factors without effect (3 main effects, 2 interactions)", experiment(factors=TWO), World()),
        Case(f"{three}, normal noise", experiment(factors=THREE), World(), REAL),
        Case(
            f"{three}, 3 loads, noise of every kind",
            experiment(factors=THREE, loads=3),
            World(noise=ALL),
            REAL,
            cost=8,
        ),
        Case(
            f"{three}, judged up to {looks[-1]} blocks whatever ends the run",
            stopped,
            World(),
            REAL,
            looks,
            cost=12,
        ),
    )
    return [Guarantee(_Measure(case), case.cost) for case in cases]


@dataclass(frozen=True)
class _Measure:
    case: Case

    def __call__(self, sample: Sample) -> list[Row]:
        case, random = self.case, np.random.default_rng(sample.seed(51))
        level, loads = case.of.factors[0].levels[1], len(case.of.load.points())
        effects = {
            one.name: [case.effect * (level in one.levels.values())] * loads for one in case.of.variants
        }
        world = replace(case.world, effects=effects)
        wrong = 0
        for _ in range(sample.count):
            trials = simulate(case.of, world, random)
            # A verdict includes all looks before it.
            wrong += any(
                _is_false(case, [one for one in trials if one.block < blocks]) for blocks in case.looks
            )
        text = f"{case.guarantee}: any wrong verdict"
        return [Row(text, sample.count, wrong / sample.count, 0.05)]


def _is_false(case: Case, trials: Sequence[MeasuredTrial]) -> bool:
    """Whether any word of a run about an effect or interaction is false."""
    contrasts = judge_contrasts(trials, case.of, [])
    for (one, judged), (_, _, _, word) in zip(contrasts, verdicts(contrasts), strict=True):
        truth = _truth(case, one)
        words = (word, *judged.load_verdicts)
        if any(Claim(str(each), truth, (truth,)).is_false(None) for each in words):
            return True
    return False


def _truth(case: Case, one: AssessedContrast) -> float:
    """The true effect of a contrast: the factors do not interact, and only the first has an effect."""
    return case.effect if one.contrast.factors == (case.of.factors[0].name,) else 0.0
