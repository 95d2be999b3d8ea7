"""A whole comparison: checks, data, and every group of the schedule, each on a server of its own.

::

    DESIGN checks -> every variant started once, empty, and checked (rehearsal) -> data loaded once
    -> for each group: restore, start, READY checks, trials, AFTER_GROUP checks, stop

It prints nothing: what happens goes to `tell` as progress values, and into the run's folder. A stop among the
findings ends it, since trials that cannot be compared are only heat.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment import repeats
from dbdyno.experiment.model import Experiment, Workload
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress, warmup
from dbdyno.run.affinity import require_cpus
from dbdyno.run.ending import beside, closing
from dbdyno.run.engine import Engine, Record
from dbdyno.run.estimate import Estimate
from dbdyno.run.holding import Holding
from dbdyno.run.loading import Tell
from dbdyno.run.repeating import may_repeat, plan_repeats
from dbdyno.run.trial import death, give_up, run_trial
from dbdyno.servers import open_server
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import Description, Server, ServerProblem, combine_problems
from dbdyno.servers.snapshots.slots import Slots
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run
from dbdyno.store.rehearsal import rehearsed_warmup_s, write_rehearsal


@dataclass(frozen=True)
class Conclusion:
    """How a comparison ended."""

    # Findings that forbid a comparison; empty when all went its way.
    stops: tuple[Finding, ...]
    done: int
    failed: int


class _Stopped(Exception):  # noqa: N818 — not an error: the checks said stop.
    def __init__(self, stops: list[Finding]) -> None:
        super().__init__()
        self.stops = tuple(stops)


def compare(experiment: Experiment, run: Run, tell: Tell, engine: Engine | None = None) -> Conclusion:
    """Run every trial of the schedule that `run` does not hold yet.

    Raises Problem (a server, the engine, the store, a CPU that is not there) and lets KeyboardInterrupt
    through; either way the trials that ended are kept, nothing keeps running, and the run can be continued.
    """
    require_cpus(experiment)
    conductor = _Conductor(experiment, run, engine or Engine(), tell)
    try:
        conductor.conduct()
        stops: tuple[Finding, ...] = ()
    except _Stopped as stopped:
        stops = stopped.stops
    trials = run.trials()
    done = sum(trial.done for trial in trials)
    return Conclusion(stops, done, len(trials) - done)


def hook_findings(trial: Trial, complaints: Iterable[str]) -> list[Finding]:
    """What went wrong with the user's own commands around a trial, or around a long trial."""
    where = "the trial's folder" if trial.index >= 0 else "the folder rehearsal"
    return [
        Finding(
            "R04",
            "warn",
            f"{text}; see the hook's words in {where}.",
            {"trial": trial.index},
            trial.variant,
        )
        for text in complaints
    ]


def _by_group(trials: list[Trial]) -> list[list[Trial]]:
    return [list(group) for _, group in itertools.groupby(trials, key=lambda trial: trial.group)]


