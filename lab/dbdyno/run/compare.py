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
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.promise import found_rates, rate_text
from dbdyno.experiment.schedule import Trial, split_by_start
from dbdyno.experiment.slices import load_s
from dbdyno.finding import Finding
from dbdyno.run import pilot, progress, warmup
from dbdyno.run.affinity import require_cpus
from dbdyno.run.alternating import complete_points, run_in_slices
from dbdyno.run.ceiling import measure_ceilings
from dbdyno.run.coordinator import Conclusion, Coordinator, Stopped, hook_findings
from dbdyno.run.data_state import DataState
from dbdyno.run.engine import Engine
from dbdyno.run.estimate import Estimate
from dbdyno.run.failures import Failures, StartFailure
from dbdyno.run.progress import Listener
from dbdyno.run.repeating import may_repeat, plan_repeat, plan_repeats
from dbdyno.run.starting import GroupServers, count_slots, make_slots, verify_settings
from dbdyno.run.step_times import StepTimes
from dbdyno.run.stopping import Limits, Stopping
from dbdyno.servers.kinds.remote_changes import has_left_changes
from dbdyno.servers.server import Server
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoreProblem
from dbdyno.store.document import Why
from dbdyno.store.endings import WARMUP, Ending, Resumption, add_ending, add_resumption
from dbdyno.store.preparation import Step, WarmupTrial, derived_warmup_s, write_warmup_trials


def compare(
    experiment: Experiment,
    run: Run,
    listen: Listener,
    engine: Engine | None = None,
    limits: Limits | None = None,
) -> Conclusion:
    """Run the trials of the schedule that `run` does not contain yet: all of them, or until `design.stop`
    ends the call.

    Raises Problem (from a server, the engine, the store, or for a missing CPU) and passes on
    KeyboardInterrupt. In both cases completed trials are kept, all processes are stopped, and the run can be
    resumed.
    """
    require_cpus(experiment)
    estimate = Estimate(experiment)

    times = StepTimes()

    def seconds_of(trial: Trial) -> tuple[float, float]:
        return load_s(experiment, trial.workload, trial.point.connections, estimate.warmup_s)

    def tell(value: progress.Progress) -> None:
        estimate.listen(value)
        times.listen(value, seconds_of)
        listen(value)

    coordinator = Coordinator(experiment, run, engine or Engine(), tell, times)
    began_us = time.time_ns() // 1000
    # A call that is refused leaves no ending.
    comparison = _Comparison(coordinator, limits or Limits(), estimate)
    why: Why = "failed"
    stops: Sequence[Finding] = ()
    try:
        why = comparison.run()
    except Stopped as stopped:
        stops, why = stopped.stops, "check"
    except KeyboardInterrupt:
        why = "interrupted"
        raise
    finally:
        # The error that ended the call is the one to report. A call that failed before its first trial leaves
        # the run as it was.
        with contextlib.suppress(StoreProblem):
            if why != "failed" or comparison.has_begun:
                ended_us, seconds = time.time_ns() // 1000, times.seconds()
                ending = Ending(began_unix_us=began_us, ended_unix_us=ended_us, why=why, seconds=seconds)
                add_ending(run, ending)
    return coordinator.conclude(stops)


def _split_by_group(trials: Iterable[Trial]) -> list[list[Trial]]:
    return [list(group) for _, group in itertools.groupby(trials, key=lambda trial: trial.group)]


