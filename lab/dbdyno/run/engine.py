"""Runs the engine as a process: sends it a plan, reads its records, and always ends it.

::

    plan, then start --> stdin   dbdyno-engine run   stdout --> records, one JSON object a line
                                                     stderr --> text, kept for the error message

`SlicedRun` also sends the commands of a load in slices.

The engine runs in its own process group, so Ctrl-C reaches only dbdyno, which then stops the engine
and reads its last records. The engine also stops if its standard input is closed, for example because dbdyno
was killed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from dbdyno.binary import COMPAT, ENGINE, EngineProblem, find_program
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.affinity import on_cpus
from dbdyno.servers.admin.silence import LOGIN_EVERY_S
from dbdyno.waiting import AGAIN_S, FIRST_S, report_wait, waiting_for

Command = Literal["prepare", "prewarm", "run", "cleanup"]
Record = Mapping[str, Any]

READ_BYTES = 1 << 16
# Characters of standard error that are kept.
STDERR_MAX = 20_000
# Maximum bytes of a record; an interval with a million distinct latencies has about 20 MB.
LINE_BYTES_MAX = 64 << 20
# Maximum seconds to connect: opening and preparing thousands of connections may take minutes.
CONNECT_S_MAX = 300.0
# Maximum seconds without a record during loading: the engine writes none while the server builds an index.
LOADING_SILENCE_S_MAX = 3600.0
# Maximum seconds without a record while a script loads: it may load everything before its first record.
SCRIPT_SILENCE_S_MAX = 24 * 3600.0
# Maximum seconds for an engine to stop.
STOP_S_MAX = 5.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class EngineResult:
    """The exit code, records and error text of an engine run."""

    # 0 done, 2 invalid plan, 3 server not reachable, 4 aborted, 130 interrupted; negative: a signal.
    exit_code: int
    # The data of the first and the last record; None if the engine did not write them.
    hello: Record | None
    end: Record | None
    # The engine's standard error.
    stderr: str

    @property
    def done(self) -> bool:
        """Whether it completed without error."""
        return self.exit_code == 0 and self.end is not None

    def failure(self) -> str:
        """Why the run did not complete; empty if it did."""
        if self.done:
            return ""
        failure = self.end.get("failure") if self.end else None
        if failure:
            return f"{failure['text']}. {failure['hint']}" if failure.get("hint") else str(failure["text"])
        if self.stderr.strip():
            return self.stderr.strip()
        if self.exit_code < 0:
            return f"the engine was ended by {signal.Signals(-self.exit_code).name}"
        if self.end is None:
            return f"the engine ended with exit code {self.exit_code} and without its last record"
        return f"the engine ended early: {self.end.get('reason')}"


class LimitProblem(Problem):
    """The load exceeded a limit of `load.abort_if`, which ends the run."""


def require_within_limits(end: Record | None) -> None:
    """Raise LimitProblem if the engine's last record says that the load exceeded a limit."""
    if end is not None and end.get("reason") == "limit-exceeded":
        failure = end["failure"]
        raise LimitProblem(f"the load was ended: {failure['text']}", failure["hint"], ExitCode.NOT_COMPARABLE)


class EngineEnded(EngineProblem):
    """The engine ended before it had written an expected record."""

    def __init__(self, text: str, result: EngineResult) -> None:
        super().__init__(text, exit_code=ExitCode.NOT_COMPARABLE)
        self.result = result


def find_engine() -> Path:
    """The path of the engine. Raises EngineProblem."""
    return Path(find_program(ENGINE))


def find_binary(plan: Mapping[str, Any], engine: Path | None = None) -> Path:
    """The program that runs a plan: COMPAT for scripts, otherwise `engine` or, if that is None,
    `find_engine()`.

    Raises EngineProblem.
    """
    return Path(find_program(COMPAT)) if _is_script(plan) else engine or find_engine()


