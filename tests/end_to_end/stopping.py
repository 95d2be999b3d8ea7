"""Stops a server with all its processes (SIGSTOP), and lets it go on."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil


def stop_all(pid: int) -> None:
    """Stop a process and its children; returns when none of their threads runs any more.

    A signal stops threads only when the kernel next lets them see it, and an idle one may answer before.

    Raises:
        AssertionError: some still run after 10 s.
    """
    stopped = _signal_all(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 10.0
    while running := [one for one in stopped if not set(_states(one)) <= {"T", "t", "Z", "X"}]:
        assert time.monotonic() < deadline, f"{running} have not stopped"
        time.sleep(0.001)


def continue_all(pid: int) -> None:
    """Let a stopped process and its children go on."""
    _signal_all(pid, signal.SIGCONT)


def _signal_all(pid: int, number: signal.Signals) -> list[int]:
    """PostgreSQL has a process for each connection."""
    reached = []
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        # One that serves a login may have ended by now.
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
            reached.append(process.pid)
    return reached


def _states(pid: int) -> list[str]:
    """The state of each thread of a process, as a letter of proc(5)."""
    states = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            states.append(stat.read_text().rpartition(")")[2].split()[0])
    return states
