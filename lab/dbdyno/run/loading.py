"""Loads and drops tables with the engine's `prepare` and `cleanup`, and applies the rules for existing
tables.

Some variables of a server are different while tables are loaded. LOAD DATA LOCAL needs `local_infile`. Tables
without a primary key, such as the histories of TPC-B and TPC-C, need servers that do not require one:
`sql_require_primary_key` (MySQL) and `innodb_force_primary_key` (MariaDB). Both variables decide only whether
a table may be created, so without them the load is the same as on every other server; a key that the tables
get only there would be work that other servers do not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.checks.tables import shapes
from dbdyno.experiment.dialect import MYSQL
from dbdyno.experiment.model import (
    Experiment,
    OltpWorkload,
    ScriptWorkload,
    SqlWorkload,
    Variant,
    Workload,
)
from dbdyno.experiment.sql_text import changes_place, tables_without_key
from dbdyno.problem import ExitCode, Problem
from dbdyno.result_text import counted
from dbdyno.run import progress
from dbdyno.run.engine import Engine, EngineResult, Record
from dbdyno.run.failures import unreachable_reason
from dbdyno.run.marked_tables import drop_instruction, has_comments, mark
from dbdyno.run.plan import plan
from dbdyno.run.progress import Listener
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.answers import shorten_statement
from dbdyno.servers.admin.connection import answers_within, require_answers
from dbdyno.servers.kinds.remote_protocol import open_load_connection
from dbdyno.servers.server import Server, ServerProblem

# MySQL's variable, and MariaDB's, which a session cannot set.
REQUIRE_KEY, FORCE_KEY = "sql_require_primary_key", "innodb_force_primary_key"
# With it MySQL adds a key itself.
_GENERATE_KEY = "sql_generate_invisible_primary_key"
_WHILE_LOADING = {"local_infile": "ON", REQUIRE_KEY: "OFF", FORCE_KEY: "OFF"}
# The options that define the data of a workload, and the statements of a variant that change them.
DataKey = tuple[str, tuple[str, ...]]


def prepare(
    experiment: Experiment,
    workload: Workload,
    server: Server,
    engine: Engine,
    listen: Listener,
    *,
    on_loading: Callable[[Record], None] = lambda _record: None,
) -> EngineResult:
    """Load the missing tables of a workload on a running server. Raises Problem.

    Private servers allow LOAD DATA LOCAL, and tables without a primary key, during the load
    (`_loading_variables`). On remote servers the engine uses LOAD DATA LOCAL only if the server allows it.
    """

    def report_loading(record: Record) -> None:
        if record["type"] == "loading":
            listen(progress.Loading(record["data"]["rows"], record["data"]["rows_planned"]))
            on_loading(record)

    address = server.address()
    request = plan(experiment, workload, address.target(experiment.load.transport))
    has_setup = not server.private and not isinstance(workload, OltpWorkload)
    if first := _statements_before_setup(workload, server):
        sql = request["workload"]["sql"]
        sql["setup"] = [*first, *sql["setup"]]
    # A run that is killed during the setup leaves no table without a mark.
    request["loading"]["mark_created"] = has_setup and has_comments(server)
    with _loading_variables(server):
        result = engine.run(
            "prepare",
            request,
            address.environment(),
            report_loading,
            on_silence=lambda: require_answers(server, f"the load of {workload.title}"),
        )
    if not result.done:
        is_conflict = result.end is not None and result.end.get("reason") == "data-conflict"
        how = drop_instruction(server) if is_conflict else ""
        raise Problem(
            f"loading the tables of {workload.title} failed: {result.failure()}",
            f"To {how}" if how else "",
            exit_code=result.exit_code if result.exit_code > 0 else ExitCode.NOT_COMPARABLE,
        )
    if not server.private and not isinstance(workload, OltpWorkload):
        # No such table existed before the load (`must_load`).
        mark(server, created_tables(workload, server))
    return result


@contextmanager
def _loading_variables(server: Server) -> Iterator[None]:
    """Set these variables on a private server within the context."""
    server_variables = server.variables() if server.private else {}
    before = {
        name: server_variables[name]
        for name, value in _WHILE_LOADING.items()
        if server_variables.get(name, value) != value
    }
    for name in before:
        server.query(f"SET GLOBAL {name} = {_WHILE_LOADING[name]}")
    try:
        yield
    finally:
        for name, value in before.items():
            # If the server died, the load has raised a more important error.
            with suppress(ServerProblem):
                server.query(f"SET GLOBAL {name} = {value}")


def _statements_before_setup(workload: Workload, server: Server) -> list[str]:
    """What the connection of the setup sends first, so that a server of others creates all tables.

    Raises Problem if it would refuse a table without a primary key.
    """
    dialect = server.address().dialect
    if server.private or not isinstance(workload, SqlWorkload) or dialect is not MYSQL:
        return []
    variables = server.variables()
    names = [name for name in (REQUIRE_KEY, FORCE_KEY) if variables.get(name) == "ON"]
    tables = tables_without_key(workload.setup, dialect) if names else []
    if not tables or variables.get(_GENERATE_KEY) == "ON":
        return []
    (name, *_), listed = names, ", ".join(tables)
    refused = f"{name} is ON, and {workload.title} creates tables without a primary key ({listed})"
    by_hand = f"create and fill the tables of {workload.title} yourself, with keys of your own"
    if name == FORCE_KEY:
        raise Problem(
            refused,
            f"Set {name} = OFF (GLOBAL) until they are loaded, or {by_hand}",
            ExitCode.NOT_COMPARABLE,
        )
    statement = f"SET SESSION {name} = OFF"
    try:
        with open_load_connection(server.address()) as admin:
            admin.query(statement)
    except ServerProblem as problem:
        raise Problem(
            f"{refused}; the account may not set it OFF for its session: {problem.text}",
            f"Grant the account SESSION_VARIABLES_ADMIN until they are loaded, or {by_hand}",
            ExitCode.NOT_COMPARABLE,
        ) from problem
    return [statement]


def created_tables(workload: SqlWorkload | ScriptWorkload, server: Server) -> dict[str, str]:
    """The tables that the setup of a user-written workload creates, or has just created: name -> name as
    written in SQL.
    """
    if isinstance(workload, SqlWorkload):
        return workload.created_tables(server.address().protocol)
    return {name: name for name in list_tables(server)} if workload.prepare else {}


def data_key(workload: Workload, variant: Variant) -> DataKey:
    """What determines the data of a variant, except the server's software."""
    return json.dumps(workload.data(), sort_keys=True), variant.data.after


