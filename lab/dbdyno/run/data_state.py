"""Prepares the data of each group's server, according to `design.state` and the kind of server.

| state | before each group |
|---|---|
| restore | copies the snapshot, or runs the user's `restore` command |
| restart | stops the server cleanly and starts it with the data that the earlier trials left |
| reset | drops the tables and loads them again on the running server |
| preserve | does nothing; a server is stopped only before another one starts |

Private servers get their data from a snapshot (except for `reset`). On other servers the engine's `prepare`
loads missing tables, and dbdyno rejects existing tables that it has not created.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dbdyno.checks.tables import shapes
from dbdyno.experiment.combinations import UNDO_FIX, undo_problem
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload, Variant, Workload
from dbdyno.experiment.server import Location, may_be_one_database
from dbdyno.experiment.workload import ROW_BYTES
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress
from dbdyno.run.description import describe
from dbdyno.run.engine import Engine, Record
from dbdyno.run.loading import (
    DataKey,
    cleanup,
    created_tables,
    data_key,
    must_load,
    prepare,
    run_after,
)
from dbdyno.run.marked_tables import drop_command, drop_instruction
from dbdyno.run.progress import Listener
from dbdyno.run.times import StepTimes
from dbdyno.servers import open_server
from dbdyno.servers.admin.answers import shorten_statement
from dbdyno.servers.kinds.local import WORKING_BYTES
from dbdyno.servers.server import Server
from dbdyno.servers.snapshots.cache import Snapshots
from dbdyno.servers.snapshots.directories import Snapshot
from dbdyno.servers.workspace import Workspace
from dbdyno.text import compose

# Bytes of the data directory of a small server without tables.
SERVER_BYTES = 40_000_000


def _data_bytes(workload: Workload) -> int:
    return SERVER_BYTES + round(workload.rows * ROW_BYTES)


def has_snapshot(experiment: Experiment, variant: Variant) -> bool:
    """Whether dbdyno restores a variant's data from a snapshot."""
    return variant.server.is_private and experiment.design.state != "reset"


@dataclass(frozen=True)
class Space:
    """Bytes on disk for the servers that dbdyno starts: loaded data for the cache, if it does not have them
    yet, and one copy of the largest data for each server.
    """

    missing_bytes: int
    copies: int
    copy_bytes: int

    @property
    def bytes(self) -> int:
        """All of them, with what the servers write during the run; 0 without a server of dbdyno."""
        return self.missing_bytes + self.copies * self.copy_bytes + WORKING_BYTES if self.copies else 0


@dataclass(frozen=True)
class Loaded:
    """A server has loaded a workload's tables."""

    server: Server
    workload: Workload


@dataclass(frozen=True)
class Emptied:
    """The tables are dropped, because a group loads them again."""


@dataclass(frozen=True)
class Left:
    """No later group uses the tables of a server."""

    server: Server


@dataclass(frozen=True)
class Place:
    """The tables that this run has created in one place, a database: empty, or loaded by one or more servers.
    Several servers loaded tables in one place if the users' commands start them there in turn.
    """

    # Workloads whose tables are there.
    workloads: tuple[Workload, ...] = ()
    # Servers that dbdyno does not start, each with a workload whose tables it has loaded: the run must drop
    # them.
    owners: tuple[tuple[Server, Workload], ...] = ()

    def has(self, workload: Workload) -> bool:
        """Whether the workload's data are there."""
        return any(entry.data() == workload.data() for entry in self.workloads)

    def after(self, event: Loaded | Emptied | Left) -> tuple[Place, list[Workload]]:
        """The state after an event, and the workloads whose tables must be dropped then.

        A server drops its own tables, or all if one server has loaded them. The OLTP workloads share table
        names, so the one with the most tables drops those of all. `Emptied` leaves them to the caller.
        """
        match event:
            case Loaded(server, workload):
                new = (server, workload)
                is_new = not server.private and new not in self.owners
                owners = (*self.owners, new) if is_new else self.owners
                return Place((*self.workloads, workload), owners), []
            case Emptied():
                dropped: list[Workload] = [o for o in self.workloads if not isinstance(o, OltpWorkload)]
                return Place((), tuple(pair for pair in self.owners if pair[1] not in dropped)), dropped
            case Left(server):
                is_shared = len({id(holder) for holder, _ in self.owners}) > 1
                others = tuple(pair for pair in self.owners if is_shared and pair[0] is not server)
                on_server = [
                    workload for holder, workload in self.owners if holder is server or not is_shared
                ]
                bundled = [entry for entry in on_server if isinstance(entry, OltpWorkload)]
                widest: list[Workload] = [max(bundled, key=lambda entry: entry.tables)] if bundled else []
                return Place((), others), [
                    *widest,
                    *(o for o in on_server if not isinstance(o, OltpWorkload)),
                ]


