"""Runs a comparison: checks, data, and every group of the schedule. A group is the trials of one server
start.

::

    DESIGN checks -> every variant started once, empty, and checked -> data loaded once
    -> for each group: restore, start, READY checks, trials, AFTER_GROUP checks, stop

A finding of level stop ends the comparison, because its trials would not be comparable.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.promise import found_rates, rate_text
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import load_s
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import pilot, progress, warmup
from dbdyno.run.affinity import require_cpus
from dbdyno.run.alternating import complete_points, run_in_slices
from dbdyno.run.coordinator import Conclusion, Coordinator, Stopped, hook_findings
from dbdyno.run.data_state import DataState
from dbdyno.run.engine import Engine
from dbdyno.run.estimate import Estimate
from dbdyno.run.progress import Listener
from dbdyno.run.repeating import may_repeat, plan_repeat, plan_repeats
from dbdyno.run.step_times import StepTimes
from dbdyno.run.stopping import Limits, Stopping
from dbdyno.servers import open_server
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import Description, Server, ServerProblem, combine_problems
from dbdyno.servers.snapshots.slots import Slots
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run, StoreProblem
from dbdyno.store.document import Why
from dbdyno.store.endings import WARMUP, Ending, add_ending
from dbdyno.store.warmup_trial import derived_warmup_s, write_warmup_trials
from dbdyno.store.workers import Step


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


def _split_by_workload(trials: Iterable[Trial]) -> list[list[Trial]]:
    """The trials of each block and workload."""
    return [list(part) for _, part in itertools.groupby(trials, lambda trial: (trial.block, trial.workload))]


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
        # Splits trials into those that run together: a group or, in slices, the groups of a workload.
        self._split = _split_by_workload if self._in_slices else _split_by_group
        self._finished = len(finished)
        if self._stopping:
            self._todo = self._stopping.plan(finished)
        else:
            self._todo = [trial for trial in planned if trial.index not in finished]
            # Empty if the earlier attempt ended after its last trial, before it planned repeats.
            self._todo = self._todo or self._plan_repeats()
        # Names of the variants with at least one completed trial.
        self._variants_with_results: set[str] = {trial.meta["variant"] for trial in trials if trial.is_done}
        # Whether servers and data are ready for the first trial.
        self.has_begun = False
        self._servers: dict[tuple[str, str], Server] = {}
        # Descriptions of the servers at their first start with data, by variant and workload.
        self._first_descriptions: dict[tuple[str, str], Description] = {}

    def run(self) -> Why:
        """Run all steps in order. Returns why the comparison ends. Raises Stopped, Problem."""
        coordinator, experiment = self._coordinator, self._experiment
        if self._stopping and self._stopping.why:
            more = "; --resume --blocks +4 adds four blocks" if self._stopping.may_get_blocks else ""
            coordinator.step(f"the run has ended{more}")
        coordinator.require(Moment.DESIGN, Context(experiment))
        with contextlib.ExitStack() as stack:
            workspace = stack.enter_context(contextlib.closing(Workspace.open(self._run.path.parent.parent)))
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
                self._test_servers(workspace)
            slots = stack.enter_context(contextlib.closing(self._slots(workspace)))
            opened: dict[tuple[str, ...], Server] = {}
            for title, variant in itertools.product(titles, experiment.variants):
                workload = experiment.workload_for(variant, title)
                with self._times.step("loading"):
                    snapshot = data.snapshot(workload, variant)
                if snapshot is not None:
                    stack.enter_context(contextlib.closing(snapshot))
                key = data.server_key(workload, variant, snapshot)
                if key not in opened:
                    opened[key] = stack.enter_context(coordinator.closing(data.open(variant, snapshot)))
                self._servers[variant.name, title] = opened[key]
            coordinator.listen(progress.Loaded())
            self.has_begun = True
            with data.cleaning_up():
                self._determine_workers(data, slots, pilots, warmup_trials)
                self._determine_warmup(data, slots, warmup_trials)
                waiting_groups = deque(self._split(self._todo))
                run_next = self._run_groups_in_slices if self._in_slices else self._run_group
                while waiting_groups:
                    run_next(data, slots, waiting_groups)
        return (self._stopping and self._stopping.why) or "blocks"

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

    def _slots(self, workspace: Workspace) -> Slots:
        """Slots for all private servers that keep data at the same time."""
        started = [variant for variant in self._experiment.variants if variant.server.is_private]
        copies = 1 if self._experiment.design.renews_data else len(self._experiment.workloads)
        count = len(self._experiment.variants) * copies if started else 0
        ports = (read_declaration(variant).port for variant in started)
        return Slots(workspace, count, [port for port in ports if port is not None])

    def _slot(self, trial: Trial) -> int:
        """The slot of a trial's server. If data are kept between groups, each workload has its own
        servers.
        """
        if self._experiment.design.renews_data:
            return trial.slot
        titles = [workload.title for workload in self._experiment.workloads]
        return trial.slot + len(self._experiment.variants) * titles.index(trial.workload)

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
        self, data: DataState, slots: Slots, trials: list[Trial], later: list[Trial]
    ) -> None:
        """Run the pilots and store the number of event loops; `later` are the warm-up trials, which follow.

        Raises Stopped, Problem.
        """
        coordinator = self._coordinator
        steps: list[Step] = []
        servers = [self._server_of(trial) for trial in [*trials, *later, *self._todo]]
        for number, trial in enumerate(trials, start=1):
            server = self._server_of(trial)
            coordinator.step(f"{trial.variant}: pilot for the number of event loops")
            with coordinator.stopping_on_failure(server):
                context = self._start_server(data, slots, server, trial)
                with self._times.step("pilot"):
                    steps += coordinator.run_pilot(trial, server, context, steps)
            data.finish_group(server, servers[number:])
            coordinator.listen(progress.PilotEnded())
        coordinator.keep_workers(steps)

    def _determine_warmup(self, data: DataState, slots: Slots, trials: list[Trial]) -> None:
        """Run the warm-up trials and store the warm-up derived from them. Raises Stopped, Problem."""
        coordinator, experiment = self._coordinator, self._experiment
        entries = []
        servers = [self._server_of(trial) for trial in [*trials, *self._todo]]
        for number, trial in enumerate(trials, start=1):
            server = self._server_of(trial)
            length_s = warmup.length_s(experiment)
            sought = ["warm-up"] if warmup.has_warmup_trials(experiment) else []
            sought += ["rates"] if experiment.load.needs_probe else []
            coordinator.step(
                f"{trial.variant}: {length_s:.0f} s of load to determine the {' and the '.join(sought)}"
            )
            with coordinator.stopping_on_failure(server):
                description = self._start_server(data, slots, server, trial).description
                assert description is not None, "a server is described when it has started"
                with self._times.step(WARMUP):
                    entry, hook_failures = warmup.run_warmup_trial(
                        self._run,
                        experiment,
                        trial,
                        number,
                        server=server,
                        description=description,
                        engine=coordinator.engine,
                    )
            entries.append(entry)
            coordinator.keep(hook_findings(trial, hook_failures))
            data.finish_group(server, servers[number:])
            coordinator.listen(progress.WarmupTrialEnded())
        if entries and experiment.load.needs_probe:
            self._use_rates(warmup.peaks(entries))
        if entries and warmup.has_warmup_trials(experiment):
            document = warmup.to_document(experiment, entries)
            write_warmup_trials(self._run, document)
            coordinator.listen(progress.WarmupChosen(document["warmup_s"]))
            coordinator.keep(warmup.findings(experiment, document))
            coordinator.step(warmup.describe(experiment, document, len(self._todo)))

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

    def _server_of(self, trial: Trial) -> Server:
        return self._servers[trial.variant, trial.workload]

    def _test_servers(self, workspace: Workspace) -> None:
        """Start every variant once, on an empty data directory, and check it.

        Settings that a server rejects or adjusts are thus found before dbdyno spends an hour on the run.
        """
        self._require_servers(workspace)
        # Checks that need no data.
        codes = [check.code for check in checks.ALL if check.code not in checks.NEED_DATA]
        secrets = self._experiment.secrets()
        peers: dict[str, Description] = {}
        for variant in self._experiment.variants:
            began = time.monotonic()
            verb = "starting a test instance" if variant.server.is_private else "connecting"
            self._coordinator.step(f"{variant.name}: {verb} to verify settings")
            server = open_server(variant, workspace, None, secrets)
            with self._times.step("starting"):
                stops = self._coordinator.check_server(variant, server, peers, codes)
            if stops:
                raise Stopped(stops)
            self._coordinator.listen(progress.TestStartEnded(time.monotonic() - began))

    def _require_servers(self, workspace: Workspace) -> None:
        """Check the programs, images, URLs and passwords of all variants before the first server starts."""
        problems = []
        for variant in self._experiment.variants:
            try:
                open_server(variant, workspace, None).close()
            except ServerProblem as problem:
                problems.append(problem)
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise combine_problems(problems, f"{len(problems)} variants cannot be started")

    def _start_server(self, data: DataState, slots: Slots, server: Server, trial: Trial) -> Context:
        """Start a group's server, with its data, in its slot, and check it. Raises Stopped, Problem."""
        variant = self._experiment.variant(trial.variant)
        workload = self._experiment.workload_for(variant, trial.workload)
        key = (variant.name, workload.title)
        slot = slots.assign(self._slot(trial), server)
        data.prepare_group(server, workload, variant)
        with self._times.step("starting"):
            description = server.describe()
        context = Context(
            self._experiment,
            variant=variant,
            server=server,
            description=description,
            first_description=self._first_descriptions.get(key),
            slot=slot,
            peers={
                name: first for (name, on), first in self._first_descriptions.items() if on == workload.title
            },
            workload=workload,
        )
        self._first_descriptions.setdefault(key, description)
        self._coordinator.require(Moment.READY, context)
        return context

    def _run_group(self, data: DataState, slots: Slots, waiting_groups: deque[list[Trial]]) -> None:
        """Run the first waiting group: its server, its trials, its checks.

        After the last group of the plan (with `design.stop`, of a block) add the repeats. Raises Problem if
        no trial of the variant has ever completed.
        """
        began = time.monotonic()
        trials = waiting_groups.popleft()
        first, server = trials[0], self._server_of(trials[0])
        self._coordinator.step(f"block {first.block + 1}, {first.variant}: {data.describe()}")
        with self._coordinator.stopping_on_failure(server):
            context = self._start_server(data, slots, server, first)
            with self._times.step("connecting"):
                reasons = self._coordinator.run_trials(trials, server, context)
            self._require_results(trials, {first.variant: reasons})
            self._add_groups(first, waiting_groups)
        data.finish_group(server, [self._server_of(later[0]) for later in waiting_groups])
        self._coordinator.listen(progress.GroupEnded(tuple(trials), time.monotonic() - began))

    def _run_groups_in_slices(
        self, data: DataState, slots: Slots, waiting_groups: deque[list[Trial]]
    ) -> None:
        """Like `_run_group`, for the groups of one block and workload, whose servers run together."""
        began = time.monotonic()
        trials = waiting_groups.popleft()
        groups = _split_by_group(trials)
        contexts: dict[str, Context] = {}
        with contextlib.ExitStack() as stack:
            for first, *_ in groups:
                server = self._server_of(first)
                self._coordinator.step(f"block {first.block + 1}, {first.variant}: {data.describe()}")
                stack.enter_context(self._coordinator.stopping_on_failure(server))
                contexts[first.variant] = self._start_server(data, slots, server, first)
            with self._times.step("connecting"):
                reasons = run_in_slices(self._coordinator, trials, contexts)
            self._require_results(trials, reasons)
            self._add_groups(trials[0], waiting_groups)
        following = [self._server_of(trial) for later in waiting_groups for trial in later]
        for first, *_ in groups:
            server = self._server_of(first)
            # Every server of the next block follows at once, whatever its place in the order.
            data.finish_group(server, [*(later for later in following if later is server), *following])
        seconds = (time.monotonic() - began) / len(groups)
        for group in groups:
            self._coordinator.listen(progress.GroupEnded(tuple(group), seconds))

    def _require_results(self, trials: Sequence[Trial], reasons: Mapping[str, Sequence[str]]) -> None:
        """Raise Problem if no trial of a variant has ever completed; `reasons` are those of failed trials by
        variant.
        """
        for name, failures in reasons.items():
            if len(failures) < sum(trial.variant == name for trial in trials):
                self._variants_with_results.add(name)
        for name, failures in reasons.items():
            if name not in self._variants_with_results:
                raise Problem(
                    f"every trial of {name} has failed: {failures[0]}",
                    f"dbdyno ended the run. The engine's records are in {self._run.path}/trials",
                    ExitCode.NOT_COMPARABLE,
                )

    def _add_groups(self, first: Trial, waiting_groups: deque[list[Trial]]) -> None:
        """Add the repeats that are due after the trials that `first` belongs to; end the comparison if it is
        sure.
        """
        if self._stopping is not None:
            self._end_block(self._stopping, first, waiting_groups)
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
