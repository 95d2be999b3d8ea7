"""Runs one trial, and writes its plan, records and server counters into the trial's folder."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.binary import EngineProblem
from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import slice_s
from dbdyno.problem import Problem
from dbdyno.run.background import BackgroundEnded, run_loads
from dbdyno.run.engine import Engine, EngineResult, Record
from dbdyno.run.foreign import create_meter
from dbdyno.run.hooks import TrialHooks
from dbdyno.run.plan import slice_plan, trial_plan
from dbdyno.run.round_trips import measure_round_trips
from dbdyno.run.sampling import Counters, Edges
from dbdyno.server_record import ServerRecord
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.load_connection import open_load_session
from dbdyno.servers.server import Address, Description, MachineProblem, Server, ServerProblem
from dbdyno.store import Run, StoredTrial
from dbdyno.store.preparation import chosen_workers, derived_warmup_s
from dbdyno.store.trial import FailedBy, TrialWriter

# Reasons why an engine run ended that count as a failure of the server: it refused or lost connections,
# returned an error that is not retried, or did not answer. The network may also fail the first two.
CONNECTION_FAILURES = frozenset({"connect-failed", "connection-lost"})
SERVER_FAILURES = CONNECTION_FAILURES | {"server-error", "forced-shutdown", "queue-full"}
# The class of the server errors that are caused by the workload's own keys.
DUPLICATE_KEY = "duplicate-key"

# Errors of this machine that prevent a connection although the server runs: no free local port or file
# handle, or no memory. The engine's text has their number.
LOCAL_LIMITS = frozenset({errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Maximum seconds for a server to show that it answers.
ALIVE_TIMEOUT_S = 10.0
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


class HookProblem(ServerProblem):
    """The user's `before_trial` command failed."""


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

    def events_per_s(self) -> float | None:
        """Events per second of the measured phase, for display; the package `judge` computes the result."""
        if self.rate is not None:
            return self.rate
        measured = self.end["phases"].get("measure") if self.end else None
        if not measured or measured["end_us"] <= measured["start_us"]:
            return None
        return float(measured["events"]) * 1e6 / float(measured["end_us"] - measured["start_us"])


def run_trial(
    run: Run,
    experiment: Experiment,
    trial: Trial,
    *,
    server: Server,
    description: Description,
    engine: Engine,
) -> Outcome:
    """Run one trial and store it, even if it fails.

    dbdyno reads the server's counters four times: when every connection is open, at both edges of the
    measurement, and after the end. Raises StoreProblem and FleetProblem; trial.json has other failures.
    """
    plan = plan_of(run, experiment, trial, server.load_address())
    before, after, length_s = Counters(), Counters(), experiment.load.duration_s
    meter = create_meter(experiment, experiment.variant(trial.variant), description)
    edges = Edges(server, description, round(length_s * 1e6), meter)
    started_unix_us = time.time_ns() // 1000
    result: EngineResult | None = None
    with run.begin(trial, plan) as writer:
        hooks = TrialHooks(experiment, trial, server, description, writer, measured_s=length_s)
        try:
            if reason := hooks.before():
                raise HookProblem(reason)
            prewarm(experiment, trial, server)
            try:
                result = run_loads(
                    experiment,
                    trial,
                    plan,
                    server=server,
                    engine=engine,
                    on_record=notify_all(edges.handle_record, hooks.handle_record),
                    on_line=writer.append_event,
                    on_ready=lambda: edges.read_before(before),
                    open_file=writer.open_background,
                    open_lines=writer.open_engine,
                    planned=run.schedule(),
                )
            finally:
                edges.close()
            failure = describe_failure(result, server) or _describe_idle(result)
            hooks.finish()
            _read_after(after, server, failure)
        except (EngineProblem, ServerProblem) as problem:
            failure = describe_problem(problem, result, server)
        except BaseException:
            hooks.abort()
            raise
        hooks.after()
        writer.write_server(server_record(description, before, after, edges))
        stored = writer.finish(
            "failed" if failure else "done",
            **failure,
            **_engine_facts(result),
            started_unix_us=started_unix_us,
            ended_unix_us=time.time_ns() // 1000,
        )
    return Outcome(stored, result.end if result else None, tuple(hooks.failures))


def _engine_facts(result: EngineResult | None) -> dict[str, Any]:
    """The exit code of the engine, None without a result; and what is known of each engine of a fleet."""
    facts: dict[str, Any] = {"exit_code": result.exit_code if result else None}
    return {**facts, "fleet": list(result.fleet)} if result and result.fleet else facts


