"""Runs the steps of an experiment: checks, servers with their data, and trials.

`compare`, `sweep` and `preflight` each call these steps in their own order. The coordinator prints nothing:
it passes progress values to a listener, and writes findings and trials into the run's folder.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.experiment.schedule import Trial, trial_number
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.run import pilot, progress
from dbdyno.run.engine import Engine, Record, require_within_limits
from dbdyno.run.failures import StartFailure
from dbdyno.run.progress import Listener
from dbdyno.run.step_times import StepTimes
from dbdyno.run.trial import run_trial, store_unrun_trial, unreachable_reason
from dbdyno.servers.server import Description, Server, ServerProblem
from dbdyno.store import Run
from dbdyno.store.preparation import Step, read_workers, write_workers

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conclusion:
    """The end of an experiment: the findings that stopped it, and the number of trials."""

    # Findings that stopped the experiment; empty if none did.
    stops: tuple[Finding, ...]
    # Trials that completed, and trials that failed.
    done: int
    failed: int


class Stopped(Exception):  # noqa: N818 — not an error: a check stopped the experiment.
    """Raised when findings stop the experiment."""

    def __init__(self, stops: Sequence[Finding]) -> None:
        super().__init__()
        self.stops = tuple(stops)


class Coordinator:
    """Runs the steps of one experiment. `run` stores trials and findings; it is None for `dbdyno check`."""

    def __init__(
        self,
        experiment: Experiment,
        run: Run | None,
        engine: Engine,
        listen: Listener,
        times: StepTimes | None = None,
    ) -> None:
        self.times = times or StepTimes()
        self.experiment, self.engine, self.listen = experiment, engine, listen
        self._run = run
        # Findings of this process, without duplicates.
        self.findings: dict[tuple[str, str, str], Finding] = {}

    @property
    def run(self) -> Run:
        """The run that stores the trials."""
        assert self._run is not None, "only `dbdyno check` has no run"
        return self._run

    def step(self, text: str) -> None:
        """Announce a step that takes time."""
        self.listen(progress.Step(text))

    # --- findings

    def check(self, moment: Moment, context: Context, codes: Iterable[str] | None = None) -> list[Finding]:
        """Run the checks of a moment and store their findings. Returns those that stop the experiment."""
        with self.times.step("checking"):
            findings = checks.run(moment, context, codes)
        _LOG.debug("checks (%s), findings: %d", moment.value, len(findings))
        self.keep(findings)
        return checks.blocking_findings(findings)

    def require(self, moment: Moment, context: Context, codes: Iterable[str] | None = None) -> None:
        """Run the checks of a moment. Raises Stopped if one stops the experiment."""
        if stops := self.check(moment, context, codes):
            raise Stopped(stops)

    def keep(self, findings: Sequence[Finding]) -> None:
        """Store findings and announce the new ones."""
        self.findings |= {(finding.code, finding.subject, finding.text): finding for finding in findings}
        if self._run is None:
            return
        if new := self._run.add_findings(findings):
            self.listen(progress.NewFindings(tuple(new)))

    # --- servers

    @contextmanager
    def closing(self, server: Server) -> Iterator[Server]:
        """Close the server at the end. Raises the error of a failed close, unless another exception is being
        raised.
        """
        try:
            yield server
        except BaseException:
            with self.announcing_problems():
                server.close()
            raise
        server.close()

    @contextmanager
    def stopping_on_failure(self, server: Server) -> Iterator[None]:
        """Stop the server if an exception is raised."""
        try:
            yield
        except BaseException:
            with self.announcing_problems():
                server.stop(clean=False)
            raise

    @contextmanager
    def announcing_problems(self) -> Iterator[None]:
        """Announce a Problem instead of raising it, because the caller raises a more important one."""
        try:
            yield
        except Problem as problem:
            text = problem.text + (f" ({problem.fix})" if problem.fix else "")
            self.listen(progress.ProblemOccurred(text))

    def tolerating_failed(self, server: Server) -> AbstractContextManager[None]:
        """Announce a Problem when a server is stopped that has failed, so that the experiment goes on.

        A server that keeps the variables of one variant (`set_global`) would change the results of others, so
        its Problem is raised.
        """
        is_changed = self.experiment.variant(server.variant).server.set_global
        return nullcontext() if is_changed else self.announcing_problems()

    def check_server(
        self,
        variant: Variant,
        server: Server,
        peers: dict[str, Description],
        codes: Iterable[str],
        workload: Workload | None = None,
    ) -> list[Finding]:
        """Start a server once, check it and close it. Returns the findings that stop the experiment.

        `peers` are the descriptions of the variants checked so far; the description of this variant is added.
        """
        with self.closing(server):
            if variant.server.is_private:
                server.restore()
            server.start()
            for note in server.notes:
                self.step(f"{variant.name}: {note}")
            description = server.describe()
            context = Context(
                self.experiment,
                variant=variant,
                server=server,
                description=description,
                peers=dict(peers),
                workload=workload,
            )
            stops = self.check(Moment.READY, context, codes)
        peers.setdefault(variant.name, description)
        return stops

    # --- trials

    def run_trials(
        self, trials: Sequence[Trial], server: Server, context: Context, codes: Iterable[str] | None = None
    ) -> list[str]:
        """Run the trials of one group (one server start), then the AFTER_GROUP checks. Returns the reasons of
        failed trials.

        If the server dies, the remaining trials are stored as failed, and no checks run. Raises Stopped if a
        check stops the experiment, LimitProblem after a trial whose load exceeded a limit, and StoreProblem.
        """
        server_failure, reasons = "", []
        for trial in trials:
            self.listen(progress.TrialBegan(trial))
            reason, rate, end = self._run_trial(trial, server, context, server_failure)
            self.listen(progress.TrialEnded(trial, reason, rate))
            require_within_limits(end)
            if reason:
                reasons.append(reason)
                server_failure = server_failure or unreachable_reason(server)
        if not server_failure:
            of_group = {trial.workload for trial in trials}
            # The tables of a group are common to its workloads: one that changes their rows decides.
            changing = (one for one in self.experiment.workloads if one.changes_row_count)
            workload = next((one for one in changing if one.title in of_group), context.workload)
            self.check_after_group(trials[-1], replace(context, workload=workload), codes)
        return reasons

    def fail_trials(self, trials: Sequence[Trial], server: Server, failure: StartFailure) -> list[str]:
        """Store the trials of a group whose server did not get ready as failed. Returns the reason of each.
        Raises StoreProblem.
        """
        for trial in trials:
            self.listen(progress.TrialBegan(trial))
            store_unrun_trial(
                self.run, self.experiment, trial, server, failure.reason, failed_by=failure.failed_by
            )
            self.listen(progress.TrialEnded(trial, failure.reason, None))
        return [failure.reason] * len(trials)

    def check_after_group(self, last: Trial, context: Context, codes: Iterable[str] | None = None) -> None:
        """Run the AFTER_GROUP checks; `last` is the group's last trial. Raises Stopped if one stops the
        experiment.

        A server that ended after the last trial cannot be checked. The trials count, and a finding warns.
        """
        try:
            self.require(Moment.AFTER_GROUP, context, codes)
        except ServerProblem as problem:
            text = (
                f"the settings of {last.variant} were not checked after trial {trial_number(last.index)}: "
                f"{problem.text}"
            )
            self.keep([Finding("R04", "warn", text, {"trial": last.index}, last.variant)])

    def _run_trial(
        self, trial: Trial, server: Server, context: Context, server_failure: str
    ) -> tuple[str, float | None, Record | None]:
        """The reason why the trial failed (empty if it did not), its rate in events per second, and the
        engine's last record.
        """
        if server_failure:
            store_unrun_trial(self.run, self.experiment, trial, server, server_failure)
            return server_failure, None, None
        assert context.description is not None, "a server is described when it has started"
        outcome = run_trial(
            self.run,
            self.experiment,
            trial,
            server=server,
            description=context.description,
            engine=self.engine,
        )
        self.keep(hook_findings(trial, outcome.hook_failures))
        return str(outcome.stored.meta.get("reason", "")), outcome.events_per_s(), outcome.end

    def run_pilot(
        self, trial: Trial, server: Server, context: Context, earlier: Sequence[Step]
    ) -> list[Step]:
        """Run the pilot of one variant and workload on a ready server; `earlier` are the steps before."""
        assert context.description is not None, "a server is described when it has started"
        steps, hook_failures = pilot.run_pilot(
            self.run,
            self.experiment,
            trial,
            earlier,
            server=server,
            description=context.description,
            engine=self.engine,
        )
        self.keep(hook_findings(trial, hook_failures, "pilot"))
        self.step(f"{trial.variant}: {pilot.describe(steps)}")
        return steps

    def keep_workers(self, steps: Sequence[Step]) -> None:
        """Store and announce the number of event loops, once per run; without steps, why it is 1."""
        if steps:
            document = pilot.to_document(self.experiment, steps)
            write_workers(self.run, document)
            self.keep(pilot.findings(document))
            self.step(f"{pilot.format_workers(document['workers'])} of the load generator in all trials")
        elif self.experiment.client.workers == "auto" and read_workers(self.run) is None:
            write_workers(self.run, pilot.without_pilot(self.experiment))

    def conclude(self, stops: Sequence[Finding]) -> Conclusion:
        """The conclusion of the experiment, from the stored trials."""
        trials = self.run.trials()
        done = sum(trial.is_done for trial in trials)
        return Conclusion(tuple(stops), done, len(trials) - done)


def hook_findings(trial: Trial, failures: Iterable[str], folder: str = "warmup_trials") -> list[Finding]:
    """A finding (R04) for each hook that failed before, during or after a trial."""
    where = "the trial's folder" if trial.index >= 0 else f"the folder {folder}"
    return [
        Finding("R04", "warn", f"{text}; its output is in {where}.", {"trial": trial.index}, trial.variant)
        for text in failures
    ]
