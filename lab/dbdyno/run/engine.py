"""Runs the engine as a process: sends it a plan, reads its records, and always ends it.

::

    plan, then start --> stdin   dbdyno-engine run   stdout --> records, one JSON object a line
                                                     stderr --> text, kept for the error message

`SlicedRun` also sends the commands of a load in slices.

The engine runs in its own process group, so Ctrl-C reaches only dbdyno, which then stops the engine
and reads its last records. The engine also stops, and cancels its statements on the server, if its standard
input is closed, for example because dbdyno was killed.
"""

from __future__ import annotations

import logging
import resource
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict

from dbdyno.binary import COMPAT, ENGINE, EngineProblem, find_program
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.affinity import on_cpus
from dbdyno.run.engine_process import (
    STOP_S_MAX,
    Command,
    Limits,
    Reader,
    Record,
    end_process,
    start_process,
    stop_process,
)

__all__ = [
    "Command",
    "Engine",
    "EngineEnded",
    "EngineFacts",
    "EngineResult",
    "LimitProblem",
    "Listeners",
    "OpenLines",
    "Record",
    "Request",
    "SlicedRun",
    "drain_s",
    "find_binary",
    "find_engine",
    "require_within_limits",
    "time_limits",
]

# Maximum seconds to connect: opening and preparing thousands of connections may take minutes.
CONNECT_S_MAX = 300.0
# Maximum seconds without a record during loading: the engine writes none while the server builds an index.
LOADING_SILENCE_S_MAX = 3600.0
# Maximum seconds without a record while a script loads: it may load everything before its first record.
SCRIPT_SILENCE_S_MAX = 24 * 3600.0
_LOG = logging.getLogger(__name__)

# The number of an engine -> what keeps a line of its records.
OpenLines = Callable[[int], Callable[[bytes], None]]


class EngineFacts(TypedDict):
    """One engine of a fleet in one run."""

    # Name of the engine, and address of its host.
    name: str
    host: str
    # By how much the host's clock was ahead of this machine's, and the round trip that bounds the error.
    clock_offset_us: int
    round_trip_us: int
    # How much later than the common start its load began.
    start_skew_us: int
    # Transactions of the measurement, and their mean latency; None without transactions.
    events: int
    latency_mean_us: float | None
    # CPU time of its threads per wall time, of the engine, and of the processes that carry the fleet.
    generator_cpu: float | None
    cpu_s: float
    daemons_cpu_s: float


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
    # What is known about each engine of a fleet; empty if one engine has run.
    fleet: Sequence[EngineFacts] = ()
    # Whether the engines of a fleet have run, also without a result.
    is_of_fleet: bool = False

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


@dataclass(frozen=True)
class Request:
    """What an engine is to run: see `Engine.run`."""

    command: Command
    plan: Mapping[str, Any]
    environment: Mapping[str, str]
    cpus: str | None
    open_lines: OpenLines


@dataclass(frozen=True)
class Listeners:
    """The functions that an engine calls: see `Engine.run`."""

    on_record: Callable[[Record], None]
    on_line: Callable[[bytes], None]
    on_ready: Callable[[], None]
    on_silence: Callable[[], None]


