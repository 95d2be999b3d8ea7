"""The process of an engine: starts it, sends it lines, reads its two output streams, and stops it."""

from __future__ import annotations

import json
import logging
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from dbdyno.binary import EngineProblem
from dbdyno.problem import ExitCode, Problem
from dbdyno.result_text import counted
from dbdyno.servers.admin.connection import LOGIN_EVERY_S
from dbdyno.store.records import LINE_BYTES_MAX, parse
from dbdyno.waiting import AGAIN_S, FIRST_S, report_wait, waiting_for

Command = Literal["prepare", "prewarm", "run", "cleanup"]
Record = Mapping[str, Any]

READ_BYTES = 1 << 16
# Characters of standard error that are kept.
STDERR_MAX = 20_000
# Maximum seconds for an engine to stop.
STOP_S_MAX = 5.0
# The same for an interrupted one, until its input ends and it cancels its statements. The sum with
# INPUT_END_S_MAX is less than the 5 s in which measuring ends after max_time.
INTERRUPT_S_MAX = 1.5
# An engine that writes nothing, and is stopped at two looks this time apart, is ended.
STOPPED_S = 1.0
# Maximum seconds for an engine to end after the end of its standard input.
INPUT_END_S_MAX = 3.0
_LOG = logging.getLogger(__name__)


