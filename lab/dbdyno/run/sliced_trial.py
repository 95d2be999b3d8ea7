"""One trial whose load runs in slices: its engine, its server's counters and its folder.

`alternating` decides when the slices of several such trials run. The trial ends early if its engine ends or
its hook fails; the others of its point go on.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.binary import EngineProblem
from dbdyno.checks import Context
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import slice_s
from dbdyno.problem import Problem
from dbdyno.run.engine import EngineEnded, SlicedRun
from dbdyno.run.failures import describe_failure, describe_problem, unreachable_reason
from dbdyno.run.sampling import Sampler
from dbdyno.run.trial import Outcome, RecordedTrial
from dbdyno.server_record import ForeignRecord, ServerRecord, WorkRecord
from dbdyno.servers.server import MachineProblem, Server, ServerProblem
from dbdyno.store import Run

_IDLE_LIMITS = (
    "The server answers. In slices connections are idle while other variants have load, so a limit on idle "
    "time of the server (wait_timeout, idle_session_timeout) or of a proxy may have closed this one"
)


@dataclass
class _Work:
    """What a server did in some time."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    write_bytes: float = 0.0

    def add(self, before: _Work, after: _Work) -> None:
        self.seconds += after.seconds - before.seconds
        self.cpu_s += max(0.0, after.cpu_s - before.cpu_s)
        self.write_bytes += max(0.0, after.write_bytes - before.write_bytes)

    def record(self) -> WorkRecord:
        return {"seconds": self.seconds, "cpu_s": self.cpu_s, "write_bytes": self.write_bytes}


@dataclass
class _WorkMeter:
    """Measures the work of a server in its own slices, and between them."""

    server: Server
    own: _Work = field(default_factory=_Work)
    idle: _Work = field(default_factory=_Work)
    _cost_s: float = 0.0
    _last: _Work | None = None

    def read(self, to: _Work | None = None) -> None:
        """Read the counters, and add the work since the last reading to `to`."""
        began = time.monotonic()
        now = self._read()
        if to is not None and self._last is not None and now is not None:
            to.add(self._last, now)
        self._last = now
        self._cost_s += time.monotonic() - began

    def end_round(self) -> float:
        """Seconds that the readings of a round took."""
        cost_s, self._cost_s = self._cost_s, 0.0
        return cost_s

    def _read(self) -> _Work | None:
        spent = self.server.spent()
        if "cpu_s" not in spent:
            return None
        return _Work(time.monotonic(), spent["cpu_s"], spent.get("write_bytes", 0.0))