class Engine:
    """Runs `dbdyno-engine`."""

    def __init__(self, binary: Path | None = None) -> None:
        """`binary` is the path of the engine; None: `find_engine()`. Raises EngineProblem."""
        self.binary = binary or find_engine()
        # The engine needs a socket per connection and inherits this limit, whose default is often 1024.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def close(self) -> None:
        """End what the engine has started. A single engine ends with each run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        open_lines: OpenLines = lambda _index: lambda _line: None,
    ) -> EngineResult:
        """Run one command with a plan until it ends; COMPAT runs scripts.

        `on_record` receives each record, and `on_line` its raw line. If the plan starts on command,
        `on_ready` is called when every connection is open; the load starts when it returns. `on_silence` is
        called whenever the engine has written nothing for `LOGIN_EVERY_S`, until every connection is open:
        from then on the plan's `answer_timeout_us` applies. A fleet keeps the lines of each engine by
        `open_lines`. The engine is killed if it raises.
        `environment` is added to the environment of this process. It contains the password, which plans and
        arguments never contain. Raises EngineProblem for a line that is not a record; KeyboardInterrupt is
        passed on after the engine has stopped.
        """
        request = Request(command, plan, environment or {}, cpus, open_lines)
        return self.execute(request, Listeners(on_record, on_line, on_ready, on_silence))

    def execute(self, request: Request, listeners: Listeners) -> EngineResult:
        """What `run` does, for a subclass to change."""
        command, plan = request.command, request.plan
        binary, limits = find_binary(plan, self.binary), time_limits(command, plan)
        reader = Reader("start" in plan, **vars(listeners))
        with on_cpus(request.cpus), start_process(binary, command, plan, request.environment) as process:
            try:
                reader.read(process, limits)
            except KeyboardInterrupt:
                stop_process(process, reader)
                raise
            finally:
                end_process(process)
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
        self._reader = Reader(True, self._keep, on_line, lambda: None)
        # Seconds that the engine waits for transactions in flight at the end.
        self.drain_s = drain_s(plan)
        # Maximum seconds from the end of a slice to the end of its last transaction. A lost connection may
        # take the reconnect timeout, after which its transaction begins again.
        self.pause_s_max = _give_up_s(plan) + transaction_s_max + self.drain_s
        # The data of the newest record of each type that `_read_until` has not returned.
        self._found: dict[str, Record] = {}
        with on_cpus(cpus):
            self._process = start_process(find_binary(plan, binary), "run", plan, environment)
        try:
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
        return self._read_until("slice", Limits(length_us / 1e6 + self.pause_s_max))

    def finish(self) -> EngineResult:
        """End the run and read its last records. Raises EngineProblem if the engine does not end."""
        self._reader.send(self._process, {"type": "finish", "data": {}})
        self._reader.read(self._process, Limits(self.drain_s + STOP_S_MAX))
        return self._result()

    def close(self) -> None:
        """Stop the engine, if it still runs, and read its last records."""
        with self._process:
            if self._process.poll() is None:
                stop_process(self._process, self._reader)
            end_process(self._process)
        _LOG.debug("process %d ended with status %d", self._process.pid, self._process.returncode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, record: Record) -> None:
        self._found[record["type"]] = record["data"]

    def _read_until(self, kind: str, limits: Limits) -> Record:
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


def _is_script(plan: Mapping[str, Any]) -> bool:
    return bool(plan["workload"]["name"] == "lua")


def time_limits(command: Command, plan: Mapping[str, Any]) -> Limits:
    """The limits of a run of the engine."""
    if command != "run":
        return Limits(silence_s=_loading_silence_s(plan))
    phases = plan["phases"]
    planned_s = (phases.get("warmup_us", 0) + phases["measure_us"]) / 1e6 + drain_s(plan)
    connect = _connect_limits(plan)
    return Limits(planned_s + connect.total_s + 60.0, planned_s + connect.silence_s)


def drain_s(plan: Mapping[str, Any]) -> float:
    """How many seconds the engine waits for transactions in flight at the end."""
    return float(plan["phases"].get("drain_us", 10_000_000)) / 1e6


def _give_up_s(plan: Mapping[str, Any]) -> float:
    """The reconnect timeout."""
    return float(plan.get("reconnect", {}).get("give_up_us", 30_000_000)) / 1e6


def _connect_limits(plan: Mapping[str, Any]) -> Limits:
    """The limits from the start of the engine to the start of the load."""
    if plan.get("prewarm", "none") == "none":
        return Limits(CONNECT_S_MAX, CONNECT_S_MAX)
    # Pre-warming large tables takes an unknown time, and writes one record per table.
    return Limits(silence_s=CONNECT_S_MAX + _loading_silence_s(plan))


def _loading_silence_s(plan: Mapping[str, Any]) -> float:
    return SCRIPT_SILENCE_S_MAX if _is_script(plan) else LOADING_SILENCE_S_MAX