def run_after(variant: Variant, server: Server, listen: Listener) -> None:
    """Run the statements of [variant.data] in the load's database, after it was loaded. Raises Problem."""
    if not variant.data.after:
        return
    # An index of a large table may take hours.
    with answers_within(None), open_load_connection(server.address()) as admin:
        for sql in variant.data.after:
            listen(progress.Step(f"{variant.name}: {shorten_statement(sql)}"))
            try:
                admin.query(sql)
            except ServerProblem as problem:
                raise Problem(
                    f"data.after of {variant.name!r}: {problem.text}",
                    f"Correct {shorten_statement(sql)!r} in [variant.data]; dbdyno drops no tables and views "
                    "that it creates, so drop them first if they exist",
                    ExitCode.USAGE,
                ) from problem


def must_load(workload: SqlWorkload | ScriptWorkload, server: Server) -> bool:
    """Whether the setup of a user-written workload must run on a server.

    False without a setup. Also false if all tables of an SQL workload exist: the load uses these tables, and
    dbdyno never drops them. Raises Problem if only some exist, or any next to those of a script, because
    setup and clean-up could change or drop them.
    """
    if not workload.has_data:
        return False
    if isinstance(workload, ScriptWorkload):
        _require_empty(workload, server)
        return True
    address = server.address()
    _require_own_database(workload, server)
    tables = workload.created_tables(address.protocol)
    existing = shapes(server, tables)
    if existing and len(existing) < len(tables):
        raise Problem(
            f"{address.database} has the tables {', '.join(existing)} of {workload.title}, but not "
            f"{', '.join(name for name in tables if name not in existing)}; dbdyno drops only tables that "
            "it has created",
            f"Name another database, or {drop_instruction(server) or 'drop them yourself'}",
            ExitCode.USAGE,
        )
    return not existing


def _require_own_database(workload: SqlWorkload, server: Server) -> None:
    """Raise Problem if the setup creates something outside the database of the URL, where dbdyno neither
    looks for existing tables nor drops what a killed run has left.
    """
    address = server.address()
    schema = address.database
    if address.dialect.has_schemas:
        schema = answers.value(server.query, f"SELECT {address.schema}", answers.text_or_empty)
    outside = [
        created_object.written
        for created_object in workload.created_objects(address.protocol)
        if created_object.place not in ("", schema)
    ]
    outside += [shorten_statement(sql) for sql in workload.setup if changes_place(sql, address.dialect)]
    if outside:
        raise Problem(
            f"the setup of {workload.title} uses another database or schema than {schema}: "
            f"{', '.join(outside)}; dbdyno creates tables only in the database of the URL",
            "Leave out the name of the other database, or create its tables yourself and remove these "
            "statements; transactions may use other databases",
            ExitCode.USAGE,
        )


def _require_empty(workload: ScriptWorkload, server: Server) -> None:
    """Raise Problem if the database has tables, because a script's `prepare` and `cleanup` could
    change them.
    """
    if tables := list_tables(server):
        database = server.address().database
        raise Problem(
            f"{database} has {counted(len(tables), 'table')} "
            f"({', '.join(tables[:5])}{', …' if tables[5:] else ''}), "
            f"which {Path(workload.script).name} may change or drop",
            "Name an empty database, or write prepare = false to run over the existing tables"
            + (f", or {how}" if (how := drop_instruction(server)) else ""),
            ExitCode.USAGE,
        )


def list_tables(server: Server) -> list[str]:
    """The tables in the load's database."""
    schema = server.address().schema
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}"
    return [table for (table,) in answers.rows(server.query, sql, answers.text)]


def cleanup(experiment: Experiment, workload: Workload, server: Server, engine: Engine) -> str:
    """Drop the tables that dbdyno created for a workload. Returns why it failed, or an empty text. Raises
    Problem.
    """
    if why := unreachable_reason(server):
        return why
    address = server.address()
    request = plan(experiment, workload, address.target(experiment.load.transport))
    result = engine.run(
        "cleanup",
        request,
        address.environment(),
        on_silence=lambda: require_answers(server, f"dropping the tables of {workload.title}"),
    )
    return "" if result.done else result.failure()
