"""Runs a comparison: checks, data, and every group of the schedule. A group is the trials of one server
start.

::

    DESIGN checks -> every variant started once, empty, and checked -> data loaded once
    -> for each group: restore, start, READY checks, trials, AFTER_GROUP checks, stop

A finding of level stop ends the comparison, because its trials would not be comparable. So does a variant
that cannot run its load (`failures`); other failed trials do not.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial

from dbdyno.checks import Context, Moment
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial, split_by_start
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import pilot, progress, warmup
from dbdyno.run.affinity import require_cpus
from dbdyno.run.alternating import complete_points, run_in_slices
from dbdyno.run.coordinator import Conclusion, Coordinator, Stopped
from dbdyno.run.data_state import DataState
from dbdyno.run.engine import Engine
from dbdyno.run.failures import StartFailure
from dbdyno.run.pilot import measure_ceilings
from dbdyno.run.progress import Listener
from dbdyno.run.repeating import Failures, may_repeat, plan_repeat, plan_repeats
from dbdyno.run.starting import GroupServers, count_slots, open_servers, verify_settings
from dbdyno.run.stopping import Deadline, Limits, Stopping, TimeIsOver
from dbdyno.run.times import Estimate, StepTimes
from dbdyno.servers.kinds.remote_changes import has_left_changes
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoreProblem
from dbdyno.store.document import Why
from dbdyno.store.endings import Ending, add_ending, record_resumption
from dbdyno.store.live import remove_progress, write_progress
from dbdyno.store.preparation import derived_warmup_s
from dbdyno.text import compose


def compare(
    experiment: Experiment,
    run: Run,
    listen: Listener,
    engine: Engine | None = None,
    limits: Limits | None = None,
) -> Conclusion:
    """Run the trials of the schedule that `run` does not contain yet: all of them, or until `design.stop`
    ends the call. Call it in the main thread, which alone can be interrupted when the time is over.

    Raises Problem (from a server, the engine, the store, for a missing CPU, or if the time was over before
    the first trial ended) and passes on KeyboardInterrupt. In both cases completed trials are kept, all
    processes are stopped, and the run can be resumed.
    """
    require_cpus(experiment)
    limits = limits or Limits()
    deadline, estimate = Deadline(limits.time_s(experiment.design.stop)), Estimate(experiment)

    times = StepTimes()

    def tell(value: progress.Progress) -> None:
        deadline.listen(value)
        estimate.listen(value)
        times.listen(value, estimate.load_s)
        listen(value)
        match value:
            case progress.Step(text):
                write_progress(run.path, text, estimate.left_s())
            case progress.Loading():
                step = compose(
                    "loading: {rows:,} of {planned:,} rows", rows=value.rows, planned=value.rows_planned
                )
                write_progress(run.path, step, estimate.left_s())
            case progress.TrialBegan():
                # Its folder says more of the trial.
                write_progress(run.path, "", estimate.left_s())

    coordinator = Coordinator(experiment, run, engine or Engine(), tell, times)
    began_us = time.time_ns() // 1000
    # A call that is refused leaves no ending.
    comparison = _Comparison(coordinator, limits, estimate, deadline)
    why: Why = "failed"
    error = ""
    stops: Sequence[Finding] = ()
    interrupted: int | None = None
    try:
        why = comparison.run()
    except TimeIsOver:
        interrupted = comparison.end_without_time()
        why = "time"
    except Stopped as stopped:
        stops, why = stopped.stops, "check"
    except KeyboardInterrupt:
        why = "interrupted"
        raise
    except Problem as problem:
        error = problem.text
        raise
    finally:
        # The error that ended the call is the one to report. A call that failed before its first trial leaves
        # the run as it was.
        with contextlib.suppress(StoreProblem):
            if why != "failed" or comparison.has_begun:
                add_ending(
                    run,
                    Ending(
                        began_unix_us=began_us,
                        ended_unix_us=time.time_ns() // 1000,
                        why=why,
                        interrupted=interrupted,
                        seconds=times.seconds(),
                        error=error,
                    ),
                )
        remove_progress(run.path)
    return coordinator.conclude(stops)


def _split_by_group(trials: Iterable[Trial]) -> list[list[Trial]]:
    return [list(group) for _, group in itertools.groupby(trials, key=lambda trial: trial.group)]


class _Comparison:
    """One comparison in progress. Each variant has one server object per data set; groups start it."""

    def __init__(
        self, coordinator: Coordinator, limits: Limits, estimate: Estimate, deadline: Deadline
    ) -> None:
        self._coordinator, self._experiment, self._run = coordinator, coordinator.experiment, coordinator.run
        self._times, self._deadline = coordinator.times, deadline
        trials = self._run.trials()
        finished = {trial.index for trial in trials if trial.is_result}
        planned, stop = self._run.schedule(), self._experiment.design.stop
        self._in_slices = self._experiment.design.pairing == "slices"
        if self._in_slices:
            finished = complete_points(planned, finished)
        self._stopping = Stopping(self._experiment, self._run, limits, estimate, deadline) if stop else None
        self._may_repeat = (
            self._experiment.design.repeat_disturbed if stop else may_repeat(self._experiment, planned)
        )
        # Splits trials into those that run together: a group or, in slices, the groups of all variants.
        self._split = partial(split_by_start, self._experiment) if self._in_slices else _split_by_group
        self._finished = len(finished)
        if self._stopping:
            self._todo = self._stopping.plan(finished)
        else:
            self._todo = [trial for trial in planned if trial.index not in finished]
            # Empty if the earlier attempt ended after its last trial, before it planned repeats.
            self._todo = self._todo or self._plan_repeats()
        self._failures = Failures(self._run, in_slices=self._in_slices)
        # Whether servers and data are ready for the first trial.
        self.has_begun = False
        # The block that runs, or ran last; None before the first.
        self._block: int | None = None

    def run(self) -> Why:
        """Run all steps in order. Returns why the comparison ends. Raises Stopped, Problem."""
        coordinator, experiment = self._coordinator, self._experiment
        if self._stopping and self._stopping.why:
            more = "; --resume --blocks +4 adds four blocks" if self._stopping.may_get_blocks else ""
            coordinator.step(f"the run has ended{more}")
        coordinator.require(Moment.DESIGN, Context(experiment))
        with contextlib.ExitStack() as stack:
            workspace = stack.enter_context(
                contextlib.closing(Workspace.open(self._run.path.parent.parent, removes=True))
            )
            workspace.run = str(self._run.path.resolve())
            evidence = {"filesystem": workspace.filesystem}
            coordinator.keep([Finding("P19", "warn", warning, evidence) for warning in workspace.warnings])
            # A repeated block has every workload.
            titles = [
                workload.title
                for workload in experiment.workloads
                if any(self._may_repeat or trial.workload == workload.title for trial in self._todo)
            ]
            data = DataState(experiment, workspace, coordinator.engine, coordinator.listen, self._times)
            warmup_trials = warmup.missing_trials(experiment, self._run, titles) if self._todo else []
            has_pilot = self._todo and pilot.has_pilot(experiment, self._run)
            pilots = warmup.warmup_trials(experiment, titles) if has_pilot else []
            self._announce(titles, data.rows_missing(titles), len(warmup_trials), len(pilots))
            if self._todo:
                data.require_space(titles, count_slots(experiment))
            # An attempt that was killed after the last trial may have left changes on servers.
            is_remote = not all(variant.server.is_private for variant in experiment.variants)
            if self._todo or (is_remote and has_left_changes(workspace.run)):
                verify_settings(coordinator, workspace)
            servers = stack.enter_context(open_servers(coordinator, data, workspace, titles))
            coordinator.listen(progress.Loaded())
            self.has_begun = True
            record_resumption(self._run, self._todo)
            with data.cleaning_up():
                first = [*pilots, *warmup_trials]
                with self._deadline.interrupting(first) if first else contextlib.nullcontext():
                    pilot.determine_workers(coordinator, servers, pilots, [*warmup_trials, *self._todo])
                    warmup.determine_warmup(coordinator, servers, warmup_trials, self._todo)
                # A latency objective may have found its rates.
                by_index = {trial.index: trial for trial in self._run.schedule()}
                self._todo = [by_index[trial.index] for trial in self._todo]
                self._run_all_groups(servers)
            self._measure_ceilings()
        return (self._stopping and self._stopping.why) or "blocks"

    def end_without_time(self) -> int | None:
        """Announce that the time is over. Returns the block that was interrupted; None if it was not begun.
        Raises Problem if no trial has ended.
        """
        limit = format_duration(self._deadline.limit_s)
        if not self._run.trials():
            raise Problem(
                f"max_time is {limit}, and it was over before the first trial had ended",
                "Raise max_time in [design] stop, or give --max-time; data that are restored for each block "
                "are kept, and need not be loaded again",
                ExitCode.NOT_COMPARABLE,
            )
        which = "the first block has not begun"
        if self._block is not None:
            which = f"block {self._block + 1} was interrupted, and is not judged"
        self._coordinator.step(f"max_time ({limit}) is over: {which}; --resume continues")
        return self._block

    def _measure_ceilings(self) -> None:
        with self._times.step("checking"):
            measure_ceilings(self._run, self._experiment, self._coordinator.engine)

    def _announce(self, titles: Sequence[str], rows: int, warmup_trials: int, pilots: int) -> None:
        of_group = (
            workload.rows for workload in self._experiment.distinct_workloads() if workload.title in titles
        )
        self._coordinator.listen(
            progress.Began(
                self._run.path,
                tuple(self._todo),
                self._finished,
                rows=rows,
                group_rows=max(of_group, default=0),
                test_starts=len(self._experiment.variants) if self._todo else 0,
                warmup_trials=warmup_trials,
                warmup_trial_s=warmup.length_s(self._experiment) if warmup_trials else 0.0,
                pilots=pilots,
                warmup_s=derived_warmup_s(self._run),
                max_time_s=self._deadline.limit_s if self._stopping else None,
            )
        )

    def _plan_repeats(self) -> list[Trial]:
        """Add the trials of repeated blocks to the run and return them; the second call returns none."""
        with self._times.step("judging"):
            plan = plan_repeats(self._experiment, self._run)
        if plan is None:
            return []
        self._coordinator.listen(progress.Extended(plan.text, tuple(plan.trials)))
        return plan.trials

    def _run_all_groups(self, servers: GroupServers) -> None:
        """Run all groups, and those that are added. Raises CannotRunProblem if a variant cannot run its
        load.
        """
        waiting_groups = deque(self._split(self._todo))
        measured: set[str] = set()
        while waiting_groups:
            trials = waiting_groups[0]
            try:
                self._run_groups(servers, waiting_groups)
                titles = {trial.workload for trial in trials}
                if self._stopping and not titles <= measured:
                    # Not only at the end, when no time may be left.
                    measured |= titles
                    self._measure_ceilings()
            except StoreProblem as problem:
                waiting_groups.appendleft(self._failures.repeats_after(problem, trials))
                self._coordinator.listen(progress.ProblemOccurred(f"{problem.text}: trying once more"))
        self._failures.require_any_results()

    def _run_groups(self, servers: GroupServers, waiting_groups: deque[list[Trial]]) -> None:
        """Run the first waiting group, or those that run together: servers, trials, checks.

        After the last group of the plan (with `design.stop`, of a block) add the repeats.
        """
        began = time.monotonic()
        trials = waiting_groups.popleft()
        groups = _split_by_group(trials)
        started: dict[str, Context | StartFailure] = {}
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._deadline.interrupting(trials))
            self._block = trials[0].block
            for group in groups:
                first = group[0]
                self._coordinator.step(
                    compose(
                        "block {block}, {variant}: {step}",
                        block=first.block + 1,
                        variant=first.variant,
                        step=servers.describe(),
                    )
                )
                started[first.variant] = context = stack.enter_context(servers.started(first))
                if not isinstance(context, StartFailure):
                    servers.check_workloads(group, context)
            with self._times.step("connecting"):
                if self._in_slices:
                    reasons = run_in_slices(self._coordinator, trials, started, servers.of)
                else:
                    server, context = servers.of(first), started[first.variant]
                    reasons = {first.variant: self._coordinator.run_trials(trials, server, context)}
            self._add_groups(trials, waiting_groups)
        following = [servers.of(later[0]) for waiting in waiting_groups for later in _split_by_group(waiting)]
        for first, *_ in groups:
            server = servers.of(first)
            # In slices every server of the next block follows at once, whatever its place in the order.
            next_block = [later for later in following if later is server] if self._in_slices else []
            servers.finish(server, [*next_block, *following], is_failed=bool(reasons[first.variant]))
        seconds = (time.monotonic() - began) / len(groups)
        for group in groups:
            self._coordinator.listen(progress.GroupEnded(tuple(group), seconds))

    def _add_groups(self, trials: Sequence[Trial], waiting_groups: deque[list[Trial]]) -> None:
        """Add the repeats that are due after `trials`; end the comparison if it is decided. Raises
        CannotRunProblem.
        """
        repeated, reason = self._failures.repeats(trials)
        if repeated:
            waiting_groups.appendleft(repeated)
            self._coordinator.listen(progress.Extended(f"{reason}: trying once more", tuple(repeated)))
            return
        self._failures.require_results(trials)
        if self._stopping is not None:
            self._end_block(self._stopping, trials[0], waiting_groups)
        elif not waiting_groups:
            waiting_groups.extend(self._split(self._plan_repeats()))

    def _end_block(self, stopping: Stopping, first: Trial, waiting_groups: deque[list[Trial]]) -> None:
        """After the last group of a block, repeat the block if it met foreign load; else ask the judge.

        Remove all waiting groups if the comparison ends.
        """
        if waiting_groups and waiting_groups[0][0].block == first.block:
            return
        with self._times.step("judging"):
            plan = plan_repeat(self._experiment, self._run, first.block) if first.repeats is None else None
        if plan is not None:
            waiting_groups.extendleft(reversed(self._split(plan.trials)))
            self._coordinator.listen(progress.Extended(plan.text, tuple(plan.trials)))
            return
        with self._times.step("judging"):
            look = stopping.look([trial for group in waiting_groups for trial in group], first)
        self._coordinator.listen(look)
        if stopping.why is not None:
            waiting_groups.clear()
