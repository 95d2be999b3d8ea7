"""Runs the checks and trials of an experiment, and stores their results.

`compare`, `sweep` and `preflight` each call these steps in their own order. The coordinator prints nothing:
it passes progress values to a listener. `starting` starts, checks and closes the servers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial, trial_number
from dbdyno.finding import Finding
from dbdyno.run import progress
from dbdyno.run.engine import Engine, require_within_limits
from dbdyno.run.failures import StartFailure, unreachable_reason
from dbdyno.run.progress import Listener
from dbdyno.run.times import StepTimes
from dbdyno.run.trial import Outcome, run_trial, store_unrun_trial
from dbdyno.servers.server import Server, ServerProblem
from dbdyno.store import Run

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conclusion:
    """The end of an experiment: the findings that stopped it, the number of trials, and the time."""

    # Findings that stopped the experiment; empty if none did.
    stops: tuple[Finding, ...]
    # Trials that completed, and trials that failed.
    done: int
    failed: int
    # Step -> its seconds.
    seconds: Mapping[str, float]


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

    # --- trials

    def run_trials(
        self,
        trials: Sequence[Trial],
        server: Server,
        started: Context | StartFailure,
        codes: Iterable[str] | None = None,
    ) -> list[str]:
        """Run the trials of one group (one server start), then the AFTER_GROUP checks. Returns the reasons of
        failed trials.

        `started` is the context of the server, or why it did not get ready; the trials are then stored as
        failed. So are the remaining ones if the server dies, and no checks run. Raises Stopped if a check
        stops the experiment, LimitProblem after a trial whose load exceeded a limit, and StoreProblem.
        """
        reasons = []
        for trial in trials:
            self.listen(progress.TrialBegan(trial))
            outcome = (
                run_trial(self.run, self.engine, trial, started) if isinstance(started, Context) else started
            )
            reason = self.end_trial(trial, server, outcome)
            if isinstance(outcome, Outcome):
                require_within_limits(outcome.end)
            if reason:
                reasons.append(reason)
            if reason and isinstance(started, Context) and (why := unreachable_reason(server)):
                started = StartFailure(why, "server")
        if isinstance(started, Context):
            of_group = {trial.workload for trial in trials}
            # The tables of a group are common to its workloads: one that changes their rows decides.
            changing = (entry for entry in self.experiment.workloads if entry.changes_row_count)
            workload = next((entry for entry in changing if entry.title in of_group), started.workload)
            self.check_after_group(trials[-1], replace(started, workload=workload), codes)
        return reasons

    def end_trial(self, trial: Trial, server: Server, outcome: Outcome | StartFailure) -> str:
        """Announce the end of a trial, and store it as failed if it did not run. Returns why it failed, or an
        empty text. Raises StoreProblem.
        """
        if isinstance(outcome, StartFailure):
            reason, rate = outcome.reason, None
            store_unrun_trial(self.run, self.experiment, trial, server, reason, failed_by=outcome.failed_by)
        else:
            self.keep(hook_findings(trial, outcome.hook_failures))
            reason, rate = outcome.reason, outcome.events_per_s()
        self.listen(progress.TrialEnded(trial, reason, rate))
        return reason

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

    def conclude(self, stops: Sequence[Finding]) -> Conclusion:
        """The conclusion of the experiment, from the stored trials."""
        trials = self.run.trials()
        done = sum(trial.is_done for trial in trials)
        return Conclusion(tuple(stops), done, len(trials) - done, self.times.seconds())


def hook_findings(trial: Trial, failures: Iterable[str], folder: str = "warmup_trials") -> list[Finding]:
    """A finding (R04) for each hook that failed before, during or after a trial."""
    where = "the trial's folder" if trial.index >= 0 else f"the folder {folder}"
    return [
        Finding("R04", "warn", f"{text}; its output is in {where}.", {"trial": trial.index}, trial.variant)
        for text in failures
    ]