def watched(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with which an engine ends when dbdyno does: every engine that dbdyno starts gets this one."""
    return {**plan, "watch_input": True}


def start_process(
    binary: Path, command: Command, plan: Mapping[str, Any], environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """Start an engine in its own process group, so that Ctrl-C reaches only dbdyno, and send it its plan.
    Raises EngineProblem.
    """
    try:
        process = subprocess.Popen(
            [binary, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            process_group=0,
        )
    except OSError as error:
        raise EngineProblem(
            f"the load engine {binary} does not start: {error}", "Run make build again"
        ) from error
    _LOG.debug("started process %d: %s %s", process.pid, binary, command)
    Reader.send(process, watched(plan))
    return process


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End an engine, if it still runs. At the end of its standard input it cancels its statements."""
    if process.poll() is None:
        _end_input(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(INPUT_END_S_MAX)
    process.kill()


def _end_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


@dataclass(frozen=True)
class Limits:
    """Time limits of an engine in seconds: in total, and between two records. At least one is finite."""

    total_s: float = math.inf
    silence_s: float = math.inf


_Ready = tuple[selectors.SelectorKey, int]


class _Stall:
    """Reports that no transaction ends although some have begun."""

    def __init__(self) -> None:
        self._since_us: int | None = None
        self._report_us = 0.0

    def add(self, interval: Record) -> None:
        """Take the next interval of a run."""
        if interval["events"] or not interval.get("in_flight"):
            self._since_us = None
            return
        end_us = int(interval["end_us"])
        if self._since_us is None:
            self._since_us = int(interval["start_us"])
            self._report_us = self._since_us + FIRST_S * 1e6
        if end_us >= self._report_us:
            self._report_us = end_us + AGAIN_S * 1e6
            what = f"the server's answers to {counted(interval['in_flight'], 'transaction')} in progress"
            report_wait(what, (end_us - self._since_us) / 1e6)


class Reader:
    """Reads the two output streams of one engine, and keeps its first and last record."""

    def __init__(
        self,
        waits_for_start: bool,
        on_record: Callable[[Record], None],
        on_line: Callable[[bytes], None],
        on_ready: Callable[[], None],
        on_silence: Callable[[], None] = lambda: None,
    ) -> None:
        self._waits_for_start = waits_for_start
        self._on_record, self._on_line, self._on_ready = on_record, on_line, on_ready
        self._on_silence = on_silence
        self._rest = b""
        self._stall = _Stall()
        self.hello: Record | None = None
        self.end: Record | None = None
        self.stderr = ""

    def read(
        self,
        process: subprocess.Popen[bytes],
        limits: Limits,
        until: Callable[[], bool] = lambda: False,
        *,
        goal: str = "end",
    ) -> None:
        """Read both streams until they end or `until` is true after a record.

        Raises EngineProblem if that exceeds a limit; `goal` says what the engine was to do within the total.
        """
        assert process.stdout is not None, "standard output is a pipe"
        assert process.stderr is not None, "standard error is a pipe"
        deadline = time.monotonic() + limits.total_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            selector.register(process.stderr, selectors.EVENT_READ)
            while selector.get_map():
                remaining_s = deadline - time.monotonic()
                what = f"the load generator to {goal if self.hello else 'start'}"
                # Its records end a wait every second.
                with waiting_for(what, is_logged=self.hello is None):
                    ready = self._select(selector, min(remaining_s, limits.silence_s), process)
                if not ready:
                    exceeded = f"did not {goal} within {limits.total_s:.0f} s"
                    if limits.silence_s <= remaining_s:
                        exceeded = f"wrote nothing within {limits.silence_s:.0f} s"
                    raise EngineProblem(
                        f"the engine {exceeded}",
                        "dbdyno ended the engine. Its standard error: " + (self.stderr.strip() or "empty"),
                        ExitCode.NOT_COMPARABLE,
                    )
                for key, _ in ready:
                    content = os.read(key.fd, READ_BYTES)
                    if not content:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stderr:
                        self.stderr = (self.stderr + content.decode(errors="replace"))[-STDERR_MAX:]
                    else:
                        self._split_lines(process, content)
                        if until():
                            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S_MAX)

    def _select(
        self, selector: selectors.BaseSelector, wait_s: float, process: subprocess.Popen[bytes]
    ) -> list[_Ready]:
        """What can be read within `wait_s`. Calls `on_silence` again and again until then.

        Raises EngineProblem if the process is stopped.
        """
        began = time.monotonic()
        silence_at, was_stopped = began + LOGIN_EVERY_S, False
        while True:
            remaining_s = max(began + wait_s - time.monotonic(), 0.0)
            ready = selector.select(min(remaining_s, STOPPED_S))
            if ready or remaining_s <= STOPPED_S:
                return ready
            is_stopped = _is_stopped(process)
            if is_stopped and was_stopped:
                raise EngineProblem(
                    "the engine's process was stopped (SIGSTOP)",
                    "dbdyno ended it. Run the command again",
                    ExitCode.NOT_COMPARABLE,
                )
            was_stopped = is_stopped
            if time.monotonic() >= silence_at:
                silence_at = time.monotonic() + LOGIN_EVERY_S
                self._on_silence()

    def _split_lines(self, process: subprocess.Popen[bytes], content: bytes) -> None:
        *lines, self._rest = (self._rest + content).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise EngineProblem(
                f"the engine wrote a line of more than {LINE_BYTES_MAX} bytes",
                exit_code=ExitCode.NOT_COMPARABLE,
            )
        for line in lines:
            self._on_line(line + b"\n")
            self._handle_line(process, line)

    def _handle_line(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        try:
            record = parse(line)
        except ValueError as error:
            raise EngineProblem(
                f"the engine wrote a line that is not a record: {line[:200]!r}",
                exit_code=ExitCode.NOT_COMPARABLE,
            ) from error
        kind, data = record["type"], record["data"]
        if kind == "interval":
            self._stall.add(data)
        elif kind == "hello":
            self.hello = data
        elif kind == "end":
            self.end = data
        elif kind == "ready":
            self._on_silence = lambda: None
        self._on_record(record)
        if kind == "ready" and self._waits_for_start:
            self._on_ready()
            self.start(process)

    def start(self, process: subprocess.Popen[bytes]) -> None:
        """Start the load now."""
        self.send(process, {"type": "start", "data": {"at_unix_us": time.time_ns() // 1000}})

    @staticmethod
    def send(process: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
        """Send one line to the engine. If the engine has ended, its output has the reason."""
        assert process.stdin is not None, "standard input is a pipe"
        if process.stdin.closed:
            return
        try:
            process.stdin.write(json.dumps(message, allow_nan=False).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            # Popen closes the pipe, which would write the buffered bytes again and fail.
            with suppress(BrokenPipeError):
                process.stdin.close()


def _is_stopped(process: subprocess.Popen[bytes]) -> bool:
    """Whether a signal or a debugger has stopped a process."""
    try:
        return psutil.Process(process.pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.Error:
        return False


def stop_process(process: subprocess.Popen[bytes], reader: Reader) -> None:
    """Tell the engine to stop and read its last records. Another Ctrl-C ends the wait."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with suppress(Problem, KeyboardInterrupt):
        reader.read(process, Limits(INTERRUPT_S_MAX))
    if process.poll() is None:
        _end_input(process)
        with suppress(Problem, KeyboardInterrupt):
            reader.read(process, Limits(INPUT_END_S_MAX))
        process.kill()