def _read_after(after: Counters, server: Server, failure: Mapping[str, str]) -> None:
    """Read the counters after a trial; not after a failed one, whose server may not answer. Raises
    ServerProblem.
    """
    if not failure:
        after.read(server)
        after.round_trips = measure_round_trips(server)


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


def _describe_idle(result: EngineResult) -> dict[str, str]:
    """As `describe_failure`, for a run that completed: a point without a transaction has no result."""
    measured = result.end["phases"].get("measure") if result.end is not None else None
    if measured is None or measured["events"]:
        return {}
    errors = ", ".join(f"{count} x {code}" for code, count in measured["errors"].items())
    reason = "no transaction ended in the measurement" + (f" (errors: {errors})" if errors else "")
    return {"reason": reason, "failed_by": "server"}


def describe_failure(result: EngineResult, server: Server) -> dict[str, str]:
    """Why an engine run did not complete, and whether the server or dbdyno ("harness") caused this.

    In the format of trial.json; {} if the run completed.
    """
    if result.done:
        return {}
    if result.end is None:
        is_by_server = bool(unreachable_reason(server))
    else:
        failure = result.end.get("failure") or {}
        reason = result.end["reason"]
        is_by_server = reason in SERVER_FAILURES and failure.get("class") != DUPLICATE_KEY
        if result.is_of_fleet and reason in CONNECTION_FAILURES:
            # The network of one host may be the cause.
            is_by_server = bool(unreachable_reason(server))
        if reason == "script-error":
            # A script reports a refused connection, but not a lost server.
            is_by_server = failure.get("class") == "refused" or bool(unreachable_reason(server))
        numbers = _OS_ERROR.findall(str(failure.get("text", "")))
        is_by_server = is_by_server and LOCAL_LIMITS.isdisjoint(map(int, numbers))
    return {"reason": result.failure(), "failed_by": "server" if is_by_server else "harness"}


def describe_problem(problem: Problem, result: EngineResult | None, server: Server) -> dict[str, str]:
    """The failure of a trial because of a problem outside the engine, in the format of trial.json."""
    if isinstance(problem, MachineProblem):
        return {"reason": problem.text, "failed_by": "harness"}
    if isinstance(problem, BackgroundEnded) and problem.result is not None:
        return describe_failure(problem.result, server) | {"reason": problem.text}
    # The engine's reason is closer to the cause than "the server no longer answers".
    if result is not None and (failure := describe_failure(result, server)):
        return failure
    if isinstance(problem, HookProblem) or not unreachable_reason(server):
        # A complete run stays valid when the counters after it cannot be read.
        is_complete = result is not None and isinstance(problem, ServerProblem)
        return {} if is_complete else {"reason": problem.text, "failed_by": "harness"}
    return {"reason": problem.text, "failed_by": "server"}


def prewarm(experiment: Experiment, trial: Trial, server: Server) -> None:
    """Read all data of a user-written SQL workload; for the OLTP workloads the engine does this.

    Raises ServerProblem.
    """
    variant = experiment.variant(trial.variant)
    workload = experiment.workload_for(variant, trial.workload)
    if experiment.load_for(variant).prewarm == "scan" and isinstance(workload, SqlWorkload):
        # A scan of a large table may take hours.
        with answers_within(None), open_load_session(server, workload, variant) as admin:
            for sql in workload.scans(server.address().protocol):
                admin.query(sql)


def notify_all(*listeners: Callable[[Record], None]) -> Callable[[Record], None]:
    """A listener that passes every record to all `listeners` in order."""

    def listen(record: Record) -> None:
        for listener in listeners:
            listener(record)

    return listen


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


def unreachable_reason(server: Server) -> str:
    """The error of a server that no longer answers; empty if it answers."""
    try:
        with answers_within(ALIVE_TIMEOUT_S):
            server.query("SELECT 1")
    except ServerProblem as problem:
        return f"the server no longer answers: {problem.text}"
    return ""


def server_record(
    description: Description, before: Counters, after: Counters, edges: Edges | None = None
) -> ServerRecord:
    """The content of server.json."""
    return ServerRecord(
        **description.record(),
        status_before=before.status,
        status_after=after.status,
        process={"before": before.process, "after": after.process},
        edges=edges.as_json() if edges else None,
        edges_unread=edges.unread_reason if edges else "",
        round_trips=[*before.round_trips, *after.round_trips],
    )
