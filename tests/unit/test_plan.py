"""`dbdyno plan`: what a comparison costs, and how precise it will be."""

from __future__ import annotations

import math
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit import stored_run
from tests.unit.stored_run import Making

from dbdyno.commands.plan import describe, suggest_length, summary
from dbdyno.commands.plan import plan as plan_command
from dbdyno.design.planning import find_earlier, plan, read_earlier
from dbdyno.experiment.model import Design, Factor, Point, Stop
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import Problem
from dbdyno.report.model import gather
from dbdyno.report.page import design_rows
from dbdyno.run.progress import Progress, TrialBegan, TrialEnded
from dbdyno.run.times import StepTimes
from dbdyno.servers.usage import this_machine
from dbdyno.stats.precision import Components, factors, scatter
from dbdyno.stats.signed_rank import cut_off
from dbdyno.store import Run, files
from dbdyno.store.endings import Ending, add_ending, read_endings, time_shares
from dbdyno.verdict import judge

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("blocks", "half_width", "detected"),
    [(6, 1.24, 2.10), (8, 0.86, 1.45), (10, 0.71, 1.25), (16, 0.54, 0.90), (20, 0.47, 0.85)],
)
def test_the_precision_is_that_of_independent_simulations(
    blocks: int, half_width: float, detected: float
) -> None:
    """The expected values are from other simulations, of whole experiments."""
    found = factors(blocks, cut_off(blocks, 0.05, 0.0))
    assert found == pytest.approx((half_width, detected), rel=0.06)
    assert factors(blocks, 0) is None


