"""Variables of a server that are different while tables are loaded.

LOAD DATA LOCAL needs `local_infile`. Tables without a primary key, such as the histories of TPC-B and TPC-C,
need servers that do not require one: `sql_require_primary_key` (MySQL) and `innodb_force_primary_key`
(MariaDB). Both variables decide only whether a table may be created, so without them the load is the same as
on every other server; a key that the tables get only there would be work that other servers do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dbdyno.experiment.model import SqlWorkload, Workload
from dbdyno.experiment.sql_text import tables_without_key
from dbdyno.experiment.sql_workload import DIALECTS
from dbdyno.problem import ExitCode, Problem
from dbdyno.servers.load_connection import open_load_connection
from dbdyno.servers.server import Server, ServerProblem

# MySQL's variable, and MariaDB's, which a session cannot set.
REQUIRE_KEY, FORCE_KEY = "sql_require_primary_key", "innodb_force_primary_key"
# With it MySQL adds a key itself.
_GENERATE_KEY = "sql_generate_invisible_primary_key"
_WHILE_LOADING = {"local_infile": "ON", REQUIRE_KEY: "OFF", FORCE_KEY: "OFF"}


@contextmanager
def loading_variables(server: Server) -> Iterator[None]:
    """Set these variables on a private server within the context."""
    known = server.variables() if server.private else {}
    before = {name: known[name] for name, value in _WHILE_LOADING.items() if known.get(name, value) != value}
    for name in before:
        server.query(f"SET GLOBAL {name} = {_WHILE_LOADING[name]}")
    try:
        yield
    finally:
        for name, value in before.items():
            # If the server died, the load has raised a more important error.
            with suppress(ServerProblem):
                server.query(f"SET GLOBAL {name} = {value}")


def statements_before_setup(workload: Workload, server: Server) -> list[str]:
    """What the connection of the setup sends first, so that a server of others creates all tables.

    Raises Problem if it would refuse a table without a primary key.
    """
    protocol = server.address().protocol
    if server.private or not isinstance(workload, SqlWorkload) or DIALECTS[protocol] != "mysql":
        return []
    variables = server.variables()
    names = [name for name in (REQUIRE_KEY, FORCE_KEY) if variables.get(name) == "ON"]
    tables = tables_without_key(workload.setup, DIALECTS[protocol]) if names else []
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
