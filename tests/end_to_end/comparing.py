"""Runs `dbdyno compare` as a process on a small experiment, for the tests beside this file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from dbdyno.binary import COMPAT, ENGINE
from dbdyno.store import Run

ROOT = Path(__file__).parents[2]
# Two variants that every MariaDB has.
VARIANTS = """
[[variant]]
name = "one-thread-per-connection"
[variant.server]
variables = { innodb_buffer_pool_size = "64M", thread_handling = "one-thread-per-connection" }
[[variant]]
name = "pool-of-threads"
[variant.server]
variables = { innodb_buffer_pool_size = "64M", thread_handling = "pool-of-threads" }
"""
# Two equal variants of a product.
TWO_EQUAL = """
[[variant]]
name = "a"
server.product = "PRODUCT"
[[variant]]
name = "b"
server.product = "PRODUCT"
"""
EXPERIMENT = """
[experiment]
name = "small"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 1_000
[load]
connections = [1, 4]
duration = "1s"
warmup = "500ms"
[design]
repeat_disturbed = false
blocks = 2
seed = 1
"""
EXPERIMENT += VARIANTS
# Without variants: half a second of two connections, two blocks.
TWO_CONNECTIONS = """
[experiment]
name = "reached"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 500
[load]
connections = [2]
duration = "500ms"
warmup = "200ms"
[client]
workers = 1
[design]
repeat_disturbed = false
blocks = 2
state = "reset"
"""
# Far above what any of these comparisons takes, on a busy machine too.
TIME_LIMIT_S = 300.0
# What the servers' programs are called; a loader of their own may stand before them.
SERVERS = ("mariadbd", "mysqld", "postgres")
# In the environment of everything that these tests start: who started it, as others may run tests too.
MARK = "DBDYNO_TEST_COMPARING"


class Comparing:
    """The command on one experiment file and one results directory."""

    def __init__(self, results: Path, text: str = EXPERIMENT) -> None:
        self.results = results
        self.file = results / "small.toml"
        self.file.write_text(text)

    def command(self, *arguments: str, file: Path | None = None) -> list[str]:
        """The argv of `dbdyno compare`."""
        place = ["--results", str(self.results)]
        return [sys.executable, "-m", "dbdyno", "compare", str(file or self.file), *place, *arguments]

    def run(self, *arguments: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*arguments, file=file),
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            env=environment(),
            check=False,
        )

    def interrupt(self, at: str, number: signal.Signals, *arguments: str) -> tuple[int, str]:
        """Run it, signal it at the first line of standard error that holds `at`: exit code and all lines.

        The signal is sent twice, 1 ms apart, as GNU timeout does it.
        """
        process = subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert process.stderr is not None
        limit = threading.Timer(TIME_LIMIT_S, process.kill)
        limit.start()
        lines = []
        sent = False
        for line in process.stderr:
            lines.append(line)
            if at in line and not sent:
                sent = True
                # Into the middle of what that line announces.
                time.sleep(0.7)
                # So that "nothing is left running" afterwards says something.
                wait_until(lambda: bool(left_running(self.results)), "a server runs at this point")
                process.send_signal(number)
                time.sleep(0.001)
                process.send_signal(number)
        limit.cancel()
        assert sent, "".join(lines)
        return process.wait(), "".join(lines)

    def newest(self) -> Run:
        """The newest run."""
        paths = sorted(self.results.glob("*/*/experiment.json"), key=lambda path: path.stat().st_mtime_ns)
        return Run.open(paths[-1].parent)

    def runs(self) -> list[Path]:
        """All runs."""
        return sorted(path.parent for path in self.results.glob("*/*/experiment.json"))


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until `is_so`, for as long as a busy machine may need."""
    deadline = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def environment() -> dict[str, str]:
    """Ours, with the lab and, where it is not installed beside Python, the engine of this clone."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(ROOT / "target" / "release")])
    return {**os.environ, "PYTHONPATH": str(ROOT / "lab"), "PATH": path, MARK: str(os.getpid())}


def left_running(results: Path) -> list[str]:
    """Command lines of servers with data below `results`, and of load engines these tests have started.

    Servers that this process has started itself are the fixtures'.
    """
    found = []
    for process in psutil.process_iter(["cmdline", "status", "environ", "ppid"]):
        if process.info["ppid"] == os.getpid():
            continue
        words = process.info["cmdline"] or []
        ours = process.info["environ"] or {}
        engine = bool(words) and words[0].endswith((ENGINE, COMPAT)) and ours.get(MARK) == str(os.getpid())
        named = any(name in word for name in SERVERS for word in words[:4])
        server = named and any(str(results) in word for word in words)
        if process.info["status"] != psutil.STATUS_ZOMBIE and (engine or server):
            found.append(" ".join(words))
    return found


def refused(answer: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """It ended with that code and said these words on standard error, and no result and no traceback."""
    assert answer.returncode == code, answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    assert "internal error" not in answer.stderr
    for word in words:
        assert word in answer.stderr
