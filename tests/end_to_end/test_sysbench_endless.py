"""Scripts that loop or allocate without end: the process ends within documented limits of time and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.end_to_end.differential import drop_in

LOOP = "while true do end"
ALLOCATE = "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end"
# Where a script does it.
PLACES = {
    "global": "{}",
    "thread_init": "function thread_init() {} end",
    "event": "function event() {} end",
}
# After the time limit the drop-in waits 5 s for a script that computes, and 1 s for its thread to stop.
BLOCKED_S = 6.0
SLACK_S = 5.0


@pytest.fixture(scope="module")
def sysbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drop_in(tmp_path_factory.mktemp("shims")).folder / "sysbench"


def started(sysbench: Path, folder: Path, place: str, body: str, *options: str) -> subprocess.Popen[str]:
    event = "" if place == "event" else "function event() end\n"
    (folder / "endless.lua").write_text(event + PLACES[place].format(body) + "\n")
    command = [str(sysbench), "endless.lua", "run", "--threads=2", *options]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def output_within(process: subprocess.Popen[str], seconds: float) -> str:
    try:
        output, _ = process.communicate(timeout=seconds + SLACK_S)
    finally:
        process.kill()
    return output


def test_an_event_that_loops_ends_after_the_time_limit(sysbench: Path, tmp_path: Path) -> None:
    """What was measured until then is reported, as after a forced shutdown."""
    process = started(sysbench, tmp_path, "event", LOOP, "--time=1")
    output = output_within(process, 1 + BLOCKED_S)
    assert process.returncode == 2, output
    assert "did not return: it probably loops without end" in output
    assert "General statistics:" in output


@pytest.mark.parametrize("place", ["global", "thread_init"])
def test_a_start_that_loops_ends_at_its_own_limit(sysbench: Path, tmp_path: Path, place: str) -> None:
    process = started(sysbench, tmp_path, place, LOOP, "--compat=1.1", "--thread-init-timeout=1")
    output = output_within(process, 1)
    assert process.returncode == 2, output
    assert output.count("FATAL: Worker threads failed to initialize within 1 seconds!") == 1


@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_ends_a_loop(sysbench: Path, tmp_path: Path, place: str) -> None:
    process = started(sysbench, tmp_path, place, LOOP)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    output = output_within(process, 2)
    assert time.monotonic() - began < 2, "a loop in an event is waited for 1 s"
    assert process.returncode == -signal.SIGINT, output


@pytest.mark.parametrize("place", PLACES)
def test_memory_is_limited(sysbench: Path, tmp_path: Path, place: str) -> None:
    process = started(sysbench, tmp_path, place, ALLOCATE, "--lua-memory=100M")
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == 1, output
    sentence = "FATAL: the script uses more than 100 MiB of memory: it probably allocates without end"
    assert output.count(sentence) == 1, output
    assert usage.ru_maxrss < 1024 * 1024, "what is allocated between two looks is little"