class Engine:
    """Runs `dbdyno-engine`."""

    def __init__(self, binary: Path | None = None) -> None:
        """`binary` is the path of the engine; None: `find_engine()`. Raises EngineProblem."""
        self.binary = binary or find_engine()
        # The engine needs a socket per connection and inherits this limit, whose default is often 1024.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def version(self) -> str:
        """The output of `dbdyno-engine --version`. Raises EngineProblem if the binary cannot be started."""
        try:
            answer = subprocess.run(
                [self.binary, "--version"], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineProblem(
                f"the load engine {self.binary} does not start: {error}", "Run make build again"
            ) from error
        return answer.stdout.strip().removeprefix(ENGINE).strip()

    def run(
        self,
        command: Command,
        plan: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        on_record: Callable[[Record], None] = lambda _record: None,
        cpus: str | None = None,
        *,
        on_line: Callable[[bytes], None] = lambda _line: None,
        on_ready: Callable[[], None] = lambda: None,
        on_silence: Callable[[], None] = lambda: None,
    ) -> EngineResult:
        """Run one command with a plan until it ends; COMPAT runs scripts.

        `on_record` receives each record, and `on_line` its raw line. If the plan starts on command,
        `on_ready` is called when every connection is open; the load starts when it returns. `on_silence` is
        called whenever the engine has written nothing for `LOGIN_EVERY_S`, until every connection is open:
        from then on the plan's `answer_timeout_us` applies. The engine is killed if it raises.
        `environment` is added to the environment of this process. It contains the password, which plans and
        arguments never contain. Raises EngineProblem for a line that is not a record; KeyboardInterrupt is
        passed on after the engine has stopped.
        """
        binary = find_binary(plan, self.binary)
        limits = _time_limits(command, plan)
        reader = _Reader("start" in plan, on_record, on_line, on_ready, on_silence)
        with on_cpus(cpus), _start(binary, command, environment) as process:
            try:
                reader.send(process, plan)
                reader.read(process, limits)
            except KeyboardInterrupt:
                _stop(process, reader)
                raise
            finally:
                # This has no effect if the process has ended.
                process.kill()
        _LOG.debug("process %d ended with status %d", process.pid, process.returncode)
        return EngineResult(process.returncode, reader.hello, reader.end, reader.stderr)


class SlicedRun:
    """A run of a plan whose load runs only in slices (the shape `closed_slices`).

    The constructor returns when every connection is open. A context manager: at its end, so is the engine.
    """

    def __init__(
        self,
        plan: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        cpus: str | None = None,
        *,
        binary: Path | None = None,
        on_line: Callable[[bytes], None] = lambda _line: None,
        transaction_s_max: float = 0.0,
    ) -> None:
        """See `Engine.run`. A transaction may take `transaction_s_max`, in addition to the time that the
        engine waits for a transaction in flight at the end of a run. Raises EngineProblem if the connections
        cannot be opened.
        """
        self._reader = _Reader(True, self._keep, on_line, lambda: None)
        # Seconds that the engine waits for transactions in flight at the end.
        self.drain_s = _drain_s(plan)
        # Maximum seconds from the end of a slice to the end of its last transaction. A lost connection may
        # take the reconnect timeout, after which its transaction begins again.
        self.pause_s_max = _give_up_s(plan) + transaction_s_max + self.drain_s
        # The data of the newest record of each type that `_read_until` has not returned.
        self._found: dict[str, Record] = {}
        with on_cpus(cpus):
            self._process = _start(find_binary(plan, binary), "run", environment)
        try:
            self._reader.send(self._process, plan)
            # Wall time of the start of the run, from which the records count, in microseconds since 1970.
            self.start_unix_us = int(self._read_until("phase", _connect_limits(plan))["at_unix_us"])
        except BaseException:
            self.close()
            raise

    def run_slice(self, number: int, length_us: int) -> Record:
        """Resume the load for `length_us`; return the data of the record `slice` once it has paused again.

        Raises EngineEnded if the engine ends, and EngineProblem if it does not pause.
        """
        self._reader.send(self._process, {"type": "resume", "data": {"slice": number, "for_us": length_us}})
        return self._read_until("slice", _Limits(length_us / 1e6 + self.pause_s_max))

    def finish(self) -> EngineResult:
        """End the run and read its last records. Raises EngineProblem if the engine does not end."""
        self._reader.send(self._process, {"type": "finish", "data": {}})
        self._reader.read(self._process, _Limits(self.drain_s + STOP_S_MAX))
        return self._result()

    def close(self) -> None:
        """Stop the engine, if it still runs, and read its last records."""
        with self._process:
            if self._process.poll() is None:
                _stop(self._process, self._reader)
            self._process.kill()
        _LOG.debug("process %d ended with status %d", self._process.pid, self._process.returncode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, record: Record) -> None:
        self._found[record["type"]] = record["data"]

    def _read_until(self, kind: str, limits: _Limits) -> Record:
        self._reader.read(self._process, limits, lambda: kind in self._found, goal=f"write its record {kind}")
        if kind not in self._found:
            result = self._result()
            raise EngineEnded(result.failure() or f"the engine ended before its record {kind}", result)
        return self._found.pop(kind)

    def _result(self) -> EngineResult:
        try:
            code = self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired as error:
            raise EngineProblem(
                f"the engine closed its output, but did not end within {STOP_S_MAX:.0f} s",
                exit_code=ExitCode.NOT_COMPARABLE,
            ) from error
        return EngineResult(code, self._reader.hello, self._reader.end, self._reader.stderr)


def _start(binary: Path, command: Command, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
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
    return process


@dataclass(frozen=True)
class _Limits:
    """Time limits of an engine in seconds: in total, and between two records. At least one is finite."""

    total_s: float = math.inf
    silence_s: float = math.inf


def _is_script(plan: Mapping[str, Any]) -> bool:
    return bool(plan["workload"]["name"] == "lua")


def _time_limits(command: Command, plan: Mapping[str, Any]) -> _Limits:
    if command != "run":
        return _Limits(silence_s=_loading_silence_s(plan))
    phases = plan["phases"]
    planned_s = (phases.get("warmup_us", 0) + phases["measure_us"]) / 1e6 + _drain_s(plan)
    connect = _connect_limits(plan)
    return _Limits(planned_s + connect.total_s + 60.0, planned_s + connect.silence_s)


def _drain_s(plan: Mapping[str, Any]) -> float:
    """How long the engine waits for transactions in flight at the end."""
    return float(plan["phases"].get("drain_us", 10_000_000)) / 1e6


def _give_up_s(plan: Mapping[str, Any]) -> float:
    """The reconnect timeout."""
    return float(plan.get("reconnect", {}).get("give_up_us", 30_000_000)) / 1e6


def _connect_limits(plan: Mapping[str, Any]) -> _Limits:
    """The limits from the start of the engine to the start of the load."""
    if plan.get("prewarm", "none") == "none":
        return _Limits(CONNECT_S_MAX, CONNECT_S_MAX)
    # Pre-warming large tables takes an unknown time, and writes one record per table.
    return _Limits(silence_s=CONNECT_S_MAX + _loading_silence_s(plan))


def _loading_silence_s(plan: Mapping[str, Any]) -> float:
    return SCRIPT_SILENCE_S_MAX if _is_script(plan) else LOADING_SILENCE_S_MAX


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
            what = f"the server's answers to {interval['in_flight']} transactions in progress"
            report_wait(what, (end_us - self._since_us) / 1e6)


class _Reader:
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
        limits: _Limits,
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
                    ready = self._select(selector, min(remaining_s, limits.silence_s))
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

    def _select(self, selector: selectors.BaseSelector, wait_s: float) -> list[_Ready]:
        """What can be read within `wait_s`. Calls `on_silence` again and again until then."""
        deadline = time.monotonic() + wait_s
        while True:
            remaining_s = max(deadline - time.monotonic(), 0.0)
            ready = selector.select(min(remaining_s, LOGIN_EVERY_S))
            if ready or remaining_s <= LOGIN_EVERY_S:
                return ready
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
            record = json.loads(line)
            kind, data = record["type"], record["data"]
        except (ValueError, KeyError, TypeError) as error:
            raise EngineProblem(
                f"the engine wrote a line that is not a record: {line[:200]!r}",
                exit_code=ExitCode.NOT_COMPARABLE,
            ) from error
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


def _stop(process: subprocess.Popen[bytes], reader: _Reader) -> None:
    """Tell the engine to stop and read its last records. Another Ctrl-C ends the wait."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with suppress(Problem, KeyboardInterrupt):
        reader.read(process, _Limits(STOP_S_MAX))
