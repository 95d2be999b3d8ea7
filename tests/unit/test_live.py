"""The reader of a run in progress: a trial as it is written, interrupted, repeated and ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Making, experiment, make, store, stream

from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.measure.figures import live_percentile_us
from dbdyno.store import Run
from dbdyno.store.live import RunFollower
from dbdyno.store.trial import TrialWriter
from dbdyno.verdict import judge

SMALL = Making(blocks=2, connections=(10,))


class Writing:
    """A run that a test writes step by step, and a follower of it."""

    def __init__(self, folder: Path) -> None:
        self.plan = experiment(SMALL)
        self.run = Run.create(folder, self.plan, b"")
        self.planned = schedule(self.plan)
        self.follower = RunFollower(Run.open(self.run.path))

    def begin(self, number: int = 0) -> tuple[TrialWriter, list[bytes]]:
        trial = self.planned[number]
        lines = [json.dumps(one).encode() + b"\n" for one in stream(trial, self.plan, SMALL.speed)]
        return self.run.begin(trial, {}), lines


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path)


def measured(lines: list[bytes]) -> dict[str, Any]:
    totals: dict[str, Any] = json.loads(lines[-1])["data"]["phases"]["measure"]
    return totals


def test_a_running_trial_is_read_interval_by_interval(writing: Writing) -> None:
    empty = writing.follower.read()
    assert (empty.is_running, empty.trials, len(empty.planned)) == (True, (), 4)
    writer, lines = writing.begin()
    seen = []
    for line in lines:
        # The first half of a line is no line yet.
        writer.append_event(line[: len(line) // 2])
        (before,) = writing.follower.read().running
        writer.append_event(line[len(line) // 2 :])
        (after,) = writing.follower.read().running
        is_interval = json.loads(line)["type"] == "interval"
        assert len(after.parts) == len(before.parts) + is_interval
        seen.append(after.phase)
    assert list(dict.fromkeys(seen)) == ["", "warmup", "measure"]
    expected = measured(lines)
    assert after.measured is not None
    assert after.measured.events == expected["events"]
    seconds = (expected["end_us"] - expected["start_us"]) / 1e6
    assert after.measured.throughput == pytest.approx(expected["events"] / seconds)
    writer.finish("done")
    now = writing.follower.read()
    assert now.running == ()
    (ended,) = now.ended
    assert ended.measured is not None
    assert ended.measured.events == expected["events"]


def test_a_follower_that_comes_later_reads_the_same_totals(writing: Writing) -> None:
    store(writing.run, writing.planned[0], writing.plan, SMALL)
    (ended,) = writing.follower.read().ended
    lines = writing.begin(1)[1]
    assert ended.measured is not None
    assert ended.measured.end_us == measured(lines)["end_us"]


def test_a_run_that_was_killed_is_interrupted_and_goes_on_after_resume(writing: Writing) -> None:
    writer, lines = writing.begin()
    for line in lines[:-1]:
        writer.append_event(line)
    writer.append_event(lines[-1][:20])
    events = writing.follower.read().trials[0].parts
    assert events
    writing.run.release()
    killed = writing.follower.read()
    assert (killed.is_running, killed.trials[0].state, killed.ending) == (False, "interrupted", None)
    # --resume begins the trial again, in a new file.
    writing.run.lock()
    writer, lines = writing.begin()
    for line in lines[:4]:
        writer.append_event(line)
    (again,) = writing.follower.read().running
    assert len(again.parts) < len(events)
    writer.finish("failed", reason="the server is gone")
    (failed,) = writing.follower.read().ended
    assert (failed.state, failed.reason) == ("failed", "the server is gone")
    # It is tried once more.
    writing.begin()
    assert [one.state for one in writing.follower.read().trials] == ["running"]


def test_findings_come_as_they_are_stored(writing: Writing) -> None:
    assert writing.follower.read().findings == ()
    finding = Finding("P11", "warn", "client and server share CPU 0")
    writing.run.add_findings([finding])
    assert [one.text for one in writing.follower.read().findings] == [finding.text]


def test_figures_of_ended_trials_equal_those_of_the_judge(tmp_path: Path) -> None:
    run = make(tmp_path, SMALL)
    judge(run)
    assert RunFollower(run).read().verdict is None, "the run is locked, so it goes on"
    run.release()
    now = RunFollower(run).read()
    assert now.verdict == run.verdict()
    files = run.judge_files()
    assert files is not None
    for live, judged in zip(now.ended, files[1].trials, strict=True):
        assert judged.figures is not None
        assert live.measured is not None
        assert live.measured.throughput == pytest.approx(judged.figures.throughput)
        assert live_percentile_us(live.measured, 95.0) == pytest.approx(
            judged.figures.latency_p95_us, rel=1e-3
        )


def test_a_damaged_line_is_left_out(writing: Writing) -> None:
    writer, lines = writing.begin()
    writer.append_event(b"no record\n")
    for line in lines[:-1]:
        writer.append_event(line)
    (trial,) = writing.follower.read().running
    assert trial.measured is not None
    assert trial.measured.events == measured(lines)["events"]