@pytest.mark.parametrize(("blocks", "k"), [(75, 1054), (75, 803)])
def test_many_blocks_have_the_precision_of_the_simulation(
    blocks: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    approximate = factors(blocks, k)
    monkeypatch.setattr("dbdyno.stats.precision.SIMULATED_BLOCKS", blocks)
    factors.cache_clear()
    assert factors(blocks, k) == pytest.approx(approximate, rel=0.03)


def test_the_scatter_is_pooled_within_comparisons() -> None:
    # Two comparisons with different means, three degrees of freedom, a sum of squares of 0.06.
    found = scatter([[1.0, 1.1, 1.2], [-0.1, 0.1], []])
    assert found is not None
    # The upper bound: the 20 % quantile of chi-square with 3 degrees of freedom is 1.005.
    assert found == pytest.approx((math.sqrt(0.04 / 3), math.sqrt(0.04 / 1.005)), rel=1e-3)
    assert scatter([[1.0], []]) is None


def stored(folder: Path, **making: Any) -> Run:
    run = stored_run.make(folder, Making(**{"blocks": 8, "connections": (10,), **making}))
    judge(run)
    environment = {**run.environment, "host": this_machine()}
    files.write_json(run.path / "environment.json", environment)
    return run


def test_time_and_scatter_come_from_earlier_runs_of_the_same_question(tmp_path: Path) -> None:
    # b has 0.9 of the throughput of a, and every second block 2 % more.
    run = stored(
        tmp_path, speed=lambda trial, _: 1000 if trial.variant == "a" else 900 + 18 * (trial.block % 2)
    )
    given = run.experiment()
    assert [one.path for one in find_earlier(tmp_path, given)] == [run.path]
    longer = given.model_copy(update={"load": given.load.model_copy(update={"duration_s": 9.0})})
    assert find_earlier(tmp_path, longer) == []
    made = plan(given, [read_earlier(run)])
    lines = describe(given, None, made)
    assert (
        "  noise     8 blocks of 1 earlier run here differ by 1.1 %, with 80 % confidence by at most 1.4 %"
        in lines
    )
    assert [(row.blocks, row.trials) for row in made.rows] == [(6, 12), (8, 16), (10, 20), (16, 32), (20, 40)]
    assert made.shares.measuring == pytest.approx(8.0 / made.block_s)
    assert summary(made).endswith(
        "(8 blocks of 1 earlier run here differ by 1.1 %, with 80 % confidence by at most 1.4 %)"
    )


def test_a_trial_length_is_suggested_if_it_is_clearly_more_precise(tmp_path: Path) -> None:
    # The blocks hardly differ, the seconds do, and a group takes 10 s besides its trial: longer trials help,
    # as long as enough blocks remain.
    run = stored(tmp_path)
    given, parts = run.experiment(), Components(0.01**2, 0.1**2)
    earlier = [replace(read_earlier(run), components=parts, group_s=given.load.duration_s + 10.0)]
    for one in (given, given.model_copy(update={"design": Design(blocks=6)})):
        made = plan(one, earlier)
        (_, line) = suggest_length(one, earlier, made)
        assert line.startswith("  trials of ")
        assert " s would give ±" in line
        better_s = float(line.split()[2])
        longer_s = made.trials_per_block * (better_s - one.load.duration_s)
        assert made.rows[-1].blocks * made.block_s / (made.block_s + longer_s) >= 6
        better = one.model_copy(update={"load": one.load.model_copy(update={"duration_s": better_s})})
        assert suggest_length(better, earlier, plan(better, earlier)) == []
    made = plan(given, earlier)
    for unlike in (Components(0.0, 0.1**2), None):
        assert suggest_length(given, [replace(earlier[0], components=unlike)], made) == []
    assert suggest_length(given, [], plan(given, [])) == []


def test_only_throughput_by_trials_has_a_better_length(tmp_path: Path) -> None:
    run = stored(tmp_path)
    given = run.experiment()
    earlier = [replace(read_earlier(run), components=Components(0.01**2, 0.1**2))]
    for update in ({"metrics": ("p99",)}, {"pairing": "slices"}):
        other = given.model_copy(update={"design": given.design.model_copy(update=update)})
        assert suggest_length(other, earlier, plan(other, earlier)) == []


def test_a_damaged_earlier_run_is_left_out_and_a_named_one_is_named(tmp_path: Path) -> None:
    run, damaged = stored(tmp_path / "a"), stored(tmp_path / "b")
    (damaged.path / "measured.json").write_text("{")
    shutil.move(damaged.path, run.path.parent)
    given = run.experiment()
    assert [one.path for one in find_earlier(tmp_path / "a", given)] == [run.path]
    (named,) = plan(given, [read_earlier(run, is_named=True)]).scatters
    assert named.source.startswith(f"8 blocks of {run.path} differ by")
    with pytest.raises(Problem, match="not a percentage below 100"):
        plan_command(ROOT / "examples" / "mariadb-flush-at-commit.toml", noise="100000%")


def test_a_named_run_that_says_nothing_about_the_question_is_not_used(tmp_path: Path) -> None:
    run = stored(tmp_path / "a", metrics=("p99",))
    given = stored_run.experiment(Making(connections=(10,)))
    assert find_earlier(tmp_path / "a", given) == []
    named = replace(read_earlier(run, is_named=True), warmup_s=9.0)
    made = plan(given, [named])
    assert f"  noise     no two blocks of {run.path} measured throughput" in describe(given, None, made)
    # The warm-up of the file holds, whatever the other run has derived.
    assert made.shares == plan(given, []).shares
    few = read_earlier(stored(tmp_path / "b", blocks=1), is_named=True)
    assert plan(given, [few]).unknown == f"no two blocks of {few.path} measured throughput"
    assert plan(given, []).unknown == "no earlier run"


def test_one_variant_has_no_precision() -> None:
    given = stored_run.experiment(Making(connections=(10,)))
    one = given.model_copy(update={"variants": given.variants[:1]})
    made = plan(one, [], 3.0)
    assert {row.precision for row in made.rows} == {(None,)}
    assert any(line.startswith("  block     1 trial in about") for line in describe(one, None, made))


def test_the_plan_of_factors_says_whose_precision_it_shows(tmp_path: Path) -> None:
    given = stored_run.make(tmp_path, Making(connections=(10,))).experiment()
    factors = (Factor(name="x", levels=("1", "2")), Factor(name="y", levels=("1", "2")))
    levels = [{"x": x, "y": y} for x in "12" for y in "12"]
    variants = tuple(
        given.variants[0].model_copy(update={"name": f"v{index}", "levels": one})
        for index, one in enumerate(levels)
    )
    factorial = given.model_copy(update={"factors": factors, "variants": variants})
    text = "\n".join(describe(factorial, None, plan(factorial, [])))
    assert "the precision is that of two variants" in text
    assert "two variants" not in "\n".join(describe(given, None, plan(given, [])))


def test_without_earlier_runs_there_is_a_column_for_each_noise(tmp_path: Path) -> None:
    given = stored_run.make(tmp_path, Making(connections=(10,))).experiment()
    assert find_earlier(tmp_path, given) == []
    made = plan(given, [])
    assert [one.source for one in made.scatters] == [f"{noise} % noise per trial" for noise in (2, 5, 10)]
    # With a stop there is no verdict before 8 blocks, and the intervals are wider.
    stopping = given.model_copy(update={"design": Design(stop=Stop(max_blocks=12))})
    wider = plan(stopping, [], 5.0)
    assert [row.blocks for row in wider.rows] == [6, 8, 10, 12]
    assert wider.rows[0].precision == (None,)
    (fixed,), (repeated,) = made.rows[1].precision[1:2], wider.rows[1].precision
    assert fixed is not None
    assert repeated is not None
    assert repeated[0] > 1.2 * fixed[0]


def test_the_share_of_the_time_comes_from_the_stored_calls(tmp_path: Path) -> None:
    run = stored(tmp_path)
    # A call of an older version.
    add_ending(run, Ending(began_unix_us=0, ended_unix_us=200_000_000, why="failed"))
    assert time_shares(read_endings(run)) is None
    steps = {
        "other": 1.0,
        "restoring": 5.0,
        "measuring": 64.0,
        "pilot": 0.2,
        "starting": 9.8,
        "warm-up": 20.0,
    }
    for _ in range(2):
        add_ending(run, Ending(began_unix_us=0, ended_unix_us=100_000_000, why="blocks", seconds=steps))
    shares = time_shares(read_endings(run))
    assert shares is not None
    assert shares.text() == (
        "measuring 64 % of the time, warm-up 20 %, starting and restoring 15 %, other 1 %"
    )
    assert ("time", f"3 min 20 s: {shares.text()}") in design_rows(gather(run))
    assert time_shares([]) is None


def test_the_seconds_of_all_steps_are_the_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    times, trial = StepTimes(), Trial(0, 0, 0, "a", "w", Point(connections=1), 0)

    def listen(value: Progress) -> None:
        times.listen(value, lambda _trial: (2.0, 4.0))

    with times.step("starting"):
        now += 3.0
        with times.step("restoring"):
            now += 1.0
    with times.step("connecting"):
        listen(TrialBegan(trial))
        now += 7.0
        listen(TrialEnded(trial, "", 100.0))
        listen(TrialBegan(trial))
        now += 5.0
        listen(TrialEnded(trial, "the server has died", None))
    with suppress(KeyboardInterrupt), times.step("connecting"):
        listen(TrialBegan(trial))
        now += 1.5
        raise KeyboardInterrupt
    now += 0.5
    assert times.seconds() == {
        "starting": 3.0,
        "restoring": 1.0,
        "connecting": 1.0,
        "measuring": 4.0,
        "warm-up": 2.0,
        "failed trials": 5.0,
        "interrupted trials": 1.5,
        "other": 0.5,
    }
