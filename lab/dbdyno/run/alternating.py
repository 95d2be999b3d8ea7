"""Runs the trials of a block whose variants alternate in slices (`design.pairing = "slices"`).

::

    for each workload and point:  before_trial of each variant
                                  pre-warm and connect one paused engine per variant
                                  rounds of the warm-up, then rounds that count:
                                      one slice of each variant, in random order
                                  finish every engine, then after_trial of each variant; store the trials

All servers run, and only one of them has load at any time. So the machine's speed, which drifts over seconds,
is the same for all variants of a round.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from dbdyno.binary import EngineProblem
from dbdyno.checks import Context
from dbdyno.experiment.model import Experiment, Point
from dbdyno.experiment.schedule import Trial, round_order
from dbdyno.experiment.slices import load_s, rounds, slice_s
from dbdyno.problem import Problem
from dbdyno.run import progress
from dbdyno.run.affinity import on_cpus
from dbdyno.run.coordinator import Coordinator
from dbdyno.run.engine import EngineEnded, SlicedRun
from dbdyno.run.failures import StartFailure, describe_failure, describe_problem, unreachable_reason
from dbdyno.run.foreign import ForeignMeter, combine
from dbdyno.run.sampling import Sampler, WorkMeter
from dbdyno.run.trial import Outcome, RecordedTrial
from dbdyno.server_record import ForeignRecord, ServerRecord
from dbdyno.servers.server import MachineProblem, Server, ServerProblem
from dbdyno.store import Run
from dbdyno.store.preparation import derived_warmup_s

# Maximum share of the time in which the work of the servers is read.
METER_SHARE = 0.01

_IDLE_LIMITS = (
    "The server answers. In slices connections are idle while other variants have load, so a limit on idle "
    "time of the server (wait_timeout, idle_session_timeout) or of a proxy may have closed this one"
)


class SlicedTrial(RecordedTrial):
    """One trial whose load runs in slices on request. At its end its engine ends too.

    It ends early if its engine ends or its hook fails; the others of its point go on.
    """

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
        self.meter = WorkMeter(self.server)
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
            self.meter.read(self.meter.in_slices)
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
        record["slices"] = {"own": self.meter.in_slices.record(), "idle": self.meter.idle.record()}
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


def complete_points(planned: Iterable[Trial], finished: Collection[int]) -> set[int]:
    """Those of the `finished` trials whose partners have finished too: the trials of a point run together."""
    members: dict[tuple[int, str, Point], list[int]] = {}
    for trial in planned:
        members.setdefault((trial.block, trial.workload, trial.point), []).append(trial.index)
    return {index for member in members.values() if set(member) <= set(finished) for index in member}


def run_in_slices(
    coordinator: Coordinator,
    trials: Sequence[Trial],
    started: Mapping[str, Context | StartFailure],
    server_of: Callable[[Trial], Server],
) -> dict[str, list[str]]:
    """Run the trials of one block whose servers all run, then the AFTER_GROUP checks. Returns the reasons of
    failed trials by variant.

    `started` are the contexts of the READY checks, by variant, or why a server did not get ready. If a server
    dies, its remaining trials are stored as failed, and those of the others run without it. Raises Stopped if
    a check stops the experiment, and StoreProblem.
    """
    reasons: dict[str, list[str]] = {name: [] for name in started}
    failures = {name: entry for name, entry in started.items() if isinstance(entry, StartFailure)}
    contexts = {name: entry for name, entry in started.items() if not isinstance(entry, StartFailure)}
    for unready in failures.values():
        if unready.failed_by == "harness":
            # The block runs again, so the others need not run now.
            for trial in trials:
                reasons[trial.variant] += coordinator.run_trials([trial], server_of(trial), unready)
            return reasons
    for load in dict.fromkeys((trial.workload, trial.point) for trial in trials):
        members = [trial for trial in trials if (trial.workload, trial.point) == load]
        for trial in members:
            coordinator.listen(progress.TrialBegan(trial))
        outcomes = _run_point(
            coordinator, [member for member in members if member.variant not in failures], contexts
        )
        for trial in members:
            name, server = trial.variant, server_of(trial)
            reason = coordinator.end_trial(trial, server, failures.get(name) or outcomes[name])
            if not reason:
                continue
            reasons[name].append(reason)
            if name not in failures:
                # A server that did not answer is not asked again, which may take minutes.
                is_frozen = outcomes[name].is_frozen
                if failure := reason if is_frozen else unreachable_reason(server):
                    failures[name] = StartFailure(failure, "server")
    for name, context in contexts.items():
        if name not in failures:
            last = [trial for trial in trials if trial.variant == name][-1]
            coordinator.check_after_group(last, context)
    return reasons


def _run_point(
    coordinator: Coordinator, trials: Sequence[Trial], contexts: Mapping[str, Context]
) -> dict[str, Outcome]:
    """Run the trials of one point together, and store them. Returns their outcomes by variant."""
    if not trials:
        return {}
    experiment, run = coordinator.experiment, coordinator.run
    derived_s = derived_warmup_s(run)
    warmup_s = experiment.load.warmup_allowance_s() if derived_s is None else derived_s
    load = trials[0].workload, trials[0].point.connections, warmup_s
    warmup, counted = rounds(experiment, *load)
    _, of_each_s = load_s(experiment, *load)
    with ExitStack() as stack:
        sliced = {
            trial.variant: stack.enter_context(
                SlicedTrial(
                    run,
                    trial,
                    contexts[trial.variant],
                    binary=coordinator.engine.binary,
                    warmup_rounds=warmup,
                    measured_s=len(trials) * of_each_s,
                )
            )
            for trial in trials
        }
        meter = combine([entry.create_meter() for entry in sliced.values()])
        # All hooks run first: one that empties a cache would undo the pre-warming of another variant.
        for sliced_trial in sliced.values():
            sliced_trial.prepare()
        _abandon(sliced)
        for sliced_trial in _running(sliced):
            sliced_trial.connect()
        # On the load generator's CPUs this process takes no time from the servers.
        with on_cpus(experiment.client.cpus):
            foreign = _run_rounds(experiment, trials[0], sliced, (warmup, counted), meter)
        for sliced_trial in _running(sliced):
            sliced_trial.end_measurement(foreign)
        for sliced_trial in sliced.values():
            sliced_trial.end_load()
        return {name: entry.finish() for name, entry in sliced.items()}


def _run_rounds(
    experiment: Experiment,
    trial: Trial,
    sliced: Mapping[str, SlicedTrial],
    numbers: tuple[int, int],
    foreign: ForeignMeter | None,
) -> ForeignRecord | None:
    """Run the rounds of a point, until all trials have failed or one has failed because of dbdyno. Returns
    the foreign load of the measurement. `trial` is any of the point, and `numbers` are those of `rounds`.
    """
    warmup, counted = numbers
    first, next_metered = None, warmup
    for number in range(warmup + counted):
        if _abandon(sliced) or not _running(sliced):
            break
        if number == warmup:
            for sliced_trial in _running(sliced):
                sliced_trial.begin_measurement()
            first = foreign.read() if foreign else None
        began, is_metered = time.monotonic(), number == next_metered
        for sliced_trial in _running(sliced) if is_metered else ():
            sliced_trial.meter.read()
        for name in round_order(experiment, trial, number):
            if name in sliced and sliced[name].is_running:
                sliced[name].run_slice(number, is_metered=is_metered)
        if is_metered:
            for sliced_trial in _running(sliced):
                sliced_trial.meter.read(sliced_trial.meter.idle)
            next_metered = number + _rounds_between(_running(sliced), time.monotonic() - began)
    _abandon(sliced)
    return foreign.foreign_load(first, foreign.read()) if foreign else None


def _rounds_between(trials: Sequence[SlicedTrial], round_s: float) -> int:
    """The distance between two metered rounds of that length, such that readings take little time."""
    cost_s = sum(trial.meter.end_round() for trial in trials)
    return max(1, math.ceil(cost_s / (METER_SHARE * round_s)))


def _running(sliced: Mapping[str, SlicedTrial]) -> list[SlicedTrial]:
    return [entry for entry in sliced.values() if entry.is_running]


def _abandon(sliced: Mapping[str, SlicedTrial]) -> bool:
    """If a trial failed because of dbdyno, fail the others too and return True, because the point runs again.

    A failure of a server is a result, for whose bounds the others need complete trials.
    """
    failed = [name for name, value in sliced.items() if value.failure.get("failed_by") == "harness"]
    reason = sliced[failed[0]].failure["reason"] if failed else ""
    for entry in sliced.values() if failed else ():
        entry.abandon(f"the trial of {failed[0]} failed, with which it alternated: {reason}")
    return bool(failed)
