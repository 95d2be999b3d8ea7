"""The highest throughput over the loads of a closed loop: its interval, and the line under the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth import capacity
from benchmarks.truth.simulation import World, experiment, simulate
from benchmarks.truth.stopping import stopping
from tests.unit.judged_run import Judged
from tests.unit.pages import text_of
from tests.unit.sentences import check_sentences
from tests.unit.simulated_trials import measured
from tests.unit.stored_run import verdict_of

from dbdyno.decide.decision import compare_all
from dbdyno.decide.secondary_metrics import highest_throughput
from dbdyno.experiment.model import Experiment, Factor
from dbdyno.experiment.schedule import Trial
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.stats.capacity import highest_effect
from dbdyno.stats.paired import ALPHA, Ratios, joint_effects
from dbdyno.stats.repeated import Looks
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import HighestThroughput
from dbdyno.terminal import result

PEAKS = {"a": [-0.2, 0.0, -0.2], "b": [-0.3, -0.2, 0.1]}


def of_last(of: Experiment, trials: Sequence[MeasuredTrial]) -> HighestThroughput | None:
    """The entry of the last comparison."""
    return highest_throughput(compare_all(trials, of, [])[-1], of)


def simulated(of: Experiment, effects: dict[str, list[float]], sd: float = 0.02) -> list[MeasuredTrial]:
    return simulate(of, World(sd=sd, effects=effects), np.random.default_rng(3))


@pytest.mark.parametrize("looks", [None, Looks(None, planned=20)])
def test_the_interval_is_the_projection_of_those_of_all_pairs_of_loads(looks: Looks | None) -> None:
    values = np.random.default_rng(1).normal(0.0, 0.05, (2, 3, 9))
    grid = [
        [Ratios(pair := dict(enumerate(other - base)), pair) for other in values[1]] for base in values[0]
    ]
    found = highest_effect(grid, (1, 2), ALPHA, looks)
    columns = [list(column) for column in zip(*grid, strict=True)]
    low = min(joint_effects(row, ALPHA, looks)[2].interval_percent[0] for row in grid)  # type: ignore[index,union-attr]
    high = max(joint_effects(one, ALPHA, looks)[1].interval_percent[1] for one in columns)  # type: ignore[index,union-attr]
    assert found is not None
    assert found.interval_percent == (low, high)
    assert low < found.effect_percent < high


def test_the_line_names_the_loads_of_both_and_their_ratio() -> None:
    found = of_last(of := experiment(loads=3), simulated(of, PEAKS))
    assert found is not None
    assert (found.baseline.connections, found.variant.connections, found.blocks) == (20, 40, 8)
    assert found.effect_percent == pytest.approx(math.expm1(0.1) * 100.0, abs=2.0)
    assert found.confidence == 0.95
    check_sentences("highest throughput", found.sentence)


def test_several_comparisons_share_the_confidence_and_looks_widen_the_interval() -> None:
    of = experiment(variants=3, loads=3, blocks=10)
    world = {**PEAKS, "c": PEAKS["b"]}
    trials = simulated(of, world)
    once, looked = of_last(of, trials), of_last(stopping(of, max_blocks=10), trials)
    assert once is not None
    assert looked is not None
    assert once.confidence == looked.confidence == 0.975
    assert width(once) < width(looked)


def width(one: HighestThroughput) -> float:
    low, high = one.interval_percent or (None, None)
    assert low is not None
    assert high is not None
    return high - low


def failing(name: str, connections: int) -> HighestThroughput:
    """The entry if a server fails in three of eight blocks at one load; b is highest at 40 connections."""

    def throughput(trial: Trial) -> float:
        point = (trial.variant, trial.point.connections)
        is_failed = point == (name, connections) and trial.block < 3
        peak = {"a": 20, "b": 40}[trial.variant]
        return 0.0 if is_failed else (1000.0 if trial.point.connections == peak else 700.0) + trial.block

    found = of_last(of := experiment(loads=3), measured(of, throughput))
    assert found is not None
    assert found.variant.connections == 40
    return found


def test_a_failure_at_a_low_load_changes_nothing_and_one_at_the_highest_leaves_the_end_open() -> None:
    assert failing("b", 10).interval_percent == pytest.approx((0.0, 0.0), abs=1.0)
    low, _ = failing("b", 40).interval_percent or (None, None)
    assert low == -100.0


def test_a_server_that_fails_at_every_load_has_no_line() -> None:
    of = experiment(loads=2)
    assert of_last(of, measured(of, lambda trial: 0.0 if trial.variant == "b" else 1000.0)) is None


@pytest.mark.parametrize(
    ("of", "blocks"),
    [
        pytest.param(experiment(), 8, id="one load"),
        pytest.param(experiment(loads=3, blocks=5), 5, id="too few blocks"),
        pytest.param(experiment(loads=3, blocks=9), 8, id="unfinished"),
    ],
)
def test_there_is_no_line(of: Experiment, blocks: int) -> None:
    trials = [
        one if one.block < blocks else replace(one, figures=None, failure="not run", failed_by="not-run")
        for one in simulated(of, {})
    ]
    assert of_last(of, trials) is None


def test_there_is_no_line_with_an_objective_or_factors() -> None:
    of = capacity.of_blocks(8, 0.0)
    assert of_last(of, capacity.simulate(of, 0.0, np.random.default_rng(5))) is None
    factors = (Factor(name="x", levels=("1", "2")), Factor(name="y", levels=("1", "2")))
    of = experiment(loads=3, factors=factors)
    assert of_last(of, simulated(of, {})) is None


def test_the_line_stands_next_to_the_verdict_in_every_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Highest throughput: b 5,210 /s at 64 connections, a 4,980 /s at 32: +4.6 % (95 % interval 1 to 8)"
    highest = HighestThroughput(
        baseline={"connections": 32, "throughput": 4980.0},  # type: ignore[arg-type]
        variant={"connections": 64, "throughput": 5210.0},  # type: ignore[arg-type]
        effect_percent=4.6,
        interval_percent=(1.2, 8.0),
        confidence=0.95,
        blocks=8,
        sentence=text,
    )
    run = Judged(more={"highest_throughput": highest.model_dump(exclude_none=True)}).write(tmp_path)
    assert f"on average (-12.0 to -8.0). {text}" in text_of(run)
    assert f"- {text}" in as_markdown(gather(run)).replace("\\", "")
    # Scripts read the last line of standard output, which is a verdict.
    result.show(run, run.experiment())
    *_, line, last = capsys.readouterr().out.splitlines()
    assert (line, last) == (text, verdict_of(run)["comparisons"][0]["curve"]["sentence"])
