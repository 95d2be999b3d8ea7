"""Lists, marks and drops the tables that dbdyno has created on servers that it does not start.

dbdyno knows them by a mark in their comment. The engine marks the tables that it creates or fills, and those
that the user's setup creates, by the statement that creates them (`engine/workload/src/table_marks.rs`).
`mark` adds the mark to tables that have none after the setup.

A mark ends with a hash of its table's names. In MySQL, CREATE TABLE … LIKE copies comments and a rename keeps
them, so a table whose mark belongs to another one is the user's, and is not dropped.
"""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dbdyno.servers.admin import answers
from dbdyno.servers.server import Server, ServerProblem, StatementRefused
from dbdyno.servers.url import Target

# The mark of a table while the engine loads it. A later load replaces such a table.
LOADING = "dbdyno loading"
# The mark of tables that the user's setup, or the `prepare` of a Lua script, has created.
_SETUP = "dbdyno v1 setup"
# A mark is the whole comment, or follows the comment that the user's setup gave the table. Its last group is
# the hash of the table, which marks of earlier versions do not have.
_MARK = re.compile(
    r"(?:(dbdyno v1 (?:bulk_insert|seed=\d+ rows=\d+ auto_inc=\w+ secondary=\w+ k_index=\w+)(?: engine=\w+)?)"
    rf"|(?:.* )?({LOADING}|dbdyno v1 generated seed=\d+ rows=\d+ columns=[0-9a-f]{{8}}|{_SETUP}))"
    r"(?: table=([0-9a-f]{8}))?",
    re.DOTALL,
)
# Maximum number of tables that `drop_instruction` names.
_NAMED_MAX = 5

# Schema, whether it is that of the URL, name, comment and size.
_TABLES_SQL = {
    "mysql": (
        "SELECT table_schema, table_schema = {here}, table_name, table_comment, "
        "COALESCE(data_length + index_length, 0) FROM information_schema.tables "
        "WHERE table_type = 'BASE TABLE' AND {where}"
    ),
    "postgresql": (
        "SELECT n.nspname, (n.nspname = {here})::int, c.relname, "
        "COALESCE(obj_description(c.oid, 'pg_class'), ''), pg_total_relation_size(c.oid) "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p') AND {where}"
    ),
}
_COLUMNS = (answers.text, answers.integer, answers.text, answers.text_or_empty, answers.integer)
_COMMENT = {"mysql": "table_comment", "postgresql": "obj_description(c.oid, 'pg_class')"}
_NAME_COLUMN = {"mysql": "table_name", "postgresql": "c.relname"}
_SCHEMA_COLUMN = {"mysql": "table_schema", "postgresql": "n.nspname"}


@dataclass(frozen=True)
class Table:
    """A table of a server."""

    name: str
    comment: str
    # Including indexes.
    size_bytes: int
    # The database of MySQL, or the schema of PostgreSQL, and whether it is that of the server's URL.
    schema: str
    is_here: bool = True
    # The database by which marks name the table: that of the URL, or of MySQL.
    database: str = ""

    @property
    def title(self) -> str:
        """The name, with the schema unless that is the URL's."""
        return self.name if self.is_here else f"{self.schema}.{self.name}"

    @property
    def mark(self) -> str:
        """The mark in the comment, without the hash of the table; empty without a mark."""
        match = _MARK.fullmatch(self.comment)
        return (match[1] or match[2]) if match else ""

    @property
    def doubt(self) -> str:
        """Why a table with a mark may be the user's; empty if it is certainly dbdyno's."""
        match = _MARK.fullmatch(self.comment)
        if match is None or match[3] == table_hash(self.database, self.name):
            return ""
        if match[3] is None:
            return "the mark of an earlier version does not name its table"
        return "the mark belongs to another table: this one is a copy (LIKE) or was renamed"

    @property
    def is_dbdynos(self) -> bool:
        """Whether dbdyno created it, and may drop it."""
        return bool(self.mark) and not self.doubt

    @property
    def own_comment(self) -> str:
        """The comment without the mark."""
        match = _MARK.fullmatch(self.comment)
        return self.comment[: match.start(1 if match[1] else 2)].rstrip() if match else self.comment


def table_hash(database: str, table: str) -> str:
    """What a mark says of its table (`table_hash` of the engine)."""
    return f"{zlib.crc32(f'{database}.{table}'.lower().encode()):08x}"


