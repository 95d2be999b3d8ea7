"""Lists, marks and drops the tables that dbdyno has created on servers that it does not start.

dbdyno knows them by a mark in their comment. The engine marks the tables that it creates or fills
(`workload/src/schema.rs` and `generated/marks.rs`), `mark` those that the user's setup has created.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dbdyno.servers.server import Server, ServerProblem, StatementRefused
from dbdyno.servers.url import Target

# The mark of tables that the user's setup, or the `prepare` of a Lua script, has created.
_SETUP = "dbdyno v1 setup"
# A mark is the whole comment, or follows the comment that the user's setup gave the table.
_MARK = re.compile(
    r"(dbdyno v1 (?:bulk_insert|seed=\d+ rows=\d+ auto_inc=\w+ secondary=\w+ k_index=\w+)(?: engine=\w+)?)"
    rf"|(?:.* )?(dbdyno loading|dbdyno v1 generated seed=\d+ rows=\d+ columns=[0-9a-f]{{8}}|{_SETUP})",
    re.DOTALL,
)
# Maximum number of tables that `drop_instruction` names.
_NAMED_MAX = 5

_TABLES_SQL = {
    "mysql": (
        "SELECT table_name, table_comment, COALESCE(data_length + index_length, 0) "
        "FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
    ),
    "postgresql": (
        "SELECT c.relname, COALESCE(obj_description(c.oid, 'pg_class'), ''), pg_total_relation_size(c.oid) "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')"
    ),
}
_NAME_COLUMN = {"mysql": "table_name", "postgresql": "c.relname"}


@dataclass(frozen=True)
class Table:
    """A table in the database of a server's URL."""

    name: str
    comment: str
    # Including indexes.
    size_bytes: int

    @property
    def mark(self) -> str:
        """The mark in the comment; empty if dbdyno has not created the table."""
        match = _MARK.fullmatch(self.comment)
        return (match[1] or match[2]) if match else ""


def marked_tables(server: Server) -> list[Table]:
    """The tables with a mark in the database of the server's URL, by name. Raises ServerProblem."""
    return sorted((one for one in _tables(server) if one.mark), key=lambda table: table.name)


def drop(server: Server, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Drop tables, each only if it still has its mark. Yields each name with the reason why it could not be
    dropped, or with an empty text.
    """
    remaining = list(names)
    while remaining:
        failures: dict[str, str] = {}
        for name in remaining:
            try:
                if any(table.mark for table in _tables(server, name)):
                    server.query(f"DROP TABLE {_quote(server, name)}")
            except ServerProblem as problem:
                failures[name] = problem.text
            else:
                yield name, ""
        if len(failures) == len(remaining):
            yield from failures.items()
            return
        # A table that others refer to can be dropped after them.
        remaining = list(failures)


def mark(server: Server, names: Iterable[str]) -> None:
    """Mark tables that a setup has just created, unless they have a mark."""
    created = set(names)
    tables: list[Table] = []
    # A server of another product may have no comments. Its tables are those that the user must drop.
    with suppress(StatementRefused):
        tables = _tables(server)
    for table in tables:
        if table.name not in created or table.mark:
            continue
        text = f"{table.comment} {_SETUP}".strip().replace("'", "''")
        # Without its mark the table is one that the user must drop.
        with suppress(ServerProblem):
            if server.address().protocol == "postgresql":
                server.query(f"COMMENT ON TABLE {_quote(server, table.name)} IS '{text}'")
            else:
                text = text.replace("\\", "\\\\")
                server.query(f"ALTER TABLE {_quote(server, table.name)} COMMENT = '{text}'")


def drop_instruction(server: Server) -> str:
    """How to drop the tables that dbdyno has created in the server's database; empty if there are none."""
    names: list[str] = []
    # The instruction is part of the message about a more important problem.
    with suppress(ServerProblem):
        names = [] if server.private else [table.name for table in marked_tables(server)]
    if not names:
        return ""
    named = ", ".join(names[:_NAMED_MAX]) + (", …" if len(names) > _NAMED_MAX else "")
    return f"drop those that dbdyno has created ({named}): {drop_command(server)}"


def drop_command(server: Server) -> str:
    """The command that drops dbdyno's tables in the server's database."""
    parts = {name: value for name, value in vars(server.address()).items() if name != "password"}
    return f"dbdyno data drop --target {shlex.quote(str(Target(**parts)))}"


def _tables(server: Server, name: str | None = None) -> list[Table]:
    """The tables in the database of the server's URL, or the one with this name."""
    protocol = server.address().protocol
    sql = _TABLES_SQL[protocol]
    if name is not None:
        text = name.replace("'", "''")
        text = text.replace("\\", "\\\\") if protocol == "mysql" else text
        sql += f" AND {_NAME_COLUMN[protocol]} = '{text}'"
    return [Table(str(title), str(comment), int(size)) for title, comment, size in server.query(sql)]


def _quote(server: Server, name: str) -> str:
    """A name in SQL. In the server's database the name alone finds the table."""
    quote = '"' if server.address().protocol == "postgresql" else "`"
    return quote + name.replace(quote, 2 * quote) + quote
