"""When a comparison with design.stop ends, what a later call runs, and what is stored about it."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.unit.fake_server import FakeServers, install
from tests.unit.test_repeats import load, store
from tests.unit.test_run_coordinator import Listening, created, experiment, interrupt

from dbdyno.commands.compare import compare as compare_command
from dbdyno.commands.comparison import _blocks_after, _print_resume_command
from dbdyno.decide.stopping import ComparisonProgress, Progress
from dbdyno.experiment.model import Experiment, Stop
from dbdyno.experiment.schedule import Trial, planned_blocks, schedule, top_up
from dbdyno.problem import Problem
from dbdyno.run import progress, stopping
from dbdyno.run.compare import compare
from dbdyno.run.coordinator import Coordinator
from dbdyno.run.repeating import plan_repeat
from dbdyno.run.stopping import Deadline, Limits, TimeIsOver
from dbdyno.run.trial import Outcome
from dbdyno.store import Run
from dbdyno.store.endings import read_endings
from dbdyno.terminal.progress import block_text

ROOT = Path(__file__).parents[2]
# Far above what an interruption takes, on a busy machine too.
TIME_LIMIT_S = 60.0


@pytest.fixture
def basedir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Servers in memory, and trials that are stored without load."""

    def run_trial(run: Run, _engine: Any, trial: Trial, _context: Any) -> Outcome:
        with run.begin(trial, {}) as writer:
            return Outcome(writer.finish("done"), None)

    monkeypatch.setattr("dbdyno.run.coordinator.run_trial", run_trial)
    monkeypatch.setattr("dbdyno.checks.host._WATCH_S", 0.0)
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    with FakeServers().registered():
        yield install(tmp_path / "programs")


def stopping_experiment(basedir: Path, **stop: Any) -> Experiment:
    return experiment(basedir, connections=(1,), blocks=5, stop=Stop(max_blocks=5, **stop))


def judge_is_sure_after(monkeypatch: pytest.MonkeyPatch, blocks: int) -> list[int]:
    """Let the judge decide from so many blocks on. Returns the trials that it saw at each look."""
    looks: list[int] = []

    def decide(run: Run) -> Progress:
        looks.append(len(run.trials()))
        return Progress(is_decided=len(run.trials()) >= 2 * blocks, comparisons=())

    monkeypatch.setattr(stopping, "decide", decide)
    return looks


