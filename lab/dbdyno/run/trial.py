"""Runs one trial, and writes its plan, records and server counters into the trial's folder."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dbdyno.checks import Context
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import slice_s
from dbdyno.problem import Problem
from dbdyno.run.engine import Engine, Record
from dbdyno.run.failures import describe_failure, describe_idle, describe_problem
from dbdyno.run.foreign import ForeignMeter, create_meter
from dbdyno.run.plan import slice_plan, trial_plan
from dbdyno.run.sampling import Sampler
from dbdyno.run.session import TrialSession
from dbdyno.server_record import ServerRecord
from dbdyno.servers.server import Address, Server, ServerProblem
from dbdyno.store import Run, StoredTrial
from dbdyno.store.preparation import chosen_workers, derived_warmup_s
from dbdyno.store.trial import FailedBy, TrialWriter


@dataclass(frozen=True)
class Outcome:
    """A stored trial, its last record, and its failed hooks."""

    stored: StoredTrial
    # The engine's last record; None if the engine wrote none.
    end: Record | None
    # The reasons of failed hooks.
    hook_failures: tuple[str, ...] = ()
    # Events per second of the counted time, if the load ran in slices.
    rate: float | None = None
    # Whether the server did not answer, so that it need not be asked again.
    is_frozen: bool = False

    @property
    def reason(self) -> str:
        """Why the trial failed; empty if it did not."""
        return str(self.stored.meta.get("reason", ""))

    def events_per_s(self) -> float | None:
        """Events per second of the measured phase, for display; the package `judge` computes the result."""
        if self.rate is not None:
            return self.rate
        measured = self.end["phases"].get("measure") if self.end else None
        if not measured or measured["end_us"] <= measured["start_us"]:
            return None
        return float(measured["events"]) * 1e6 / float(measured["end_us"] - measured["start_us"])


class RecordedTrial(TrialSession):
    """A trial of the schedule: the counters of its server are read, and it is stored even if it fails."""

    def __init__(self, run: Run, trial: Trial, context: Context, *, measured_s: float) -> None:
        """See `TrialSession`. Raises StoreProblem."""
        assert context.server is not None, "the server runs"
        self.plan = plan_of(run, context.experiment, trial, context.server.load_address())
        self._started_unix_us = time.time_ns() // 1000
        self.writer: TrialWriter = run.begin(trial, self.plan)
        super().__init__(context, trial, self.writer, measured_s=measured_s)
        self.sampler = self.make_sampler()
        # Why the trial failed, in the format of trial.json; {} while it has not.
        self.failure: dict[str, str] = {}

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self.sampler.close()
        finally:
            try:
                super().__exit__(kind, *rest)
            finally:
                self.writer.__exit__(kind, *rest)

    def make_sampler(self) -> Sampler:
        """What reads the counters of the server."""
        duration_us = round(self.experiment.load.duration_s * 1e6)
        return Sampler(self.server, self.description, duration_us, self.create_meter())

    def create_meter(self) -> ForeignMeter | None:
        """What measures the load of other processes; None if it cannot be known."""
        return create_meter(self.experiment, self.experiment.variant(self.trial.variant), self.description)

    def fail(self, problem: Problem) -> None:
        """End the trial, and find out who caused this. Then the server may be asked."""
        self.sampler.close()
        super().fail(problem)
        self.failure = describe_problem(problem, self.result, self.server)

    def end_load(self) -> None:
        """After the load: end the hook during_trial, and read the counters; not after a failed load, whose
        server may not answer. Raises StoreProblem.
        """
        self.sampler.close()
        if self.problem is not None or self.result is None:
            return
        self.failure = describe_failure(self.result, self.server) or describe_idle(self.result)
        try:
            self.hooks.finish()
            if not self.failure:
                self.sampler.read_after()
        except ServerProblem as problem:
            self.fail(problem)

    def store(self, **facts: Any) -> StoredTrial:
        """Run the hook after_trial, and store the trial with these `facts`. Raises StoreProblem."""
        self.end()
        self.writer.write_server(self.server_record())
        result = self.result
        fleet = {"fleet": list(result.fleet)} if result and result.fleet else {}
        return self.writer.finish(
            "failed" if self.failure else "done",
            **self.failure,
            exit_code=result.exit_code if result else None,
            **fleet,
            started_unix_us=self._started_unix_us,
            ended_unix_us=time.time_ns() // 1000,
            **facts,
        )

    def server_record(self) -> ServerRecord:
        """The content of server.json."""
        return self.sampler.record()


def run_trial(run: Run, engine: Engine, trial: Trial, context: Context) -> Outcome:
    """Run one trial on the server of `context`, and store it, even if it fails.

    Raises StoreProblem and FleetProblem; trial.json has other failures.
    """
    with RecordedTrial(run, trial, context, measured_s=context.experiment.load.duration_s) as session:
        session.prepare()
        session.connect()
        session.load(
            engine,
            session.plan,
            session.writer.append_event,
            on_record=session.sampler.handle_record,
            on_ready=session.sampler.read_before,
            open_file=session.writer.open_background,
            open_lines=session.writer.open_engine,
            planned=run.schedule(),
        )
        session.end_load()
        stored, result = session.store(), session.result
    return Outcome(stored, result.end if result else None, tuple(session.hooks.failures))


def plan_of(run: Run, experiment: Experiment, trial: Trial, address: Address) -> dict[str, Any]:
    """The engine's plan of one trial."""
    target = address.target(experiment.load_for(experiment.variant(trial.variant)).transport)
    document = trial_plan(
        experiment,
        trial,
        target,
        run.schedule(),
        warmup_s=derived_warmup_s(run),
        workers=chosen_workers(run),
    )
    if experiment.design.pairing == "slices":
        return slice_plan(document, slice_s(experiment, trial.workload, trial.point.connections))
    return document


def store_unrun_trial(
    run: Run,
    experiment: Experiment,
    trial: Trial,
    server: Server,
    reason: str,
    *,
    failed_by: FailedBy = "server",
) -> StoredTrial:
    """Store a trial as failed without running it. Raises StoreProblem."""
    plan = plan_of(run, experiment, trial, server.load_address())
    writer: TrialWriter
    with run.begin(trial, plan) as writer:
        return writer.finish("failed", reason=reason, failed_by=failed_by, exit_code=None)
