"""Output that nobody can have: a full disk, a closed descriptor, a reader that went away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.unit.stored_run import Making, make

from dbdyno.binary import COMPAT, ENGINE, find_program

FULL = "dbdyno: standard output is incomplete: No space left on device\n"
CLOSED = "dbdyno: standard output is incomplete: Bad file descriptor\n"
# A plan that needs no server.
PLAN = {
    "schema": 1,
    "target": {"protocol": "null"},
    "workload": {"name": "oltp_point_select"},
    "load": {"connections": 1},
    "phases": {"measure_us": 1_500_000, "drain_us": 0},
    "seed": 1,
}


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """What a shell sees of a command line."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-c", line]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def test_a_report_that_could_not_be_written_is_an_error(tmp_path: Path) -> None:
    run = make(tmp_path, Making(blocks=2, connections=(10,)))
    dbdyno = f"{sys.executable} -m dbdyno"
    for line, code, message in (
        (f"report {run.path} --format csv >/dev/full", 4, FULL),
        ("schema >&-", 4, CLOSED),
        # A mistake of the user has its own exit code.
        ("schema it >/dev/full", 2, "Usage"),
    ):
        done = shell(f"{dbdyno} {line}")
        assert (done.returncode, done.stderr[: len(message)]) == (code, message)


@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
@pytest.mark.parametrize(
    "line", ["sysbench cpu run --events=1", "mysqlslap --only-print -a", "sysbench --help"]
)
def test_a_report_of_a_drop_in_too(line: str, output: str) -> None:
    name, _, rest = line.partition(" ")
    done = shell(f"exec -a {name} {find_program(COMPAT)} {rest} {output}")
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "standard output is incomplete" in done.stderr
    assert shell(f"exec -a {name} {find_program(COMPAT)} {rest}").returncode == 0


def test_without_a_reader_of_messages_a_command_goes_on(tmp_path: Path) -> None:
    body = """
import sys, time
from rich.console import Console
from dbdyno.terminal.streams import guard_streams
with guard_streams():
    console = Console(stderr=True)
    for _ in range(3):
        print("progress", file=sys.stderr, flush=True)
        console.print("progress")
        print("a row", flush=True)
    open(sys.argv[1], "w").write("done")
    sys.exit(5)
"""
    for number, broken in enumerate(("2>&-", "2>/dev/full", "2> >(exit 0)", "> >(exit 0)", "0<&-")):
        path = tmp_path / str(number)
        done = shell(f"{sys.executable} -c '{body}' {path} {broken}")
        assert (done.returncode, path.read_text()) == (5, "done"), broken
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("is_ignored", [True, False])
def test_under_nohup_a_hangup_does_not_end_the_engine(is_ignored: bool) -> None:
    with subprocess.Popen(
        [find_program(ENGINE), "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL),  # noqa: PLW1509 — it only makes a system call.
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write(json.dumps(PLAN).encode() + b"\n")
        engine.stdin.flush()
        engine.stdout.readline()
        time.sleep(0.2)
        engine.send_signal(signal.SIGHUP)
        *_, end = engine.stdout.read().splitlines()
    assert json.loads(end)["data"]["reason"] == ("time-limit" if is_ignored else "interrupted")
    assert engine.returncode == (0 if is_ignored else 130)