@contextmanager
def time_left(seconds: float) -> Iterator[None]:
    """Every call has so much time left, whatever it has taken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deadline, "left_s", property(lambda _self: seconds))
        yield


def call(run: Run, limits: Limits | None = None) -> Listening:
    listening = Listening()
    compare(run.experiment(), run, listening, limits=limits)
    return listening


def steps(listening: Listening) -> list[str]:
    return [value.text for value in listening.values if isinstance(value, progress.Step)][:1]


def ends(run: Run) -> list[str]:
    return [one.why for one in read_endings(run)]


def test_it_ends_when_the_judge_is_sure_and_may_get_more_blocks(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = stopping_experiment(basedir)
    run = created(given, tmp_path)
    looks = judge_is_sure_after(monkeypatch, 3)
    listening = call(run)
    assert (looks, len(run.trials()), ends(run)) == ([2, 4, 6], 6, ["decided"])
    lines = [block_text(value) for value in listening.values if isinstance(value, progress.BlockEnded)]
    assert lines == [
        "block 1 of at most 5; no verdict is possible yet",
        "block 2 of at most 5; no verdict is possible yet",
        "block 3 of at most 5; decided, so no more blocks are needed "
        "(narrower interval: --resume --blocks +N)",
    ]
    # Another call has nothing to do.
    assert call(run).ended() == []
    # A top-up runs its blocks although the verdict is decided, first those of the plan and then new ones.
    assert [index for index, _ in call(run, Limits(more_blocks=4)).ended()] == list(range(6, 14))
    assert (len(planned_blocks(run.schedule())), ends(run)[1:]) == (7, ["decided", "blocks"])
    assert run.schedule() == list(schedule(given, 7))


def test_without_top_up_no_block_is_added_beyond_the_largest_number(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = created(stopping_experiment(basedir, top_up=False), tmp_path)
    judge_is_sure_after(monkeypatch, 3)
    call(run)
    with pytest.raises(Problem, match="at most 5 blocks and cannot get 1 more: with top_up"):
        call(run, Limits(more_blocks=3))
    # A refused call changes nothing.
    assert ends(run) == ["decided"]
    assert steps(call(run)) == ["the run has ended; --resume --blocks +4 adds four blocks"]
    assert len(call(run, Limits(more_blocks=2)).ended()) == 4
    assert steps(call(run)) == ["the run has ended"]


def test_a_refused_top_up_adds_no_blocks(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = created(stopping_experiment(basedir), tmp_path)
    judge_is_sure_after(monkeypatch, 1)
    call(run)
    for limits, message in (
        (Limits(max_time_s=0.3, more_blocks=9), "no block would begin"),
        (Limits(max_time_s=0.0, more_blocks=9), "no block would begin"),
        (Limits(more_blocks=1_000), "would have 1001 blocks; the limit is 1000"),
    ):
        with pytest.raises(Problem, match=message):
            call(run, limits)
    assert (len(run.schedule()), ends(run), call(run).ended()) == (10, ["decided"], [])


def test_the_command_that_continues_a_top_up_names_the_blocks_that_are_left(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = created(stopping_experiment(basedir), tmp_path)
    judge_is_sure_after(monkeypatch, 1)
    call(run)
    blocks = _blocks_after(run, Limits(more_blocks=3))
    call(run, Limits(more_blocks=2))
    monkeypatch.setattr("sys.argv", ["dbdyno", "compare", "f.toml", "--resume", "--blocks", "+3"])
    assert _print_resume_command(run, blocks)
    assert capsys.readouterr().err.endswith("Continue with: dbdyno compare f.toml --resume --blocks +1\n")


def test_a_call_with_some_of_the_planned_blocks_does_not_end_the_run(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = created(stopping_experiment(basedir), tmp_path)
    judge_is_sure_after(monkeypatch, 9)
    with time_left(1.0):
        call(run)
    call(run, Limits(more_blocks=2))
    assert (len(run.trials()), ends(run)) == (6, ["time", "blocks"])
    assert (len(call(run).ended()), ends(run)) == (4, ["time", "blocks", "blocks"])


def test_no_block_begins_that_would_end_after_the_time(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = created(stopping_experiment(basedir), tmp_path)
    judge_is_sure_after(monkeypatch, 9)
    with pytest.raises(Problem, match="no block would begin"):
        call(run, Limits(max_time_s=0.3))
    # Two trials of 0.2 s, and the start of two servers, which is expected to take seconds.
    with time_left(1.0):
        call(run)
    assert (len(run.trials()), ends(run)) == (2, ["time"])
    call(run)
    assert (len(run.trials()), ends(run)[1:]) == (10, ["blocks"])


@pytest.mark.parametrize("pairing", ["trials", "slices"])
def test_a_block_that_runs_when_the_time_is_over_is_interrupted(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairing: Any
) -> None:
    given = stopping_experiment(basedir)
    given = given.model_copy(update={"design": given.design.model_copy(update={"pairing": pairing})})
    run = created(given, tmp_path)
    looks = judge_is_sure_after(monkeypatch, 3)
    # The trial in which the time ends.
    last = {3}

    def run_trial(run: Run, _engine: Any, trial: Trial, _context: Any) -> Outcome:
        with run.begin(trial, {}) as writer:
            if trial.index in last:
                with time_left(-1.0):
                    signal.raise_signal(stopping.SIGNAL)
            return Outcome(writer.finish("done"), None)

    def run_point(coordinator: Coordinator, trials: list[Trial], _contexts: Any) -> dict[str, Outcome]:
        return {trial.variant: run_trial(coordinator.run, None, trial, None) for trial in trials}

    monkeypatch.setattr("dbdyno.run.coordinator.run_trial", run_trial)
    monkeypatch.setattr("dbdyno.run.alternating._run_point", run_point)
    with FakeServers(in_slices=pairing == "slices").registered() as fakes:
        listening = call(run)
        assert not fakes.running
    # The third trial is complete and kept. The fourth has a folder, and counts as interrupted.
    (ending,) = read_endings(run)
    assert (ending.why, ending.interrupted) == ("time", 1)
    assert "interrupted trials" in ending.seconds
    assert [trial.index for trial in run.trials()] == [0, 1, 2]
    assert (run.path / "trials" / "0004").exists()
    assert looks == [2]
    assert [value.text for value in listening.values if isinstance(value, progress.Step)][-1] == (
        "max_time (30 min 00 s) is over: block 2 was interrupted, and is not judged; --resume continues"
    )
    last.clear()
    with FakeServers(in_slices=pairing == "slices").registered():
        # In slices the trials of a point run together.
        first = 3 if pairing == "trials" else 2
        assert [index for index, _ in call(run).ended()] == [*range(first, 6)]
    assert (looks, ends(run)) == ([2, 4, 6], ["time", "decided"])


def test_a_call_whose_time_is_over_before_the_first_trial_has_ended_is_a_problem(
    basedir: Path, tmp_path: Path
) -> None:
    run = created(stopping_experiment(basedir), tmp_path)
    text = "max_time is 30 min 00 s, and it was over before the first trial had ended"
    with time_left(-1.0), pytest.raises(Problem, match=text):
        call(run)
    assert (run.trials(), ends(run)) == ([], ["failed"])


def test_the_end_of_the_time_interrupts_only_trials_that_run(basedir: Path) -> None:
    trial, other = schedule(stopping_experiment(basedir))[:2]

    def run_trial() -> None:
        # A library that swallows the first exception.
        with suppress(KeyboardInterrupt):
            time.sleep(TIME_LIMIT_S)
        time.sleep(TIME_LIMIT_S)

    deadline = Deadline(0.2)
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(TimeIsOver), deadline.interrupting([trial]):
            run_trial()
    assert time.monotonic() - began < TIME_LIMIT_S
    deadline = Deadline(0.2)
    with deadline.interrupting([trial, other]):
        for ended in (trial, other):
            deadline.listen(progress.TrialEnded(ended, "", None))
        time.sleep(0.5)


def test_an_interrupted_call_is_continued_in_the_middle_of_its_block(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = created(stopping_experiment(basedir), tmp_path)
    looks = judge_is_sure_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        compare(run.experiment(), run, Listening(1, interrupt))
    call(run)
    assert (looks, ends(run)) == ([2, 4], ["interrupted", "decided"])


def test_a_disturbed_block_is_repeated_before_the_next_one_and_before_the_look(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = stopping_experiment(basedir)
    design = given.design.model_copy(update={"repeat_disturbed": True})
    run = created(given.model_copy(update={"design": design}), tmp_path)
    looks = judge_is_sure_after(monkeypatch, 9)
    busy = {0: load(0.5, rustc=0.5), 2: load(0.9, rustc=0.9)}
    monkeypatch.setattr(
        "dbdyno.run.repeating._foreign_loads",
        lambda run: {t.index: busy[t.index // 2] for t in run.trials() if t.index // 2 in busy},
    )
    listening = call(run)
    # One of five blocks may be repeated. Its repeat has the numbers after the last ones of the plan.
    assert [index for index, _ in listening.ended()] == [0, 1, 10, 11, *range(2, 10)]
    assert looks == [4, 6, 8, 10, 12]
    (extended,) = [value for value in listening.values if isinstance(value, progress.Extended)]
    assert extended.text == (
        "other processes used more than 10 % of the CPUs of server and client in block 1 (rustc 50 %), which "
        "is repeated"
    )


def test_the_last_block_of_a_workload_may_be_repeated_after_the_other_workload_has_ended(
    basedir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = stopping_experiment(basedir)
    (workload,) = given.workloads
    update = {
        "design": given.design.model_copy(
            update={"repeat_disturbed": True, "blocks": 4, "stop": Stop(max_blocks=4)}
        ),
        "workloads": (workload, workload.model_copy(update={"label": "other"})),
    }
    run = created(given.model_copy(update=update), tmp_path)
    judge_is_sure_after(monkeypatch, 99)
    last = run.schedule()[-1].index
    with pytest.raises(KeyboardInterrupt):
        compare(run.experiment(), run, Listening(last, interrupt))
    monkeypatch.setattr(
        "dbdyno.run.repeating._foreign_loads",
        lambda run: {t.index: load(0.5, rustc=0.5) for t in run.trials() if t.index == last},
    )
    assert len(call(run).ended()) == 5


def test_a_quiet_block_is_not_repeated(basedir: Path, tmp_path: Path) -> None:
    given = stopping_experiment(basedir)
    design = given.design.model_copy(update={"repeat_disturbed": True})
    run = created(given := given.model_copy(update={"design": design}), tmp_path)
    for trial in run.schedule()[:4]:
        store(run, trial, load(0.05 if trial.block else 0.5, cc1=0.05))
    assert plan_repeat(given, run, 1) is None
    plan = plan_repeat(given, run, 0)
    assert plan is not None
    assert [(trial.index, trial.block, trial.repeats) for trial in plan.trials] == [(10, 5, 0), (11, 5, 0)]
    assert plan_repeat(given, run, 0) is None


def test_added_blocks_continue_the_balanced_order(basedir: Path) -> None:
    given = stopping_experiment(basedir)
    planned = list(schedule(given))
    assert [*planned, *top_up(given, planned, 4)] == list(schedule(given, 9))
    repeat = replace(planned[0], index=10, block=5, group=10, repeats=0)
    added = top_up(given, [*planned, repeat], 1)
    assert [(trial.index, trial.block, trial.group) for trial in added] == [(11, 6, 11), (12, 6, 12)]
    assert [trial.variant for trial in added] == [trial.variant for trial in schedule(given, 6)[-2:]]


def test_the_line_after_a_block_is_about_the_least_precise_comparison() -> None:
    one = ComparisonProgress("b", "w", (-2.13, 10.5), 6.3, 5)
    line = "block 9 of at most 20: b -2.1 to +10.5 %, ±6.3 %; about 5 more blocks"
    assert block_text(progress.BlockEnded(9, 20, Progress(False, (one,)), 60.0, None)) == line
    other = ComparisonProgress("c", "w", (3.0, math.inf), None, 0)
    both = progress.BlockEnded(18, 20, Progress(False, (one, other)), 60.0, None)
    assert block_text(both) == (
        "block 18 of at most 20: b -2.1 to +10.5 %, ±6.3 % (the least precise of 2 comparisons); "
        "about 5 more blocks would be needed"
    )
    beyond = progress.BlockEnded(9, 20, Progress(True, (other,)), 60.0, None)
    assert block_text(beyond) == "block 9 of at most 20: c +3.0 to ∞ %; decided"
    decided = progress.BlockEnded(9, 20, Progress(True, (other,)), 60.0, "decided")
    assert block_text(decided).startswith(
        "block 9 of at most 20: c +3.0 to ∞ %; decided, so no more blocks are needed ("
    )


def refused(*arguments: str) -> str:
    """The message about these options of `compare`, and its fix."""
    with pytest.raises(Problem) as caught:
        typer.main.get_command(command_line()).main(["compare", *arguments], standalone_mode=False)
    return f"{caught.value.text}. {caught.value.fix}"


def command_line() -> typer.Typer:
    app = typer.Typer()
    app.command("compare")(compare_command)
    app.command("other")(lambda: None)
    return app


def test_options_that_do_not_fit_the_plan_of_the_file_are_refused(tmp_path: Path) -> None:
    fixed = ROOT / "examples" / "mariadb-flush-at-commit.toml"
    assert refused(str(fixed), "--blocks", "+4").startswith("--blocks +4 adds blocks to a run. Add --resume")
    assert refused(str(fixed), "--blocks", "0").startswith("--blocks 0: this is not a number of blocks")
    added = refused(str(fixed), "--resume", "--blocks", "+4")
    assert "fixed number of blocks (8); adding blocks after a look" in added
    assert "(3); --max-time has no effect" in refused(str(fixed), "--blocks", "3", "--max-time", "5m")
    stops = ("--set", "design.stop.max_blocks=9", "--results", str(tmp_path))
    assert "more than 0 s and at most" in refused(str(fixed), *stops, "--max-time", "0s")
    assert "--max-time 5: a duration is a number and a unit" in refused(str(fixed), *stops, "--max-time", "5")
    assert "there is no run of mariadb-flush-at-commit" in refused(
        str(fixed), *stops, "--resume", "--blocks", "+4"
    )