def marked_tables(server: Server, *, everywhere: bool = False) -> list[Table]:
    """The tables with a mark in the schema of the server's URL, by name; also those of other schemas with
    `everywhere`. Raises ServerProblem.
    """
    where = _is_here(server)
    if everywhere:
        where = f"({where} OR {_COMMENT[server.address().protocol]} LIKE '%dbdyno %table=%')"
    tables = [table for table in _tables(server, where) if table.mark]
    return sorted(tables, key=lambda table: (not table.is_here, table.title))


def drop(server: Server, tables: Iterable[Table]) -> Iterator[tuple[str, str]]:
    """Drop tables, each only if it still has its mark. Yields each name with the reason why it could not be
    dropped, or with an empty text.
    """
    remaining = list(tables)
    while remaining:
        failures: dict[str, str] = {}
        failed = []
        for table in remaining:
            try:
                if any(entry.is_dbdynos for entry in _tables(server, _is_table(server, table))):
                    # Without CASCADE: views and foreign keys of the user keep it.
                    name = server.address().dialect.quote(table.schema, table.name)
                    server.query(f"DROP TABLE {name}")
            except ServerProblem as problem:
                failures[table.title] = problem.text
                failed.append(table)
            else:
                yield table.title, ""
        if len(failed) == len(remaining):
            yield from failures.items()
            return
        # A table that others refer to can be dropped after them.
        remaining = failed


def mark(server: Server, names: Iterable[str]) -> None:
    """Mark tables that a setup has just created, unless they have their mark."""
    created, dialect = set(names), server.address().dialect
    tables: list[Table] = []
    # A server of another product may have no comments. Its tables are those that the user must drop.
    with suppress(StatementRefused):
        tables = _tables(server, _is_here(server))
    for table in tables:
        if table.name not in created or table.is_dbdynos:
            continue
        hash_now = table_hash(table.database, table.name)
        comment = dialect.literal(f"{table.own_comment} {_SETUP} table={hash_now}".strip())
        # Without its mark the table is one that the user must drop.
        with suppress(ServerProblem):
            name = dialect.quote(table.schema, table.name)
            server.query(dialect.set_comment.format(table=name, comment=comment))


def has_comments(server: Server) -> bool:
    """Whether the server certainly understands comments of tables in CREATE TABLE: it is one of the products
    that dbdyno can start.
    """
    variable = "shared_buffers" if server.address().protocol == "postgresql" else "innodb_page_size"
    return variable in server.variables()


def drop_instruction(server: Server) -> str:
    """How to drop the tables that dbdyno has created in the server's database; empty if there are none."""
    names: list[str] = []
    # The instruction is part of the message about a more important problem.
    with suppress(ServerProblem):
        names = [] if server.private else [table.title for table in marked_tables(server) if table.is_dbdynos]
    if not names:
        return ""
    named = ", ".join(names[:_NAMED_MAX]) + (", …" if len(names) > _NAMED_MAX else "")
    return f"drop those that dbdyno has created ({named}): {drop_command(server)}"


def drop_command(server: Server) -> str:
    """The command that drops dbdyno's tables in the server's database."""
    parts = {name: value for name, value in vars(server.address()).items() if name != "password"}
    return f"dbdyno data drop --target {shlex.quote(str(Target(**parts)))}"


def _tables(server: Server, where: str) -> list[Table]:
    """The tables for which a condition holds."""
    address = server.address()
    sql = _TABLES_SQL[address.protocol].format(here=address.schema, where=where)
    has_schemas = address.dialect.has_schemas
    return [
        Table(name, comment, size, schema, bool(is_here), address.database if has_schemas else schema)
        for schema, is_here, name, comment, size in answers.rows(server.query, sql, *_COLUMNS)
    ]


def _is_here(server: Server) -> str:
    """The condition for the tables in the schema of the server's URL."""
    return f"{_SCHEMA_COLUMN[server.address().protocol]} = {server.address().schema}"


def _is_table(server: Server, table: Table) -> str:
    """The condition for one table."""
    protocol, literal = server.address().protocol, server.address().dialect.literal
    name, schema = literal(table.name), literal(table.schema)
    return f"{_NAME_COLUMN[protocol]} = {name} AND {_SCHEMA_COLUMN[protocol]} = {schema}"
