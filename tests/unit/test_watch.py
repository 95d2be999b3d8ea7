"""The texts of the live view, for runs whose every figure is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.stored_run import Making, experiment, make, store

from dbdyno import result_text
from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.languages import translator
from dbdyno.problem import Problem
from dbdyno.store import Run, live
from dbdyno.store.live import RunFollower
from dbdyno.text import compose
from dbdyno.verdict import judge
from dbdyno.watch import view

SMALL = Making(blocks=6, connections=(10,))


def test_a_judged_run_shows_the_figures_and_sentences_of_the_judge(tmp_path: Path) -> None:
    run = make(tmp_path, SMALL)
    judge(run)
    run.release()
    now = RunFollower(run).read()
    assert view.state_line(now) == "ENDED: it is judged"
    assert view.progress_lines(now, 80)[:2] == ["12 of 12 trials have ended", "blocks  ######"]
    judged = run.judge_files()
    assert judged is not None
    assert view.verdict_lines(now, run.experiment()) == [one.sentence for one, _ in judged[0].sentences]
    rows = view.rows(now, run.experiment(), 80)
    for row, trial in zip(reversed(rows), judged[1].trials, strict=True):
        assert trial.figures is not None
        rate = result_text.rate(trial.figures.throughput)
        assert row[:4] == (str(trial.block + 1), trial.variant, "10", rate)
        assert row[-1] == "done"


def test_a_run_in_progress_shows_what_is_to_come(tmp_path: Path) -> None:
    plan = experiment(SMALL)
    run = Run.create(tmp_path, plan, b"")
    first, second, third, *_ = schedule(plan)
    follower = RunFollower(run)
    assert view.state_line(follower.read()) == "RUNNING: preparing servers and data"
    store(run, first, plan, SMALL)
    store(run, second, plan, Making(blocks=6, connections=(10,), failed=lambda _: "the server is gone"))
    run.begin(third, {})
    now = follower.read()
    assert view.state_line(now) == f"RUNNING: {view.trial_text(third)}, connecting"
    assert view.progress_lines(now, 80)[:2] == [
        "2 of 12 trials have ended, 1 of them failed",
        "blocks  !0....",
    ]
    newest, failed, _ = view.rows(now, plan, 80)
    assert newest[-1] == "running"
    assert failed[-1] == "failed: the server is gone"
    assert view.verdict_lines(now, plan) == []
    run.release()
    ended = follower.read()
    assert view.state_line(ended).startswith("ENDED: dbdyno was ended; compare --resume")
    assert view.rows(ended, plan, 80)[0][-1] == "interrupted"
    assert view.verdict_lines(ended, plan) == ["No verdict yet: dbdyno show computes it."]


def test_a_run_in_progress_says_its_step_and_the_time_left(tmp_path: Path) -> None:
    run = Run.create(tmp_path, experiment(SMALL), b"")
    follower = RunFollower(run)
    assert follower.read().left_s is None
    step = compose("block {block}, {variant}: {step}", block=2, variant="b", step="x")
    live.write_progress(run.path, step, 90.0)
    now = follower.read()
    assert view.state_line(now) == "RUNNING: block 2, b: x"
    assert translator("ko")(view.state_line(now)) == "실행 중: 블록 2, b: x"
    assert now.left_s is not None
    assert 80.0 < now.left_s <= 90.0
    assert re.fullmatch(r"0 of 12 trials have ended, about 1 min [23]\d s left", view.trials_text(now))
    # It is no file of the run.
    assert run.changed_files() == []
    (run.path / live.PROGRESS).write_text("{")
    assert follower.read().left_s is None
    live.remove_progress(run.path)
    assert not (run.path / live.PROGRESS).exists()


def test_stops_and_warnings_come_before_notes(tmp_path: Path) -> None:
    run = make(tmp_path, SMALL)
    run.add_findings(
        [Finding("P03", "warn", "first"), Finding("P01", "note", "x"), Finding("P02", "note", "y")]
    )
    now = RunFollower(run).read()
    assert view.findings_title(now) == "1 warning, 2 notes"
    assert view.finding_lines(now) == ["warning P03: first.", "note P02: y.", "note P01: x."]


def test_the_lines_of_the_head_fit_80_columns(tmp_path: Path) -> None:
    many = Making(blocks=100, connections=(10,), absent=lambda trial: trial.block > 0)
    now = RunFollower(make(tmp_path, many)).read()
    lines = view.progress_lines(now, 80)
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count(view.TO_COME) >= 99


def test_long_names_keep_their_beginning_and_end(tmp_path: Path) -> None:
    run = make(
        tmp_path, Making(blocks=2, connections=(10,), names=("thread-per-connection", "thread-pool-of-16"))
    )
    now = RunFollower(run).read()
    assert {row[1] for row in view.rows(now, run.experiment(), 80)} == {"thre…ion", "thre…-16"}
    wide = {row[1] for row in view.rows(now, run.experiment(), 120)}
    assert wide == {"thread-per-connection", "thread-pool-of-16"}


def test_without_a_terminal_the_command_names_another_one(tmp_path: Path) -> None:
    from dbdyno.commands.watch import watch

    make(tmp_path, SMALL)
    with pytest.raises(Problem, match="needs a terminal") as raised:
        watch(None, tmp_path)
    assert "dbdyno show" in raised.value.fix