class SlicedTrial(RecordedTrial):
    """A trial that runs slices on request. At its end its engine ends too."""

    def __init__(
        self, run: Run, trial: Trial, context: Context, *, binary: Path, warmup_rounds: int, measured_s: float
    ) -> None:
        """`binary` is the engine's program. `measured_s`: time from the first slice that counts to the last,
        with those of the other trials.

        Raises StoreProblem.
        """
        super().__init__(run, trial, context, measured_s=measured_s)
        self._binary = binary
        self._load = self.experiment.load_for(self.experiment.variant(trial.variant))
        self.meter = _WorkMeter(self.server)
        self._warmup = warmup_rounds
        self._length_us = round(slice_s(self.experiment, trial.workload, trial.point.connections) * 1e6)
        self._engine: SlicedRun | None = None
        # Transactions and seconds that count.
        self._events, self._counted_s = 0, 0.0
        self._stack = ExitStack()
        # Whether its transactions did not end, so that no question to the server may be answered.
        self.is_frozen = False

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self._stack.close()
        finally:
            super().__exit__(kind, *rest)

    def make_sampler(self) -> Sampler:
        """Without what the machine does, which includes the work of the other servers."""
        return Sampler(self.server, self.description, 0, with_host=False)

    @property
    def is_running(self) -> bool:
        """Whether the trial can run another slice."""
        return not self.failure

    def connect(self) -> None:
        """Pre-warm, and start the engine, whose connections then wait for the first slice."""
        try:
            self.prewarm()
            self._engine = self._stack.enter_context(
                SlicedRun(
                    self.plan,
                    self.server.load_address().environment(),
                    self.experiment.client.cpus,
                    binary=self._binary,
                    on_line=self.writer.append_event,
                    transaction_s_max=self.experiment.load.duration_s,
                )
            )
            self.sampler.read_before()
        except (EngineProblem, ServerProblem) as problem:
            self.fail(problem)

    def run_slice(self, number: int, *, is_metered: bool) -> None:
        """Run the slice of a round. `is_metered`: the meter was read at the beginning of the round."""
        assert self._engine is not None, "the trial has connected"
        if is_metered:
            self.meter.read(self.meter.idle)
        try:
            record = self._engine.run_slice(number, self._length_us)
        except EngineProblem as problem:
            self.fail(problem)
            return
        if is_metered:
            self.meter.read(self.meter.own)
        if number >= self._warmup:
            self._events += int(record["events"])
            self._counted_s += (record["end_us"] - record["start_us"]) / 1e6

    def begin_measurement(self) -> None:
        """The warm-up is over: read the counters, and start the user's command."""
        self.sampler.read_begin()
        self.hooks.start()

    def end_measurement(self, foreign: ForeignRecord | None) -> None:
        """The last slice has ended."""
        self.sampler.read_end(foreign)

    def abandon(self, reason: str) -> None:
        """Count the trial as failed because of another one."""
        self.failure = self.failure or {"reason": reason, "failed_by": "harness"}

    def end_load(self) -> None:
        """End the engine and the hook during_trial, and read the counters. Raises StoreProblem."""
        try:
            if self._engine is not None and self.result is None:
                self.result = self._engine.finish()
                self.failure = self.failure or describe_failure(self.result, self.server)
            self.hooks.finish()
            if not self.is_frozen:
                self.sampler.read_after()
        except (EngineProblem, ServerProblem) as problem:
            # A full disk explains why the server ended.
            if not self.failure or isinstance(problem, MachineProblem):
                self.failure = describe_problem(problem, self.result, self.server)
        end = self.result.end if self.result else None
        is_stopped = end is not None and end["reason"] == "connection-lost" and self._load.on_lost == "stop"
        if is_stopped and self.failure and not unreachable_reason(self.server):
            self.failure["reason"] += f". {_IDLE_LIMITS}"

    def server_record(self) -> ServerRecord:
        """With the work of the server in its own slices, and between them."""
        record = super().server_record()
        record["slices"] = {"own": self.meter.own.record(), "idle": self.meter.idle.record()}
        return record

    def finish(self) -> Outcome:
        """Run the hook after_trial, and store the trial. Raises StoreProblem."""
        stored = self.store(slices={"warmup": self._warmup, "length_us": self._length_us})
        rate = self._events / self._counted_s if self._counted_s else None
        end = self.result.end if self.result else None
        return Outcome(stored, end, tuple(self.hooks.failures), rate, self.is_frozen)

    def fail(self, problem: Problem) -> None:
        """End the trial. If its engine has not ended, ask it what became of the transactions."""
        if isinstance(problem, EngineEnded):
            self.result = problem.result
        elif isinstance(problem, EngineProblem) and self._engine is not None:
            with suppress(EngineProblem):
                self.result = self._engine.finish()
        if self._engine is not None and self.result is not None and self.result.done:
            # The engine obeys, so its transactions wait for the server.
            limit_s, drain_s = self._engine.pause_s_max, self._engine.drain_s
            reason = (
                f"the server did not answer: its transactions had not ended {limit_s:.0f} s after a slice "
                f"(the sum of give_up, duration and {drain_s:g} s). If they may take longer, raise give_up "
                "in [load]"
            )
            self.failure, self.is_frozen = {"reason": reason, "failed_by": "server"}, True
        else:
            super().fail(problem)