class _Comparison:
    """One comparison in progress. Each variant has one server object per data set; groups start it."""

    def __init__(self, coordinator: Coordinator, limits: Limits, estimate: Estimate) -> None:
        self._coordinator, self._experiment, self._run = coordinator, coordinator.experiment, coordinator.run
        self._times = coordinator.times
        trials = self._run.trials()
        finished = {trial.index for trial in trials if trial.is_result}
        planned, stop = self._run.schedule(), self._experiment.design.stop
        self._in_slices = self._experiment.design.pairing == "slices"
        if self._in_slices:
            finished = complete_points(planned, finished)
        self._stopping = Stopping(self._experiment, stop, self._run, limits, estimate) if stop else None
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
            warmup_trials = self._plan_warmup_trials(titles)
            pilots = self._plan_pilots(titles)
            self._announce(titles, data.rows_missing(titles), len(warmup_trials), len(pilots))
            if self._todo:
                data.require_space(titles, count_slots(experiment))
            # An attempt that was killed after the last trial may have left changes on servers.
            is_remote = not all(variant.server.is_private for variant in experiment.variants)
            if self._todo or (is_remote and has_left_changes(workspace.run)):
                verify_settings(coordinator, workspace)
            slots = stack.enter_context(contextlib.closing(make_slots(experiment, workspace)))
            opened: dict[tuple[str, ...], Server] = {}
            by_name: dict[tuple[str, str], Server] = {}
            for title, variant in itertools.product(titles, experiment.variants):
                workload = experiment.workload_for(variant, title)
                with self._times.step("loading"):
                    snapshot = data.snapshot(workload, variant)
                if snapshot is not None:
                    stack.enter_context(contextlib.closing(snapshot))
                key = data.server_key(workload, variant, snapshot)
                if key not in opened:
                    opened[key] = stack.enter_context(coordinator.closing(data.open(variant, snapshot)))
                by_name[variant.name, title] = opened[key]
            coordinator.listen(progress.Loaded())
            self.has_begun = True
            self._record_resumption()
            servers = GroupServers(coordinator, data, slots, by_name)
            with data.cleaning_up():
                self._determine_workers(data, servers, pilots, warmup_trials)
                self._determine_warmup(data, servers, warmup_trials)
                self._run_all_groups(data, servers)
            with self._times.step("checking"):
                measure_ceilings(self._run, experiment, coordinator.engine)
        return (self._stopping and self._stopping.why) or "blocks"

    def _record_resumption(self) -> None:
        """If other calls have measured trials of the run, store which blocks they left unfinished."""
        todo = {trial.index for trial in self._todo}
        measured = [trial for trial in self._run.trials() if trial.index not in todo]
        if not measured or not todo:
            return
        open_blocks = {trial.block for trial in self._todo}
        blocks = sorted(open_blocks.intersection(int(trial.meta["block"]) for trial in measured))
        resumption = Resumption(unix_us=time.time_ns() // 1000, trials=len(measured), blocks=blocks)
        add_resumption(self._run, resumption)

    def _announce(self, titles: Sequence[str], rows: int, warmup_trials: int, pilots: int) -> None:
        of_group = (one.rows for one in self._experiment.distinct_workloads() if one.title in titles)
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
                max_time_s=self._stopping.limit_s if self._stopping else None,
            )
        )

    def _plan_warmup_trials(self, titles: Sequence[str]) -> list[Trial]:
        """The trials that determine the warm-up and the rates of a promise; none if an earlier attempt has
        determined both, or has run trials.
        """
        experiment = self._experiment
        has_rates = experiment.load.has_rates or not experiment.load.needs_probe
        has_warmup = derived_warmup_s(self._run) is not None or not warmup.has_warmup_trials(experiment)
        if (has_rates and has_warmup) or self._run.trials() or not self._todo:
            return []
        return warmup.warmup_trials(self._experiment, titles)

    def _plan_pilots(self, titles: Sequence[str]) -> list[Trial]:
        """A trial of each variant and workload for the pilot; none if the number of event loops is known."""
        has_pilot = self._todo and pilot.has_pilot(self._experiment, self._run)
        return warmup.warmup_trials(self._experiment, titles) if has_pilot else []

    def _determine_workers(
        self, data: DataState, servers: GroupServers, trials: list[Trial], later: list[Trial]
    ) -> None:
        """Run the pilots and store the number of event loops; `later` are the warm-up trials, which follow.

        A pilot that fails runs once more. Raises Stopped, Problem.
        """
        coordinator = self._coordinator
        steps: list[Step] = []
        in_order = [servers.of(trial) for trial in [*trials, *later, *self._todo]]
        for number, trial in enumerate(trials, start=1):
            new = self._run_pilot(servers, trial, steps)
            if new[-1]["usage"] is None:
                new = self._run_pilot(servers, trial, steps)
            steps += new
            self._finish(data, servers.of(trial), in_order[number:], is_failed=new[-1]["usage"] is None)
            coordinator.listen(progress.PilotEnded())
        coordinator.keep_workers(steps)

    def _run_pilot(self, servers: GroupServers, trial: Trial, earlier: Sequence[Step]) -> list[Step]:
        """The steps of one pilot; `earlier` are those of other pilots."""
        coordinator, server = self._coordinator, servers.of(trial)
        coordinator.step(f"{trial.variant}: pilot for the number of event loops")
        with coordinator.stopping_on_failure(server):
            started = servers.start(trial)
            with self._times.step("pilot"):
                if isinstance(started, StartFailure):
                    step = pilot.unrun_step(self._experiment, trial, earlier, started.reason)
                    coordinator.step(f"{trial.variant}: {pilot.describe([step])}")
                    return [step]
                return coordinator.run_pilot(trial, server, started, earlier)

    def _determine_warmup(self, data: DataState, servers: GroupServers, trials: list[Trial]) -> None:
        """Run the warm-up trials and store the warm-up derived from them. One that fails runs once more.
        Raises Stopped, Problem.
        """
        coordinator, experiment = self._coordinator, self._experiment
        entries = []
        in_order = [servers.of(trial) for trial in [*trials, *self._todo]]
        for number, trial in enumerate(trials, start=1):
            entry = self._run_warmup_trial(servers, trial, number)
            if entry["failure"] is not None:
                entry = self._run_warmup_trial(servers, trial, number)
            entries.append(entry)
            self._finish(data, servers.of(trial), in_order[number:], is_failed=entry["failure"] is not None)
            coordinator.listen(progress.WarmupTrialEnded())
        if entries and experiment.load.needs_probe:
            self._use_rates(warmup.peaks(entries))
        if entries and warmup.has_warmup_trials(experiment):
            document = warmup.to_document(experiment, entries)
            write_warmup_trials(self._run, document)
            coordinator.listen(progress.WarmupChosen(document["warmup_s"]))
            coordinator.keep(warmup.findings(experiment, document))
            coordinator.step(warmup.describe(experiment, document, len(self._todo)))

    def _run_warmup_trial(self, servers: GroupServers, trial: Trial, number: int) -> WarmupTrial:
        """The entry of one warm-up trial in warmup_trials.json."""
        coordinator, experiment, server = self._coordinator, self._experiment, servers.of(trial)
        sought = ["warm-up"] if warmup.has_warmup_trials(experiment) else []
        sought += ["rates"] if experiment.load.needs_probe else []
        length_s = warmup.length_s(experiment)
        coordinator.step(
            f"{trial.variant}: {length_s:.0f} s of load to determine the {' and the '.join(sought)}"
        )
        with coordinator.stopping_on_failure(server):
            started = servers.start(trial)
            if isinstance(started, StartFailure):
                return warmup.unrun_trial(experiment, trial, started.reason)
            assert started.description is not None, "a server is described when it has started"
            with self._times.step(WARMUP):
                entry, hook_failures = warmup.run_warmup_trial(
                    self._run,
                    experiment,
                    trial,
                    number,
                    server=server,
                    description=started.description,
                    engine=coordinator.engine,
                )
        coordinator.keep(hook_findings(trial, hook_failures))
        return entry

    def _finish(
        self, data: DataState, server: Server, following: Sequence[Server], *, is_failed: bool
    ) -> None:
        """End a group; `following` are the servers of all later ones. The server of a failed group may be
        unable to stop cleanly, which does not end the comparison.
        """
        with self._coordinator.tolerating_failed(server) if is_failed else contextlib.nullcontext():
            data.finish_group(server, following)

    def _use_rates(self, peaks: Mapping[str, float]) -> None:
        """Store the rates of a promise, check them, and use them in all trials. Raises Stopped."""
        rates = found_rates(min(peaks.values()))
        self._run.set_rates(rates, peaks)
        self._experiment.load.set_found_rates(tuple(rates))
        by_index = {trial.index: trial for trial in self._run.schedule()}
        self._todo = [by_index[trial.index] for trial in self._todo]
        reached = ", ".join(f"{name} {rate_text(peak)}" for name, peak in peaks.items())
        self._coordinator.require(Moment.DESIGN, Context(self._experiment))
        self._coordinator.step(
            f"rates: {rates[0]:g} to {rates[-1]:g} transactions/s (the closed loops had {reached})"
        )

    def _plan_repeats(self) -> list[Trial]:
        """Add the trials of repeated blocks to the run and return them; the second call returns none."""
        with self._times.step("judging"):
            plan = plan_repeats(self._experiment, self._run)
        if plan is None:
            return []
        self._coordinator.listen(progress.Extended(plan.text, tuple(plan.trials)))
        return plan.trials

    def _run_all_groups(self, data: DataState, servers: GroupServers) -> None:
        """Run all groups, and those that are added. Raises CannotRunProblem if a variant cannot run its
        load.
        """
        waiting_groups = deque(self._split(self._todo))
        run_next = self._run_groups_in_slices if self._in_slices else self._run_group
        while waiting_groups:
            trials = waiting_groups[0]
            try:
                run_next(data, servers, waiting_groups)
            except StoreProblem as problem:
                waiting_groups.appendleft(self._failures.repeats_after(problem, trials))
                self._coordinator.listen(progress.ProblemOccurred(f"{problem.text}: trying once more"))
        self._failures.require_any_results()

    def _run_group(self, data: DataState, servers: GroupServers, waiting_groups: deque[list[Trial]]) -> None:
        """Run the first waiting group: its server, its trials, its checks.

        After the last group of the plan (with `design.stop`, of a block) add the repeats.
        """
        began = time.monotonic()
        trials = waiting_groups.popleft()
        first, server = trials[0], servers.of(trials[0])
        self._coordinator.step(f"block {first.block + 1}, {first.variant}: {data.describe()}")
        with self._coordinator.stopping_on_failure(server):
            started = servers.start(first)
            with self._times.step("connecting"):
                if isinstance(started, StartFailure):
                    reasons = self._coordinator.fail_trials(trials, server, started)
                else:
                    servers.check_workloads(trials, started)
                    reasons = self._coordinator.run_trials(trials, server, started)
            self._add_groups(trials, waiting_groups)
        following = [servers.of(later[0]) for later in waiting_groups]
        self._finish(data, server, following, is_failed=bool(reasons))
        self._coordinator.listen(progress.GroupEnded(tuple(trials), time.monotonic() - began))

    def _run_groups_in_slices(
        self, data: DataState, servers: GroupServers, waiting_groups: deque[list[Trial]]
    ) -> None:
        """Like `_run_group`, for the groups of all variants, whose servers run together."""
        began = time.monotonic()
        trials = waiting_groups.popleft()
        groups = _split_by_group(trials)
        started: dict[str, Context | StartFailure] = {}
        with contextlib.ExitStack() as stack:
            for group in groups:
                first = group[0]
                self._coordinator.step(f"block {first.block + 1}, {first.variant}: {data.describe()}")
                stack.enter_context(self._coordinator.stopping_on_failure(servers.of(first)))
                started[first.variant] = context = servers.start(first)
                if not isinstance(context, StartFailure):
                    servers.check_workloads(group, context)
            with self._times.step("connecting"):
                reasons = run_in_slices(self._coordinator, trials, started, servers.of)
            self._add_groups(trials, waiting_groups)
        following = [servers.of(trial) for later in waiting_groups for trial in later]
        for first, *_ in groups:
            server = servers.of(first)
            # Every server of the next block follows at once, whatever its place in the order.
            in_order = [*(later for later in following if later is server), *following]
            self._finish(data, server, in_order, is_failed=bool(reasons[first.variant]))
        seconds = (time.monotonic() - began) / len(groups)
        for group in groups:
            self._coordinator.listen(progress.GroupEnded(tuple(group), seconds))

    def _add_groups(self, trials: Sequence[Trial], waiting_groups: deque[list[Trial]]) -> None:
        """Add the repeats that are due after `trials`; end the comparison if it is sure. Raises
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
