"""A process beside the load: the block that it disturbs is repeated, and it is named."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import TIME_LIMIT_S, Comparing, environment, left_running

from dbdyno.experiment.repeats import FOREIGN_LIMIT, read_foreign_load
from dbdyno.measure.foreign_load import foreign_load
from dbdyno.store import Run

pytestmark = pytest.mark.alone
NAME = "burner"
# Against server and load generator on the same CPU they have most of it, whatever else runs on the machine.
BURNERS = 8
EXPERIMENT = """
[experiment]
name = "beside"
[[workload]]
name = "oltp_read_only"
table_size = 1_000
[load]
connections = [4]
duration = "1s"
warmup = "500ms"
[client]
cpus = "{cpu}"
[design]
blocks = 4
repeat_disturbed = true
pairing = "trials"
[[variant]]
name = "a"
[variant.server]
cpus = "{cpu}"
variables = {{ innodb_buffer_pool_size = "64M" }}
[[variant]]
name = "b"
[variant.server]
cpus = "{cpu}"
variables = {{ innodb_buffer_pool_size = "65M" }}
"""


@pytest.fixture(scope="module")
def cpu() -> int:
    return min(os.sched_getaffinity(0))


@contextmanager
def burning(folder: Path, cpu: int) -> Iterator[None]:
    """Busy processes on a CPU, with a name that no other process has, and no children of dbdyno."""
    python = folder / NAME
    if not python.exists():
        python.symlink_to(sys.executable)
    processes = [subprocess.Popen([python, "-S", "-c", "while True: pass"]) for _ in range(BURNERS)]
    for process in processes:
        os.sched_setaffinity(process.pid, {cpu})
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def disturb(comparing: Comparing, cpu: int) -> str:
    """Compare with busy processes during block 2, and interrupt the first trial of what is repeated: the
    lines of standard error.
    """
    process = subprocess.Popen(
        comparing.command("--no-report"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stderr is not None
    limit = threading.Timer(TIME_LIMIT_S, process.kill)
    limit.start()
    lines: list[str] = []

    def until(words: str) -> None:
        for line in process.stderr or ():
            lines.append(line)
            if words in line:
                return
        pytest.fail(f"no line with {words!r} in:\n{''.join(lines)}")

    try:
        until("block 2,")
        with burning(comparing.results, cpu):
            until("block 3,")
        until("block 5 (repeats block 2)")
        process.send_signal(signal.SIGINT)
        lines += process.stderr
    finally:
        limit.cancel()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait()
    return "".join(lines)


def shares(run: Run) -> dict[int, float]:
    """The foreign share of every trial, all of which have one."""
    found = dict(foreign_load(run.trials(), run.schedule(), range(4)).shares)
    assert found.keys() == {trial.index for trial in run.trials()}
    return found


def test_a_disturbed_block_is_repeated_and_the_process_is_named(results: Path, cpu: int) -> None:
    comparing = Comparing(results, EXPERIMENT.format(cpu=cpu))
    lines = disturb(comparing, cpu)
    assert re.search(rf"in \d of 4 blocks \(.*{NAME} \d+ %", lines), lines
    assert "9 of 10 trials are finished" in lines
    interrupted = comparing.newest()
    planned = interrupted.schedule()
    assert [trial.repeats for trial in planned] == [None] * 8 + [1, 1]
    assert [trial.variant for trial in planned[8:]] == [trial.variant for trial in planned[2:4]]
    # The repeat is not complete: the original counts, and exceeds the limit.
    assert foreign_load(interrupted.trials(), planned, range(4)).replaced == {}
    (remaining,) = foreign_load(interrupted.trials(), planned, range(4)).remaining.values()
    assert 1 in remaining

    answer = comparing.run("--resume", "--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    assert run.path == interrupted.path
    assert run.schedule() == planned
    assert [trial.is_done for trial in run.trials()] == [True] * 10
    found = foreign_load(run.trials(), planned, range(4))
    assert found.replaced == {1: 4}
    assert found.findings[0].code == "D06"
    assert 1 in found.findings[0].evidence["blocks"]
    verdict = json.loads((run.path / "verdict.json").read_text())
    assert found.findings[0].text in {one["text"] for one in verdict["checks"] if one["code"] == "D06"}
    share = shares(run)
    disturbed = max(share[index] for index in (2, 3))
    assert disturbed > 0.4
    server: Any = run.trials()[max((2, 3), key=lambda index: share[index])].server
    load = server["edges"]["foreign"]
    assert load["cpus"] == str(cpu)
    assert load["processes"][0]["name"] == NAME
    assert left_running(results) == []


def test_the_load_itself_is_not_foreign(results: Path, cpu: int) -> None:
    """Other programs may run on this machine meanwhile; what they do not explain is ours."""
    text = EXPERIMENT.format(cpu=cpu).replace("[4]", "[1, 64]").replace("blocks = 4", "blocks = 2")
    comparing = Comparing(results, text)
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    loads = [load for trial in run.trials() if (load := read_foreign_load(trial.server)) is not None]
    unexplained = [
        load["share"] - load["steal"] - sum(one["share"] for one in load["processes"]) for load in loads
    ]
    assert statistics.median(unexplained) < 0.05
    # Nothing is repeated where nothing disturbs.
    met = any(share > FOREIGN_LIMIT for index, share in shares(run).items() if index < 8)
    assert any(trial.repeats is not None for trial in run.schedule()) == met
    assert ("other processes used more than" in answer.stderr) == met
