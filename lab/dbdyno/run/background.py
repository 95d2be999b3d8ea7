"""Runs the background loads of a trial: for each an engine of its own, next to that of the trial.

::

    trial        connect | ready ............ warm-up | measurement | drained |
    background                  start, connect | load ........................ | stopped

A background load begins when every connection of the trial is open, and the trial's load begins when every
background load runs. If one ends before the trial, the trial fails.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dbdyno.binary import EngineProblem
from dbdyno.problem import ExitCode, Problem, is_interrupted
from dbdyno.run.affinity import on_cpus
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.engine_process import (
    INTERRUPT_S_MAX,
    STOP_S_MAX,
    Limits,
    Reader,
    Record,
    end_process,
    start_process,
)
from dbdyno.waiting import waiting_for

# Maximum seconds until all of them run: the trial's engine waits 120 s for its own start.
START_S_MAX = 90.0

OpenFile = Callable[[str], Callable[[bytes], None]]


class BackgroundEnded(EngineProblem):
    """A background load did not start, or ended before its trial."""

    def __init__(self, title: str, reason: str, result: EngineResult | None) -> None:
        super().__init__(
            f"the background load {title} ended before its trial: {reason}", exit_code=ExitCode.NOT_COMPARABLE
        )
        # None if no engine ran.
        self.result = result


class BackgroundLoads:
    """The background loads of one trial. A context manager: at its end their engines are stopped."""

    def __init__(
        self,
        plans: Mapping[str, Mapping[str, Any]],
        environment: Mapping[str, str],
        cpus: str | None,
        engine: Engine,
        open_file: OpenFile,
    ) -> None:
        """`plans` are by title."""
        self._plans, self._environment, self._cpus = plans, environment, cpus
        self._engine, self._open_file = engine, open_file
        self._running: list[_Load] = []

    def start(self) -> None:
        """Start all of them; return when they run. Raises BackgroundEnded, EngineProblem, StoreProblem."""
        deadline = time.monotonic() + START_S_MAX
        for title, plan in self._plans.items():
            append = self._open_file(title)
            with on_cpus(self._cpus):
                self._running.append(_Load(title, plan, self._engine.binary, self._environment, append))
        for load in self._running:
            load.wait_for_start(deadline)

    def require_running(self) -> None:
        """Raise BackgroundEnded if one of them has ended."""
        for load in self._running:
            load.require_running()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for load in self._running:
            load.interrupt()
        while self._running:
            self._running.pop().close()


class _Load:
    """One engine, whose records a thread reads."""

    def __init__(
        self,
        title: str,
        plan: Mapping[str, Any],
        binary: Path,
        environment: Mapping[str, str],
        append: Callable[[bytes], None],
    ) -> None:
        self._title = title
        self._is_stopping = False
        self._problem: Problem | None = None
        # Set when the load runs, or when the engine has ended.
        self._decided, self._ended = threading.Event(), threading.Event()
        self._reader = Reader(True, self._handle_record, append, lambda: None)
        self._process = start_process(binary, "run", plan, environment)
        self._thread = threading.Thread(target=self._read, name=f"background {title}", daemon=True)
        self._thread.start()

    def _handle_record(self, record: Record) -> None:
        if record["type"] == "phase":
            self._decided.set()

    def _read(self) -> None:
        try:
            self._reader.read(self._process, Limits())
        except Problem as problem:
            self._problem = problem
            self._process.kill()
        finally:
            self._ended.set()
            self._decided.set()

    def wait_for_start(self, deadline: float) -> None:
        with waiting_for(f"the background load {self._title} to start"):
            if not self._decided.wait(max(0.0, deadline - time.monotonic())):
                raise BackgroundEnded(self._title, f"it did not start within {START_S_MAX:.0f} s", None)
        self.require_running()

    def require_running(self) -> None:
        """Raise the problem that ended the load."""
        if not self._ended.is_set() or self._is_stopping:
            return
        if self._problem is not None:
            raise self._problem
        self._process.wait()
        result = EngineResult(
            self._process.returncode, self._reader.hello, self._reader.end, self._reader.stderr
        )
        raise BackgroundEnded(self._title, result.failure() or "its planned time was over", result)

    def interrupt(self) -> None:
        """Let the engine stop."""
        self._is_stopping = True
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Wait for the last records, and end the engine if it does not stop."""
        with self._process:
            self._thread.join(INTERRUPT_S_MAX if is_interrupted() else STOP_S_MAX)
            end_process(self._process)
            self._thread.join()