class DataState:
    """Opens servers with their data, and restores the state in which each group begins."""

    def __init__(
        self,
        experiment: Experiment,
        workspace: Workspace,
        engine: Engine,
        listen: Listener,
        times: StepTimes | None = None,
        *,
        executes: bool = True,
    ) -> None:
        """If `executes` is false, no program is asked for its version, and all data count as not loaded."""
        self._times, self._executes = times or StepTimes(), executes
        self._experiment, self._workspace = experiment, workspace
        self._engine, self._listen = engine, listen
        self._state = experiment.design.state
        # Servers that have begun a group, each with the title of the workload whose tables it has.
        self._prepared: set[tuple[Server, str]] = set()
        # Those whose tables existed before the run, so that `data.after` is undone after each group.
        self._existing: set[tuple[Server, str]] = set()
        self._places: dict[Location, Place] = {}
        self._snapshots = Snapshots(workspace)

    def rows_missing(self, titles: Sequence[str]) -> int:
        """Rows to load before the first group: for the baseline, and for variants with data of their own."""
        return sum(workload.rows for workload, size in self._data(titles) if size is None)

    def require_space(self, titles: Sequence[str], copies: int) -> None:
        """Before anything is loaded: raise ServerProblem if there is no space for the missing snapshots and
        for `copies` of the largest data, one for each server that dbdyno starts.
        """
        if not copies:
            return
        space = self.space(titles, copies)
        rows = max(workload.rows for workload in self._workloads(titles))
        servers = "one server" if copies == 1 else f"{copies} servers"
        self._workspace.require_space(
            space.bytes,
            f"{rows:,} rows on {servers}"
            + (" and in the cache of loaded data" if space.missing_bytes else ""),
        )

    def space(self, titles: Sequence[str], copies: int) -> Space:
        """The space that the missing snapshots and `copies` of the largest data need."""
        data = self._data(titles)
        # The sizes of snapshots are exact.
        sizes = [size for _, size in data if size is not None]
        missing = sum(_data_bytes(workload) for workload, size in data if size is None)
        if missing or not sizes:
            sizes += map(_data_bytes, self._workloads(titles))
        return Space(missing, copies, max(sizes))

    def _workloads(self, titles: Sequence[str]) -> list[Workload]:
        """The workloads of the baseline, and those with data of their own."""
        baseline = self._experiment.variants[0]
        workloads = [self._experiment.workload_for(baseline, title) for title in titles]
        return workloads + [workload for workload, _ in self._data(titles)]

    def _data(self, titles: Sequence[str]) -> list[tuple[Workload, int | None]]:
        """The distinct data that dbdyno restores from snapshots, and the sizes of existing snapshots."""
        experiment, baseline = self._experiment, self._experiment.variants[0]
        data: list[tuple[Workload, int | None]] = []
        counted: list[DataKey] = []
        for variant, title in itertools.product(experiment.variants, titles):
            workload = experiment.workload_for(variant, title)
            key = data_key(workload, variant)
            is_own = key != data_key(experiment.workload_for(baseline, title), baseline)
            if (variant is baseline or is_own) and has_snapshot(experiment, variant) and key not in counted:
                counted.append(key)
                find = self._snapshots.find_bytes
                data.append((workload, find(experiment, workload, variant) if self._executes else None))
        return data

    def snapshot(self, workload: Workload, variant: Variant) -> Snapshot | None:
        """The snapshot of a workload's data, created if necessary; None if the variant uses none. Raises
        Problem.
        """
        if not has_snapshot(self._experiment, variant):
            return None

        def load(server: Server) -> None:
            prepare(self._experiment, workload, server, self._engine, self._listen)
            run_after(variant, server, self._listen)

        return self._snapshots.obtain(
            self._experiment, workload, variant, load, lambda text: self._listen(progress.Step(text))
        )

    def open(self, variant: Variant, snapshot: Snapshot | None) -> Server:
        """The variant's server, stopped. Raises ServerProblem."""
        return open_server(variant, self._workspace, snapshot, self._experiment.secrets())

    def server_key(self, workload: Workload, variant: Variant, snapshot: Snapshot | None) -> tuple[str, ...]:
        """The key of a server object; combinations of workload and variant with equal keys share one."""
        if not variant.server.is_private:
            return (variant.name,)
        # If every group restores its data, workloads on the same data can share one copy.
        title = "" if self._experiment.design.renews_data else workload.title
        return variant.name, snapshot.key if snapshot else "", title

    def describe(self) -> str:
        """What `prepare_group` does, as a short text."""
        return {
            "restore": compose("restoring the data, starting the server"),
            "restart": compose("restarting the server"),
            "reset": compose("loading the data again"),
            "preserve": compose("keeping the data"),
        }[self._state]

    def prepare_group(self, server: Server, workload: Workload, variant: Variant) -> None:
        """Start a server and restore the state in which its group begins. Raises Problem."""
        is_first = (server, workload.title) not in self._prepared
        if self._state == "restore" or (is_first and variant.server.is_private):
            with self._times.step("restoring"):
                server.restore()
        with self._times.step("starting"):
            server.start()
        if self._state == "reset":
            with self._times.step("restoring"):
                self._clean(server)
                self._load(server, workload, variant)
        elif is_first and not variant.server.is_private and self._state != "restore":
            with self._times.step("loading"):
                self._load(server, workload, variant)
        if variant.data.after and (server, workload.title) in self._existing:
            if problem := undo_problem(variant):
                raise Problem(
                    f"the tables of {workload.title} exist already, and {problem}", UNDO_FIX, ExitCode.USAGE
                )
            self._listen(
                progress.Step(f"{variant.name}: {'; '.join(map(shorten_statement, variant.data.after))}")
            )
            with self._times.step("restoring"):
                server.change_data(variant.data.after, variant.data.undo)
        self._prepared.add((server, workload.title))

    def finish_group(self, server: Server, following: Sequence[Server]) -> None:
        """Stop the server after a group, unless it also serves the next group and need not restart.

        `following` are the servers of all later groups. If none of them may use the data of `server`, and
        dbdyno stops it, its tables are dropped; those of servers that run always are dropped in the end.
        """
        if self._state in ("preserve", "reset") and following and following[0] is server:
            return
        is_stopped = server.private or self._has_start(server)
        if is_stopped and not any(_may_be_on_same_data(later, server) for later in following):
            self._drop_tables(server)
        with self._times.step("stopping"):
            server.stop(clean=self._state != "restore")

    def _load(self, server: Server, workload: Workload, variant: Variant) -> None:
        """Load missing tables with the engine's `prepare`, and run the variant's statements after it."""
        if not isinstance(workload, OltpWorkload):
            self._run_setup(server, workload, variant)
            return
        if not (is_loaded := self._place(server).has(workload)) and variant.data.after:
            tables = describe(self._experiment, workload, server.address().protocol).table_names()
            if shapes(server, tables):
                self._existing.add((server, workload.title))
        # The tables of each step that the engine reports.
        steps: dict[str, list[str]] = {}

        def loading(record: Record) -> None:
            steps.setdefault(record["data"]["step"], []).append(record["data"]["table"])

        prepare(self._experiment, workload, server, self._engine, self._listen, on_loading=loading)
        # Tables that already exist belong to an earlier run with keep = true.
        if "kept" not in steps:
            self._change(server, Loaded(server, workload))
        if not is_loaded and (server, workload.title) not in self._existing:
            run_after(variant, server, self._listen)
        if "created" in steps:
            server.finish_background_work(steps["created"])

    def _place(self, server: Server) -> Place:
        return self._places.get(server.address().location, Place())

    def _change(self, server: Server, event: Loaded | Emptied | Left) -> list[Workload]:
        """Change the state of a server's place; return the workloads whose tables must be dropped."""
        self._places[server.address().location], to_drop = self._place(server).after(event)
        return to_drop

    def _run_setup(self, server: Server, workload: SqlWorkload | ScriptWorkload, variant: Variant) -> None:
        """Run the setup of a user-written workload, unless this run has already created its tables."""
        if self._place(server).has(workload):
            return
        if not must_load(workload, server):
            if workload.has_data and self._state == "reset":
                raise Problem(
                    f"the tables of {workload.title} exist already; dbdyno drops only tables that it has "
                    "created",
                    'Write state = "preserve" to use them as they are, name another database, or '
                    + (drop_instruction(server) or "drop them yourself"),
                    ExitCode.USAGE,
                )
            self._existing.add((server, workload.title))
            return
        prepare(self._experiment, workload, server, self._engine, self._listen)
        self._change(server, Loaded(server, workload))
        run_after(variant, server, self._listen)
        server.finish_background_work(list(created_tables(workload, server).values()))

    def _clean(self, server: Server) -> None:
        """Drop the tables of all workloads, because the OLTP workloads share table names."""
        workloads = self._experiment.distinct_workloads()
        bundled = [entry for entry in workloads if isinstance(entry, OltpWorkload)]
        widest: list[Workload] = [max(bundled, key=lambda entry: entry.tables)] if bundled else []
        for dropped in [*widest, *self._change(server, Emptied())]:
            why = cleanup(self._experiment, dropped, server, self._engine)
            if why:
                raise Problem(f"the tables of {dropped.title} could not be dropped: {why}", exit_code=4)

    @contextmanager
    def cleaning_up(self) -> Iterator[None]:
        """At the end of the context, drop the tables that this run has created on remote servers."""
        try:
            yield
        finally:
            for place in list(self._places.values()):
                for server in dict.fromkeys(holder for holder, _ in place.owners):
                    self._drop_tables_of_stopped(server)

    def _drop_tables_of_stopped(self, server: Server) -> None:
        if not self._has_start(server):
            self._drop_tables(server)
            return
        try:
            server.start()
            self._drop_tables(server)
            server.stop(clean=True)
        except Problem as problem:
            self._listen(progress.ProblemOccurred(problem.with_fix))

    def _has_start(self, server: Server) -> bool:
        """Whether the user's command starts the server."""
        return bool(self._experiment.variant(server.variant).server.start)

    def _drop_tables(self, server: Server) -> None:
        """Drop the tables of a running server that this run has created."""
        for workload in self._change(server, Left(server)):
            if not self._experiment.loading.keep:
                self._drop(server, workload)

    def _drop(self, server: Server, workload: Workload) -> None:
        try:
            why = cleanup(self._experiment, workload, server, self._engine)
        except Problem as problem:
            why = problem.text
        if why:
            where = server.address().database
            text = f"the tables in {where} could not be dropped: {why}; later, use {drop_command(server)}"
            self._listen(progress.ProblemOccurred(text))


def _may_be_on_same_data(first: Server, second: Server) -> bool:
    """Whether two servers are one, or two variants of a remote server may use the same database."""
    if first is second:
        return True
    if first.private or second.private:
        return False
    return may_be_one_database(first.address().location, second.address().location)
