"""The servers of a comparison: verifies their settings before anything is loaded, opens them with their data,
and starts each for its groups in its slot.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import TypeVar

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.checks.data import read_existing_tables
from dbdyno.checks.tables import ExistingTables
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress
from dbdyno.run.coordinator import Coordinator, Stopped
from dbdyno.run.data_state import DataState
from dbdyno.run.failures import StartFailure
from dbdyno.servers import open_server
from dbdyno.servers.products.declaration import read_declaration
from dbdyno.servers.server import Description, MachineProblem, Server, ServerProblem, combine_problems
from dbdyno.servers.snapshots.slots import Slots
from dbdyno.servers.workspace import Workspace
from dbdyno.store import StoreProblem
from dbdyno.text import compose

Result = TypeVar("Result")


def verify_settings(coordinator: Coordinator, workspace: Workspace) -> None:
    """Start every variant once, on an empty data directory, and check it.

    Settings that a server rejects or adjusts are thus found before dbdyno spends an hour on the run. Raises
    Stopped, ServerProblem.
    """
    experiment = coordinator.experiment
    require_servers(experiment, workspace)
    codes = checks.codes_of(Moment.READY, needs_data=False)
    secrets = experiment.secrets()
    peers: dict[str, Description] = {}
    tables: dict[str, ExistingTables] = {}
    for variant in experiment.variants:
        began = time.monotonic()
        coordinator.step(
            compose("{variant}: starting a test instance to verify settings", variant=variant.name)
            if variant.server.is_private
            else compose("{variant}: connecting to verify settings", variant=variant.name)
        )
        server = open_server(variant, workspace, None, secrets)
        with coordinator.times.step("starting"):
            stops = check_server(coordinator, variant, server, peers, tables, codes=codes)
        if stops:
            raise Stopped(stops)
        coordinator.listen(progress.TestStartEnded(time.monotonic() - began))


def require_servers(experiment: Experiment, workspace: Workspace) -> None:
    """Check the programs, images, URLs and passwords of all variants before the first server starts. Raises
    ServerProblem with all errors.
    """
    problems = []
    for variant in experiment.variants:
        try:
            open_server(variant, workspace, None).close()
        except ServerProblem as problem:
            problems.append(problem)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise combine_problems(problems, f"{len(problems)} variants cannot be started")


def check_server(
    coordinator: Coordinator,
    variant: Variant,
    server: Server,
    peers: dict[str, Description],
    tables: dict[str, ExistingTables],
    *,
    codes: Iterable[str],
    workload: Workload | None = None,
) -> list[Finding]:
    """Start a server once, check it and close it. Returns the findings that stop the experiment.

    `peers` are the descriptions of the variants checked so far, and `tables` their existing tables; those of
    this variant are added.
    """
    with _closing(coordinator, server):
        if variant.server.is_private:
            server.restore()
        server.start()
        for note in server.notes:
            coordinator.step(f"{variant.name}: {note}")
        description = server.describe()
        context = Context(
            coordinator.experiment,
            variant=variant,
            server=server,
            description=description,
            peers=dict(peers),
            workload=workload,
        )
        # The user's command restores them only before a group.
        if not (variant.server.restore and coordinator.experiment.design.state == "restore"):
            context = _with_tables(coordinator, context, tables)
        stops = coordinator.check(Moment.READY, context, codes)
    peers.setdefault(variant.name, description)
    return stops


def _with_tables(coordinator: Coordinator, context: Context, tables: dict[str, ExistingTables]) -> Context:
    """The context with the existing tables of its variant and, from `tables`, of others. Reads them once for
    each variant, and adds them to `tables`.
    """
    variant, server = context.variant, context.server
    if variant is None or server is None or variant.name in tables:
        return context
    with coordinator.times.step("checking"):
        existing = read_existing_tables(coordinator.experiment, variant, server)
    context = replace(context, existing_tables=existing, peer_tables=dict(tables))
    if existing is not None:
        tables[variant.name] = existing
    return context


@contextmanager
def _closing(coordinator: Coordinator, server: Server) -> Iterator[Server]:
    """Close the server at the end. Raises the error of a failed close, unless another exception is being
    raised.
    """
    try:
        yield server
    except BaseException:
        with _announcing_problems(coordinator):
            server.close()
        raise
    server.close()


@contextmanager
def _announcing_problems(coordinator: Coordinator) -> Iterator[None]:
    """Announce a Problem instead of raising it, because the caller raises a more important one."""
    try:
        yield
    except Problem as problem:
        coordinator.listen(progress.ProblemOccurred(problem.with_fix))


def make_slots(experiment: Experiment, workspace: Workspace) -> Slots:
    """Slots for all private servers that keep data at the same time."""
    ports = (read_declaration(variant).port for variant in experiment.variants if variant.server.is_private)
    return Slots(workspace, count_slots(experiment), [port for port in ports if port is not None])


def count_slots(experiment: Experiment) -> int:
    """The number of slots; each has a copy of the data."""
    if not any(variant.server.is_private for variant in experiment.variants):
        return 0
    copies = 1 if experiment.design.renews_data else len(experiment.workloads)
    return len(experiment.variants) * copies


@contextmanager
def open_servers(
    coordinator: Coordinator, data: DataState, workspace: Workspace, titles: Sequence[str]
) -> Iterator[GroupServers]:
    """The servers of all variants for the workloads with these titles, whose data are loaded. They are closed
    at the end of the context. Raises Problem.
    """
    experiment = coordinator.experiment
    with ExitStack() as stack:
        slots = stack.enter_context(closing(make_slots(experiment, workspace)))
        opened: dict[tuple[str, ...], Server] = {}
        by_name: dict[tuple[str, str], Server] = {}
        for title, variant in itertools.product(titles, experiment.variants):
            workload = experiment.workload_for(variant, title)
            with coordinator.times.step("loading"):
                snapshot = data.snapshot(workload, variant)
            if snapshot is not None:
                stack.enter_context(closing(snapshot))
            key = data.server_key(workload, variant, snapshot)
            if key not in opened:
                opened[key] = stack.enter_context(_closing(coordinator, data.open(variant, snapshot)))
            by_name[variant.name, title] = opened[key]
        yield GroupServers(coordinator, data, slots, by_name)


class GroupServers:
    """The servers of a comparison. Each variant has one server object per data set; groups start it."""

    def __init__(
        self,
        coordinator: Coordinator,
        data: DataState,
        slots: Slots,
        servers: Mapping[tuple[str, str], Server],
    ) -> None:
        """`servers` are those of each variant and workload."""
        self._coordinator, self._experiment = coordinator, coordinator.experiment
        self._data, self._slots, self._servers = data, slots, servers
        # Descriptions of the servers at their first start with data, by variant and workload.
        self._first_descriptions: dict[tuple[str, str], Description] = {}
        # The existing tables of the variants at the first start of their servers.
        self._tables: dict[str, ExistingTables] = {}

    def of(self, trial: Trial) -> Server:
        """The server of a trial."""
        return self._servers[trial.variant, trial.workload]

    def describe(self) -> str:
        """What `start` does, as a short text."""
        return self._data.describe()

    def start(self, trial: Trial) -> Context | StartFailure:
        """Start the server of a trial's group, with its data, in its slot, and check it.

        A server that does not get ready is stopped again. Raises Stopped, StoreProblem, and at the first
        start of a variant Problem for a mistake of the user: one of USAGE, or one with a server that answers.
        """
        server = self.of(trial)
        try:
            return self._start(server, trial)
        except StoreProblem:
            raise
        except Problem as problem:
            failure = StartFailure.of(problem, server)
            is_first = (trial.variant, trial.workload) not in self._first_descriptions
            is_around = isinstance(problem, MachineProblem)
            is_reported = failure.failed_by == "harness" and not is_around
            if is_first and (is_reported or problem.exit_code == ExitCode.USAGE):
                raise
            with self._tolerating_failed(server):
                server.stop(clean=False)
            return failure

    @contextmanager
    def started(self, trial: Trial) -> Iterator[Context | StartFailure]:
        """Like `start`, and stop the server if the context raises an exception."""
        try:
            yield self.start(trial)
        except BaseException:
            with _announcing_problems(self._coordinator):
                self.of(trial).stop(clean=False)
            raise

    def finish(self, server: Server, following: Sequence[Server], *, is_failed: bool) -> None:
        """End a group; `following` are the servers of all later ones. The server of a failed group may be
        unable to stop cleanly, which does not end the comparison.
        """
        with self._tolerating_failed(server) if is_failed else nullcontext():
            self._data.finish_group(server, following)

    def _tolerating_failed(self, server: Server) -> AbstractContextManager[None]:
        """Announce a Problem when a server is stopped that has failed, so that the experiment goes on.

        A server that keeps the variables of one variant (`set_global`) would change the results of others, so
        its Problem is raised.
        """
        is_changed = self._experiment.variant(server.variant).server.set_global
        return nullcontext() if is_changed else _announcing_problems(self._coordinator)

    def run_first(
        self,
        trials: Sequence[Trial],
        later: Sequence[Trial],
        attempt: Callable[[Trial, int], Result],
        is_failed: Callable[[Result], bool],
        ended: progress.Progress,
    ) -> Iterator[Result]:
        """Run trials before the first block, each its own group; `later` are the trials after them.

        Yields the result of `attempt` for each trial and its number, the second result if the first attempt
        failed. When the caller goes on, the group ends, and `ended` is announced.
        """
        in_order = [self.of(trial) for trial in (*trials, *later)]
        for number, trial in enumerate(trials, start=1):
            result = attempt(trial, number)
            if is_failed(result):
                result = attempt(trial, number)
            yield result
            self.finish(self.of(trial), in_order[number:], is_failed=is_failed(result))
            self._coordinator.listen(ended)

    def check_workloads(self, trials: Sequence[Trial], context: Context) -> None:
        """Check a group's workloads that the server has not yet had, other than that of `context`, which was
        checked at the start. Raises Stopped.
        """
        assert context.variant is not None, "a group has a variant"
        assert context.description is not None, "a server is described when it has started"
        for title in dict.fromkeys(trial.workload for trial in trials):
            if (context.variant.name, title) not in self._first_descriptions:
                workload = self._experiment.workload_for(context.variant, title)
                self._require_ready(replace(context, workload=workload), title, context.description)

    def _start(self, server: Server, trial: Trial) -> Context:
        variant = self._experiment.variant(trial.variant)
        workload = self._experiment.workload_for(variant, trial.workload)
        with self._coordinator.times.step("restoring"):
            # Removes the data of the group before.
            slot = self._slots.assign(self._slot(trial), server)
        self._data.prepare_group(server, workload, variant)
        with self._coordinator.times.step("starting"):
            description = server.describe()
        context = Context(
            self._experiment,
            variant=variant,
            server=server,
            description=description,
            slot=slot,
            workload=workload,
        )
        return self._require_ready(context, workload.title, description)

    def _require_ready(self, context: Context, title: str, description: Description) -> Context:
        """The context with the first descriptions of the servers with this workload, after its checks."""
        first, key = self._first_descriptions, (context.subject, title)
        peers = {name: entry for (name, on), entry in first.items() if on == title}
        context = replace(context, first_description=first.get(key), peers=peers)
        if context.first_description is None:
            context = _with_tables(self._coordinator, context, self._tables)
        first.setdefault(key, description)
        self._coordinator.require(Moment.READY, context)
        return context

    def _slot(self, trial: Trial) -> int:
        """The slot of a trial's server. If data are kept between groups, each workload has its own
        servers.
        """
        if self._experiment.design.renews_data:
            return trial.slot
        titles = [workload.title for workload in self._experiment.workloads]
        return trial.slot + len(self._experiment.variants) * titles.index(trial.workload)
