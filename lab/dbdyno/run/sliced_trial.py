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
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import slice_s
from dbdyno.problem import Problem
from dbdyno.run.engine import EngineEnded, EngineResult, SlicedRun
from dbdyno.run.hooks import TrialHooks
from dbdyno.run.round_trips import measure_round_trips
from dbdyno.run.sampling import Counters, Edges
from dbdyno.run.trial import (
    HookProblem,
    Outcome,
    describe_failure,
    describe_problem,
    plan_of,
    prewarm,
    server_record,
    unreachable_reason,
)
from dbdyno.server_record import ForeignRecord, WorkRecord
from dbdyno.servers.server import Description, MachineProblem, Server, ServerProblem
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


class SlicedTrial:
    """A trial that runs slices on request. A context manager: at its end its engine ends too."""

    def __init__(
        self,
        run: Run,
        experiment: Experiment,
        trial: Trial,
        warmup_rounds: int,
        measured_s: float,
        *,
        server: Server,
        description: Description,
    ) -> None:
        """`measured_s`: time from the first slice that counts to the last, with those of the other trials.

        Raises StoreProblem.
        """
        self.trial = trial
        self._experiment, self._server, self._description = experiment, server, description
        self._load = experiment.load_for(experiment.variant(trial.variant))
        self._plan = plan_of(run, experiment, trial, server.load_address())
        self._writer = run.begin(trial, self._plan)
        self._hooks = TrialHooks(experiment, trial, server, description, self._writer, measured_s=measured_s)
        self._before, self._after = Counters(), Counters()
        self._edges = Edges(server, description, 0, with_host=False)
        self.meter = _WorkMeter(server)
        self._warmup = warmup_rounds
        self._length_us = round(slice_s(experiment, trial.workload, trial.point.connections) * 1e6)
        self._started_unix_us = time.time_ns() // 1000
        self._engine: SlicedRun | None = None
        self._result: EngineResult | None = None
        # Why the trial failed, in the format of trial.json; {} while it has not.
        self.failure: dict[str, str] = {}
        # Transactions and seconds that count.
        self._events, self._counted_s = 0, 0.0
        self._stack = ExitStack()
        # Whether the hook before_trial has begun, and after_trial has not.
        self._is_between_hooks = False
        # Whether its transactions did not end, so that no question to the server may be answered.
        self.is_frozen = False

    def __enter__(self) -> SlicedTrial:
        self._stack.enter_context(self._writer)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._stack.close()
        if kind is not None and self._is_between_hooks:
            self._hooks.abort()

    @property
    def is_running(self) -> bool:
        """Whether the trial can run another slice."""
        return not self.failure

    def prepare(self) -> None:
        """Run the hook before_trial."""
        self._is_between_hooks = True
        if reason := self._hooks.before():
            self._fail(HookProblem(reason))

    def connect(self, binary: Path) -> None:
        """Pre-warm, and start the engine, whose connections then wait for the first slice."""
        try:
            prewarm(self._experiment, self.trial, self._server)
            self._engine = self._stack.enter_context(
                SlicedRun(
                    self._plan,
                    self._server.load_address().environment(),
                    self._experiment.client.cpus,
                    binary=binary,
                    on_line=self._writer.append_event,
                    transaction_s_max=self._experiment.load.duration_s,
                )
            )
            self._edges.read_before(self._before)
        except (EngineProblem, ServerProblem) as problem:
            self._fail(problem)

    def run_slice(self, number: int, *, is_metered: bool) -> None:
        """Run the slice of a round. `is_metered`: the meter was read at the beginning of the round."""
        assert self._engine is not None, "the trial has connected"
        if is_metered:
            self.meter.read(self.meter.idle)
        try:
            record = self._engine.run_slice(number, self._length_us)
        except EngineProblem as problem:
            self._fail(problem)
            return
        if is_metered:
            self.meter.read(self.meter.own)
        if number >= self._warmup:
            self._events += int(record["events"])
            self._counted_s += (record["end_us"] - record["start_us"]) / 1e6

    def begin_measurement(self) -> None:
        """The warm-up is over: read the counters, and start the user's command."""
        self._edges.read_begin()
        self._hooks.start()

    def end_measurement(self, foreign: ForeignRecord | None) -> None:
        """The last slice has ended."""
        self._edges.read_end(foreign)

    def abandon(self, reason: str) -> None:
        """Count the trial as failed because of another one."""
        self.failure = self.failure or {"reason": reason, "failed_by": "harness"}

    def end_load(self) -> None:
        """End the engine and the hook during_trial, and read the counters. Raises StoreProblem."""
        try:
            if self._engine is not None and self._result is None:
                self._result = self._engine.finish()
                self.failure = self.failure or describe_failure(self._result, self._server)
            self._hooks.finish()
            if not self.is_frozen:
                self._after.read(self._server)
                self._after.round_trips = measure_round_trips(self._server)
        except (EngineProblem, ServerProblem) as problem:
            # A full disk explains why the server ended.
            if not self.failure or isinstance(problem, MachineProblem):
                self.failure = describe_problem(problem, self._result, self._server)
        end = self._result.end if self._result else None
        is_stopped = end is not None and end["reason"] == "connection-lost" and self._load.on_lost == "stop"
        if is_stopped and self.failure and not unreachable_reason(self._server):
            self.failure["reason"] += f". {_IDLE_LIMITS}"

    def finish(self) -> Outcome:
        """Run the hook after_trial, and store the trial. Raises StoreProblem."""
        self._is_between_hooks = False
        self._hooks.after()
        record = server_record(self._description, self._before, self._after, self._edges)
        record["slices"] = {"own": self.meter.own.record(), "idle": self.meter.idle.record()}
        self._writer.write_server(record)
        stored = self._writer.finish(
            "failed" if self.failure else "done",
            **self.failure,
            exit_code=self._result.exit_code if self._result else None,
            started_unix_us=self._started_unix_us,
            ended_unix_us=time.time_ns() // 1000,
            slices={"warmup": self._warmup, "length_us": self._length_us},
        )
        rate = self._events / self._counted_s if self._counted_s else None
        end = self._result.end if self._result else None
        return Outcome(stored, end, tuple(self._hooks.failures), rate, self.is_frozen)

    def _fail(self, problem: Problem) -> None:
        if isinstance(problem, EngineEnded):
            self._result = problem.result
        elif isinstance(problem, EngineProblem) and self._engine is not None:
            with suppress(EngineProblem):
                self._result = self._engine.finish()
        if self._engine is not None and self._result is not None and self._result.done:
            # The engine obeys, so its transactions wait for the server.
            limit_s, drain_s = self._engine.pause_s_max, self._engine.drain_s
            reason = (
                f"the server did not answer: its transactions had not ended {limit_s:.0f} s after a slice "
                f"(the sum of give_up, duration and {drain_s:g} s). If they may take longer, raise give_up "
                "in [load]"
            )
            self.failure, self.is_frozen = {"reason": reason, "failed_by": "server"}, True
        else:
            self.failure = describe_problem(problem, self._result, self._server)