class _Conductor:
    """One comparison in progress. A server is opened once per variant and data, started once a group."""

    def __init__(self, experiment: Experiment, run: Run, engine: Engine, tell: Tell) -> None:
        self._experiment, self._run, self._engine, self._tell = experiment, run, engine, tell
        kept = {trial.index for trial in run.trials() if trial.is_result}
        planned = repeats.planned(experiment, run.schedule())
        self._may_repeat = may_repeat(experiment, planned)
        self._kept = len(kept)
        self._estimate = Estimate(experiment, [trial for trial in planned if trial.index not in kept])
        if not self._estimate.todo:
            # An earlier attempt ended between its last trial and this.
            self._plan_repeats()
        self._servers: dict[tuple[str, str], Server] = {}
        # What each server said at its first start with data.
        self._first: dict[tuple[str, str], Description] = {}
        self._hello: dict[str, Record] = {}
        # Variants that have given a result.
        self._fruitful: set[str] = {trial.meta["variant"] for trial in run.trials() if trial.done}

    def conduct(self) -> None:
        """Everything, in order. Raises _Stopped, Problem."""
        experiment, todo = self._experiment, self._estimate.todo
        self._check(Moment.DESIGN, Context(experiment))
        with contextlib.ExitStack() as stack:
            workspace = stack.enter_context(contextlib.closing(Workspace.open(self._run.path.parent.parent)))
            self._keep(
                [
                    Finding("P19", "warn", warning, {"filesystem": workspace.filesystem})
                    for warning in workspace.warnings
                ]
            )
            # A block that is repeated has every workload.
            wanted = [
                workload
                for workload in experiment.workloads
                if any(self._may_repeat or trial.workload == workload.title for trial in todo)
            ]
            holding = Holding(experiment, workspace, self._engine, self._tell, self._step)
            self._estimate.rows = holding.rows_missing(wanted)
            self._estimate.group_rows = max((w.rows for w in wanted), default=0)
            self._estimate.rehearsals = len(experiment.variants) if todo else 0
            long_trials = self._plan_long_trials(wanted)
            self._begin()
            if todo:
                self._rehearse(workspace)
            slots = stack.enter_context(contextlib.closing(self._slots(workspace)))
            opened: dict[tuple[str, ...], Server] = {}
            for workload, variant in itertools.product(wanted, experiment.variants):
                snapshot = holding.snapshot(workload, variant)
                if snapshot is not None:
                    stack.enter_context(contextlib.closing(snapshot))
                key = holding.place(workload, variant, snapshot)
                if key not in opened:
                    opened[key] = stack.enter_context(closing(holding.open(variant, snapshot), self._tell))
                self._servers[variant.name, workload.title] = opened[key]
            self._estimate.loaded()
            with holding.finishing():
                self._find_warmup(holding, slots, long_trials)
                self._groups(holding, slots, todo)

    def _slots(self, workspace: Workspace) -> Slots:
        """Equal places for all servers that dbdyno starts and that keep data at the same time."""
        started = [variant for variant in self._experiment.variants if variant.server.started]
        holders = 1 if self._experiment.design.renews_data else len(self._experiment.workloads)
        count = len(self._experiment.variants) * holders if started else 0
        ports = (read_declaration(variant).port for variant in started)
        return Slots(workspace, count, [port for port in ports if port is not None])

    def _slot(self, trial: Trial) -> int:
        """The place of a trial's server. Where data are kept, every workload has servers of its own."""
        if self._experiment.design.renews_data:
            return trial.slot
        titles = [workload.title for workload in self._experiment.workloads]
        return trial.slot + len(self._experiment.variants) * titles.index(trial.workload)

    def _groups(self, holding: Holding, slots: Slots, todo: list[Trial]) -> None:
        waiting = deque(_by_group(todo))
        while waiting:
            self._group(holding, slots, waiting)

    def _plan_long_trials(self, workloads: list[Workload]) -> list[Trial]:
        """The trials that find the warm-up; none where an earlier attempt has chosen it, or has trials."""
        self._estimate.warmup_s = rehearsed_warmup_s(self._run)
        chosen = self._estimate.warmup_s is not None or bool(self._run.trials())
        if chosen or not self._estimate.todo or not warmup.is_rehearsed(self._experiment):
            return []
        trials = warmup.long_trials(self._experiment, workloads)
        self._estimate.long_trials = len(trials)
        self._estimate.long_trial_s = warmup.length_s(self._experiment)
        return trials

    def _find_warmup(self, holding: Holding, slots: Slots, trials: list[Trial]) -> None:
        """Run the long trials and write down the warm-up that they choose. Raises _Stopped, Problem."""
        entries = []
        servers = [self._server_of(trial) for trial in [*trials, *self._estimate.todo]]
        for number, trial in enumerate(trials, start=1):
            server = self._server_of(trial)
            self._step(f"{trial.variant}: {self._estimate.long_trial_s:.0f} s of load to find the warm-up")
            try:
                description = self._ready(holding, slots, server, trial).description
                assert description is not None, "the server was described when it was started"
                entry, complaints = warmup.run_long_trial(
                    self._run,
                    self._experiment,
                    trial,
                    number,
                    server=server,
                    description=description,
                    engine=self._engine,
                )
            except BaseException:
                with beside(self._tell):
                    server.stop(clean=False)
                raise
            entries.append(entry)
            self._keep(hook_findings(trial, complaints))
            holding.leave(server, servers[number:])
            self._estimate.long_trial_ended()
        if entries:
            rehearsal = warmup.conclude(self._experiment, entries)
            write_rehearsal(self._run, rehearsal)
            self._estimate.warmup_s = rehearsal["warmup_s"]
            self._keep(warmup.findings(self._experiment, rehearsal))
            self._step(warmup.describe(self._experiment, rehearsal, len(self._estimate.todo)))

    def _plan_repeats(self) -> list[Trial]:
        """The trials of blocks that are to be repeated, now part of the run; none the second time."""
        found = plan_repeats(self._experiment, self._run)
        if found is None:
            return []
        self._estimate.extend(found.trials)
        self._tell(progress.Extended(found.text, len(found.trials), self._estimate.left_s()))
        return found.trials

    def _server_of(self, trial: Trial) -> Server:
        return self._servers[trial.variant, trial.workload]

    def _begin(self) -> None:
        todo = self._estimate.todo
        groups = len({trial.group for trial in todo})
        self._tell(progress.Began(self._run.path, len(todo), self._kept, groups, self._estimate.left_s()))

    def _rehearse(self, workspace: Workspace) -> None:
        """Start every variant once, on an empty data directory, and check it.

        A setting that a server refuses or adjusts is told before an hour of loading and measuring, not after.
        """
        self._require_servers(workspace)
        # Data are checked when there are some.
        codes = [check.code for check in checks.ALL if check.code not in checks.OF_DATA]
        peers: dict[str, Description] = {}
        secrets = self._experiment.secrets()
        for variant in self._experiment.variants:
            began = time.monotonic()
            self._step(f"{variant.name}: trying the server's settings")
            with closing(open_server(variant, workspace, None, secrets), self._tell) as server:
                if variant.server.started:
                    server.restore()
                server.start()
                description = server.describe()
                context = Context(
                    self._experiment,
                    variant=variant,
                    server=server,
                    description=description,
                    peers=dict(peers),
                )
                self._check(Moment.READY, context, codes)
            peers[variant.name] = description
            self._estimate.rehearsed(time.monotonic() - began)

    def _require_servers(self, workspace: Workspace) -> None:
        """Programs, images, URLs, passwords: what any variant lacks is told before the first is started."""
        problems = []
        for variant in self._experiment.variants:
            try:
                open_server(variant, workspace, None).close()
            except ServerProblem as problem:
                problems.append(problem)
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise combine_problems(problems, f"{len(problems)} variants cannot be served")

    def _step(self, text: str) -> None:
        self._tell(progress.Step(text, self._estimate.left_s()))

    def _ready(self, holding: Holding, slots: Slots, server: Server, trial: Trial) -> Context:
        """Bring a group's server up with its data, in the group's place, and check it. Raises _Stopped,
        Problem.
        """
        variant, workload = self._experiment.variant(trial.variant), trial.workload
        key = (variant.name, workload)
        place = slots.assign(self._slot(trial), server)
        holding.ready(server, self._experiment.workload(workload), variant)
        description = server.describe()
        context = Context(
            self._experiment,
            variant=variant,
            server=server,
            description=description,
            first=self._first.get(key),
            place=place,
            peers={name: first for (name, of), first in self._first.items() if of == workload},
            hello=self._hello.get(workload),
            workload=self._experiment.workload(workload),
        )
        self._first.setdefault(key, description)
        self._check(Moment.READY, context)
        return context

    def _group(self, holding: Holding, slots: Slots, waiting: deque[list[Trial]]) -> None:
        """The first of the groups that wait: its server, its trials, its checks. The last one of the plan is
        followed by the repeats.
        """
        began = time.monotonic()
        trials = waiting.popleft()
        server = self._server_of(trials[0])
        self._step(f"block {trials[0].block + 1}, {trials[0].variant}: {holding.doing()}")
        try:
            context = self._ready(holding, slots, server, trials[0])
            self._trials(trials, server, context)
            if not waiting:
                waiting.extend(_by_group(self._plan_repeats()))
        except BaseException:
            with beside(self._tell):
                server.stop(clean=False)
            raise
        holding.leave(server, [self._server_of(later[0]) for later in waiting])
        self._estimate.group_ended(time.monotonic() - began, len(trials))

    def _trials(self, trials: list[Trial], server: Server, context: Context) -> None:
        """A group's trials and its last checks. Raises Problem where the variant has never given a result."""
        dead, reasons = "", []
        for trial in trials:
            self._tell(progress.TrialBegan(trial, self._estimate.trial_s, self._estimate.left_s()))
            reason, rate = self._trial(trial, server, context, dead)
            self._estimate.trial_ended(trial)
            self._tell(progress.TrialEnded(trial, not reason, reason, rate, self._estimate.left_s()))
            if reason:
                reasons.append(reason)
                dead = dead or death(server)
            else:
                self._fruitful.add(trial.variant)
        if not dead:
            self._check(Moment.AFTER_GROUP, replace(context, hello=self._hello.get(trials[0].workload)))
        if len(reasons) == len(trials) and trials[0].variant not in self._fruitful:
            raise Problem(
                f"every trial of {trials[0].variant} has failed: {reasons[0]}",
                f"The run was ended. What the engine said is in {self._run.path}/trials",
                ExitCode.NOT_COMPARABLE,
            )

    def _trial(self, trial: Trial, server: Server, context: Context, dead: str) -> tuple[str, float | None]:
        """Run a trial, or write it down as failed where the server is dead: why it failed, and its rate."""
        if dead:
            give_up(self._run, self._experiment, trial, server, dead)
            return dead, None
        assert context.description is not None, "the server was described when it was started"
        outcome = run_trial(
            self._run,
            self._experiment,
            trial,
            server=server,
            description=context.description,
            engine=self._engine,
        )
        self._keep(hook_findings(trial, outcome.complaints))
        if outcome.hello:
            self._hello[trial.workload] = outcome.hello
        return str(outcome.stored.meta.get("reason", "")), outcome.events_per_s()

    def _check(self, moment: Moment, context: Context, codes: Iterable[str] | None = None) -> None:
        """Run the checks of a moment, keep and tell what is new. Raises _Stopped."""
        findings = checks.run(moment, context, codes)
        self._keep(findings)
        stops = checks.stops(findings)
        if stops:
            raise _Stopped(stops)

    def _keep(self, findings: list[Finding]) -> None:
        """Write findings down, and tell those that are new."""
        if new := self._run.add_findings(findings):
            self._tell(progress.Found(tuple(new)))
