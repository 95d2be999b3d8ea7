"""Background loads on a real server: their rate by the server's own counters, and what ends with them."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.end_to_end.comparing import Comparing, left_running

from dbdyno.binary import ENGINE
from dbdyno.store import Run

pytestmark = pytest.mark.alone

EXPERIMENT = """
[experiment]
name = "background"
[[workload]]
name = "oltp_point_select"
table_size = 1_000
[[workload.background]]
label = "writes"
rate = 200
connections = 4
parameters = { id = "uniform(1, 1_000)" }
transactions = [{ name = "write", sql = "UPDATE sbtest1 SET k = k + 1 WHERE id = :id", rows = 1 }]
[load]
connections = [2]
duration = "DURATION"
warmup = "500ms"
[client]
workers = 1
[design]
blocks = 1
repeat_disturbed = false
[[variant]]
name = "a"
server.product = "mariadb"
"""


def newest(results: Path) -> Run:
    return Comparing(results, EXPERIMENT).newest()


def test_a_background_load_has_its_rate_and_its_own_figures(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT.replace("DURATION", "3s"))
    answer = comparing.run("--no-report", "--share-machine")
    assert answer.returncode == 0, answer.stderr
    assert "background load writes with a at 2 connections: " in answer.stdout
    run = comparing.newest()
    (trial,) = run.trials()
    judged = run.judge_files()
    assert judged is not None
    (measured,) = judged[1].trials
    writing = measured.background["writes"]
    assert writing.figures is not None
    assert measured.figures is not None
    assert writing.rate == 200.0
    assert writing.throughput == pytest.approx(200.0, rel=0.25)
    assert writing.counted_us == pytest.approx(3_000_000, rel=0.15)
    assert (writing.figures.errors, writing.figures.row_count_mismatches) == ({}, 0)
    # The workload itself does not write: every write that the server counted is one of the background load.
    edges = trial.server["edges"]
    assert edges is not None
    begin, end = edges["begin"], edges["end"]
    writes = int(end["status"]["Com_update"]) - int(begin["status"]["Com_update"])
    seconds = (end["unix_us"] - begin["unix_us"]) / 1e6
    assert writes / seconds == pytest.approx(writing.throughput, rel=0.1)
    reads = int(end["status"]["Com_select"]) - int(begin["status"]["Com_select"])
    assert reads / seconds == pytest.approx(measured.figures.throughput, rel=0.1)
    totals = [record["data"] for record in trial.background("writes")][-1]["phases"]["measure"]
    assert totals["writes"] == totals["events"] > writes
    assert left_running(results) == []


def engines(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The engines of a command, in the order of their start."""
    children = psutil.Process(process.pid).children()
    running: list[tuple[float, psutil.Process]] = []
    for one in children:
        # One that has just ended has no name.
        with suppress(psutil.NoSuchProcess):
            if one.name() == ENGINE:
                running.append((one.create_time(), one))
    return [one for _, one in sorted(running, key=lambda entry: entry[0])]


def wait_for_both(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The engines of the trial and of its background load, which has begun."""
    deadline = time.monotonic() + 120.0
    while process.poll() is None and time.monotonic() < deadline:
        if len(found := engines(process)) == 2:
            time.sleep(1.0)
            return found
        time.sleep(0.05)
    raise AssertionError(f"no background load began: {process.communicate()}")


def start(comparing: Comparing) -> subprocess.Popen[str]:
    return subprocess.Popen(
        comparing.command("--no-report", "--share-machine"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_trial_fails_if_its_background_load_ends(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT.replace("DURATION", "6s"))
    with start(comparing) as process:
        _, writing = wait_for_both(process)
        began = time.monotonic()
        writing.send_signal(signal.SIGKILL)
        # It runs once more, because the server did not cause it.
        wait_for_both(process)
        assert time.monotonic() - began < 60.0
        answer = process.communicate(timeout=120)
    assert process.returncode == 0, answer
    (trial,) = newest(results).trials()
    assert trial.is_done
    (attempt,) = trial.attempts
    assert attempt.failed_by == "harness"
    assert attempt.meta["reason"] == (
        "the background load writes ended before its trial: the engine was ended by SIGKILL"
    )
    assert left_running(results) == []


def test_no_engine_outlives_dbdyno(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT.replace("DURATION", "60s"))
    with start(comparing) as process:
        both = wait_for_both(process)
        process.kill()
        process.communicate(timeout=60)
        gone, alive = psutil.wait_procs(both, timeout=20)
    assert len(gone) == 2, alive
