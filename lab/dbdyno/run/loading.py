"""Data for an experiment: the engine's `prepare` on a server, and the snapshot that is taken of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.checks.p02_data import shapes
from dbdyno.experiment.model import Experiment, ScriptWorkload, SqlWorkload, Variant, Workload
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress
from dbdyno.run.engine import Engine, EngineResult, Record
from dbdyno.run.plan import plan
from dbdyno.servers.server import Server, ServerProblem
from dbdyno.servers.snapshots.snapshot import Snapshot
from dbdyno.servers.snapshots.cache import Snapshots
from dbdyno.servers.workspace import Workspace

Tell = Callable[[progress.Progress], None]


def prepare(
    experiment: Experiment,
    workload: Workload,
    server: Server,
    engine: Engine,
    tell: Tell,
    *,
    on_loading: Callable[[Record], None] = lambda _record: None,
) -> EngineResult:
    """Load the tables of a workload on a running server, where they are missing. Raises Problem.

    A server that we started takes LOAD DATA LOCAL meanwhile; one that is only reached is loaded by what it
    allows.
    """

    def loading(record: Record) -> None:
        if record["type"] == "loading":
            tell(progress.Loading(record["data"]["rows"], record["data"]["rows_planned"]))
            on_loading(record)

    address = server.address()
    asked = plan(experiment, workload, address.target(experiment.load.transport))
    with _local_infile(server):
        result = engine.run("prepare", asked, address.environment(), loading)
    if not result.done:
        raise Problem(
            f"loading the tables of {workload.title} failed: {result.failure()}",
            exit_code=result.exit_code if result.exit_code > 0 else ExitCode.NOT_COMPARABLE,
        )
    return result


def must_load(workload: SqlWorkload, server: Server) -> bool:
    """Whether the set-up of a workload in SQL of the user's own is to be sent to a server that is there.

    Not where there is none, nor where all its tables are there already: those are used, and stay. Raises
    Problem where some of them are, since nobody could tell what set-up and clean-up would then do to them.
    """
    if not workload.loads:
        return False
    address = server.address()
    made = workload.made(address.protocol)
    there = shapes(server, made)
    if there and len(there) < len(made):
        raise Problem(
            f"of the tables of {workload.title} {', '.join(there)} in {address.database} was there before, "
            f"and {', '.join(name for name in made if name not in there)} was not: dbdyno drops nothing "
            "that it has not made",
            "Drop them yourself, or name another database",
            ExitCode.USAGE,
        )
    return not there


def require_empty(workload: ScriptWorkload, server: Server) -> None:
    """Raise Problem where the database has tables: nobody could tell what a script's `prepare` and
    `cleanup` would then do to them.
    """
    if there := tables_there(server):
        database = server.address().database
        raise Problem(
            f"{database} holds {len(there)} tables ({', '.join(there[:5])}{', …' if there[5:] else ''}), and "
            f"{Path(workload.script).name} may change or drop them: dbdyno drops nothing that it has not "
            "made",
            "Name an empty database, or write prepare = false to run over what is there",
            ExitCode.USAGE,
        )


def tables_there(server: Server) -> list[str]:
    """The tables in the load's database."""
    address = server.address()
    name = address.database.replace("'", "''")
    schema = "current_schema()" if address.protocol == "postgresql" else f"'{name}'"
    found = server.query(f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}")
    return [str(table) for (table,) in found]


@contextmanager
def _local_infile(server: Server) -> Iterator[None]:
    """Allow LOAD DATA LOCAL on a server that we started, and take it back whatever happens."""
    before = server.variables().get("local_infile", "ON") if server.private else "ON"
    if before == "ON":
        yield
        return
    server.query("SET GLOBAL local_infile = ON")
    try:
        yield
    finally:
        # A server that has died meanwhile is told by what failed, and holds nothing any more.
        with suppress(ServerProblem):
            server.query(f"SET GLOBAL local_infile = {before}")


def load_snapshot(
    experiment: Experiment,
    workload: Workload,
    variant: Variant,
    workspace: Workspace,
    *,
    engine: Engine,
    tell: Tell,
    say: Callable[[str], None],
) -> Snapshot:
    """The data of a workload for a variant: from the cache, or loaded now. Raises Problem.

    `tell` hears of rows, `say` of steps.
    """

    def load(server: Server) -> None:
        prepare(experiment, workload, server, engine, tell)

    return Snapshots(workspace).obtain(experiment, workload, variant, load, say)
