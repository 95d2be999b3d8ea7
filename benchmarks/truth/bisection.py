"""Simulates bisections with the real search and the real tests, block after block.

`python -m benchmarks.truth.bisection` prints how often the first slower version was found, and with how many
blocks.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import median

import numpy as np

from dbdyno.experiment.model import Design, Experiment, Stop
from dbdyno.experiment.schedule import schedule
from dbdyno.measure.evidence import gather, scheduled
from dbdyno.runs.bisection import Question, Step, bisect, judge_step, level_of
from dbdyno.stats.bisection import Outcome
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial, ScheduleEntry

from . import archive
from .row import Guarantee, Row, Sample
from .simulation import Random, World, experiment, figures_of, simulate

VERSIONS = tuple(f"v{number}" for number in range(1, 11))
# The default of `dbdyno bisect`.
MAX_BLOCKS = 60
# Ten real comparisons of two variants of MariaDB, of 20 blocks each (`benchmarks/truth/series.py`).
RECORDED = Path(__file__).parents[2] / "tests/fixtures/series/planted.tar.xz"
# Log throughput of each version -> the trials of one step.
Simulate = Callable[[Experiment, dict[str, float], Random], list[MeasuredTrial]]


@dataclass(frozen=True)
class Found:
    """The result of one simulated bisection."""

    # None if it found nothing, or more than one version.
    first_bad: str | None
    steps: int
    blocks: int
    trials: int


def run(effects: Sequence[float], simulated: Simulate, random: Random) -> Found:
    """One bisection of versions with these true effects, in log units."""
    versions = VERSIONS[: len(effects)]
    truth = dict(zip(versions, effects, strict=True))
    asked: list[tuple[Question, Step]] = []

    def measure(question: Question) -> Step:
        of = _experiment(question.versions)
        trials = simulated(of, truth, random)
        for blocks in range(6, MAX_BLOCKS + 1):
            step = judge_step(question, [one for one in trials if one.block < blocks], of)
            if step.outcome != Outcome.CANNOT_TELL:
                break
        asked.append((question, step))
        return step

    answer = bisect(versions, level_of(versions), measure)
    return Found(
        answer.first_bad,
        len(asked) - 1,
        sum(step.blocks for _, step in asked),
        sum(step.blocks * len(question.versions) for question, step in asked),
    )


@lru_cache(maxsize=8)
def _base(variants: int) -> Experiment:
    of = experiment(variants=variants, blocks=MAX_BLOCKS)
    design = of.design.model_dump() | {"stop": Stop(max_blocks=MAX_BLOCKS)}
    return of.model_copy(update={"design": Design(**design)})


def _experiment(versions: Sequence[str]) -> Experiment:
    of = _base(len(versions))
    named = zip(of.variants, versions, strict=True)
    return of.model_copy(
        update={"variants": tuple(one.model_copy(update={"name": name}) for one, name in named)}
    )


def synthetic(world: World, of: Experiment, effects: dict[str, float], random: Random) -> list[MeasuredTrial]:
    """The trials of one step with noise of a kind."""
    own = replace(world, effects={name: [effect] for name, effect in effects.items()})
    return simulate(of, own, random)


def resampled(of: Experiment, effects: dict[str, float], random: Random) -> list[MeasuredTrial]:
    """The trials of one step with recorded noise: a block has that of trials that ran one after the other in
    a real run, so that their drift and stalls are in it. The places are drawn with replacement.
    """
    of = of.with_order_seed(int(random.integers(0, 2**31)))
    runs, size = recorded_noise(), len(of.variants)
    noise: dict[int, list[float]] = {}
    measured = []
    for trial in schedule(of):
        if trial.block not in noise:
            run = runs[int(random.integers(0, len(runs)))]
            first = int(random.integers(0, len(run) - size + 1))
            noise[trial.block] = run[first : first + size]
        throughput = 1000.0 * math.exp(effects[trial.variant] + noise[trial.block].pop(0))
        entry = ScheduleEntry(trial.index, trial.block, trial.variant, trial.workload, trial.point.as_dict())
        measured.append(MeasuredTrial(entry, None, figures=figures_of(throughput)))
    return measured


@lru_cache(maxsize=1)
def recorded_noise() -> list[list[float]]:
    """For each recorded run the log throughputs of its trials in the order in which they ran, less the median
    of their variant, which removes the variant's effect.
    """
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for path in archive.unpack(RECORDED, Path(folder)):
            run = Run.open(path)
            trials = [one for one in gather(run, scheduled(run)).trials if one.is_result]
            logs = [(one.variant, math.log(one.value("throughput"))) for one in sorted(trials, key=_index)]
            medians = {
                variant: median(value for name, value in logs if name == variant)
                for variant in {name for name, _ in logs}
            }
            runs.append([value - medians[variant] for variant, value in logs])
    return runs


def _index(trial: MeasuredTrial) -> int:
    return trial.index


def step_at(version: int, effect: float, versions: int = len(VERSIONS)) -> list[float]:
    """The true effects if that version, counted from 1, brings a change."""
    return [effect if number >= version else 0.0 for number in range(1, versions + 1)]


def repeat(effects: Sequence[float], simulated: Simulate, count: int, seed: int) -> list[Found]:
    """So many bisections."""
    random = np.random.default_rng(seed)
    return [run(effects, simulated, random) for _ in range(count)]


SLOWER = math.log(0.95)
SIXTH = step_at(6, SLOWER)
# Standard deviation of the log ratio of two versions between runs.
BETWEEN = 0.01
NOISE = "heavy+drifting+stalls+bimodal+growing"


def guarantees() -> list[Guarantee]:
    """The guarantees about bisections of ten versions."""
    normal, every = partial(synthetic, World(sd=0.03)), partial(synthetic, World(noise=NOISE, sd=0.02))
    two = [0.0, 0.0, *[2.0 * SLOWER] * 5, *[3.0 * SLOWER] * 3]
    return [
        _guarantee("10 equal versions, 3 % normal noise", [0.0] * 10, normal),
        _guarantee("10 equal versions, recorded noise", [0.0] * 10, resampled),
        _guarantee(
            "10 versions, the sixth 20 % slower, 2 % noise of every kind", step_at(6, math.log(0.8)), every
        ),
        _guarantee("10 versions, the sixth 5 % slower, recorded noise", SIXTH, resampled, is_found=True),
        _guarantee("10 versions, the third 10 % and the eighth 5 % slower, 3 % normal noise", two, normal),
    ]


def limits(count: int) -> list[Row]:
    """What is not guaranteed: a step is one run, so that what is fixed for a run counts as a difference."""
    fixed = partial(synthetic, World(sd=0.03, place_sd=BETWEEN / math.sqrt(2.0)))
    text = f"runs that differ by {100 * BETWEEN:g} %, bisection of 10"
    worlds = [
        (f"{text} equal versions, 3 % normal noise", [0.0] * 10),
        (f"{text} versions, the sixth 5 % slower, 3 % normal noise", SIXTH),
    ]
    rows = []
    for guarantee, effects in worlds:
        right = VERSIONS[5] if any(effects) else None
        named = [one.first_bad for one in repeat(effects, fixed, count, seed=36)]
        wrong = sum(name not in (None, right) for name in named) / count
        rows.append(Row(f"{guarantee}: another version is named", count, wrong, 0.05))
    return rows


def _guarantee(
    text: str, effects: Sequence[float], simulated: Simulate, *, is_found: bool = False
) -> Guarantee:
    """The share of bisections that name a version that is not slower than the one before; with `is_found`
    also that of those that name one that is.
    """
    right = [VERSIONS[number] for number in range(1, len(effects)) if effects[number] != effects[number - 1]]

    def measure(sample: Sample) -> list[Row]:
        named = [one.first_bad for one in repeat(effects, simulated, sample.count, sample.seed(33))]
        wrong = sum(name is not None and name not in right for name in named) / len(named)
        rows = [Row(f"bisection of {text}: another version is named", len(named), wrong, 0.05)]
        if is_found:
            share = sum(name in right for name in named) / len(named)
            rows.append(Row(f"bisection of {text}: it is named", len(named), share, 0.90, at_most=False))
        return rows

    return Guarantee(measure, cost=8)


def main() -> None:
    """Print the results by noise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth.bisection", description=__doc__)
    parser.add_argument("--bisections", type=int, default=200, help="number of each kind")
    count = parser.parse_args().bisections
    worlds: dict[str, Simulate] = {
        f"{sd:.0%} {text}": partial(synthetic, World(noise=noise, sd=sd))
        for noise, text in (("normal", "normal noise"), ("heavy", "heavy tails"), ("stalls", "with stalls"))
        for sd in (0.01, 0.02, 0.03, 0.05)
    }
    worlds["recorded noise"] = resampled
    print(
        f"10 versions, the sixth {math.expm1(SLOWER):+.0%}; at most {MAX_BLOCKS} blocks a step; {count} each"
    )
    print("noise                       found  wrong  none  steps  blocks  trials")
    for text, simulated in worlds.items():
        found = repeat(SIXTH, simulated, count, seed=35)
        right = sum(one.first_bad == VERSIONS[5] for one in found)
        none = sum(one.first_bad is None for one in found)
        steps, blocks, trials = (
            sum(getattr(one, name) for one in found) / count for name in ("steps", "blocks", "trials")
        )
        shares = f"{right / count:6.1%} {(count - right - none) / count:6.1%} {none / count:5.1%}"
        print(f"{text:26} {shares} {steps:6.1f} {blocks:7.1f} {trials:7.1f}", flush=True)


if __name__ == "__main__":
    main()
