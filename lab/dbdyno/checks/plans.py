"""Reads the execution plan of a statement: EXPLAIN of MariaDB, MySQL and PostgreSQL in one form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.dialect import POSTGRESQL
from dbdyno.experiment.sql_text import parse_statement, sqlglot
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import ServerProblem
from dbdyno.text import Text, compose, join

# MySQL: "Cannot use ref access on index … due to type or collation conversion on field …"; MariaDB, with
# note_verbosity set: "Cannot use key … part[0] for lookup: … of type …".
_UNUSABLE = "Cannot use "
_ENABLE_NOTES = "SET SESSION note_verbosity = 'basic,explain,unusable_keys'"

# Number of columns of a tabular EXPLAIN -> positions of its columns `table`, `type`, `key` and `rows`.
_COLUMN_POSITIONS = {12: (2, 4, 6, 9), 10: (2, 3, 5, 8)}


@dataclass(frozen=True)
class Access:
    """How the server reads one table."""

    table: str
    # The server's name of the access method: "ALL", "ref", "Index Scan".
    method: str
    index: str | None
    # The server's estimate of rows examined, or of rows returned if it shows only that.
    rows: int
    # Whether the access reads every row of the table, or every entry of an index.
    is_full_scan: bool
    # Whether it reads the index alone, which has all columns that the statement needs.
    is_covering: bool = False

    def is_as(self, expected: str) -> bool:
        """Whether it is as a statement's `access` says: `scan`, or an index, which may be `,covering`."""
        if expected == "scan":
            return self.is_full_scan
        index, _, covering = expected.partition(",")
        names = ("PRIMARY", f"{self.table}_pkey") if index == "primary" else (index,)
        return self.index in names and not self.is_full_scan and (self.is_covering or not covering)

    def text(self) -> Text:
        """Table, access method and index."""
        if self.index:
            return compose(
                "{table} by {method} on {index}", table=self.table, method=self.method, index=self.index
            )
        return compose("{table} by {method}", table=self.table, method=self.method)


@dataclass(frozen=True)
class Plan:
    """How the server executes a statement."""

    accesses: tuple[Access, ...]
    # Type conversions that prevent the use of an index, as the server describes them.
    conversions: tuple[str, ...] = ()

    def text(self) -> Text:
        """The accesses of all tables."""
        return join(", ", [one.text() for one in self.accesses]) if self.accesses else compose("no table")


def read_plan(admin: AdminConnection, sql: str, product: str) -> Plan:
    """The plan of a statement without parameters. Raises ServerProblem if the server rejects it, or explains
    it in another form than the product whose protocol it speaks.
    """
    try:
        return _postgresql(admin, sql) if product == "postgresql" else _mysql(admin, sql, product)
    except (ValueError, TypeError, LookupError) as error:
        raise ServerProblem(f"the server's plan has another form than that of {product}") from error


def _mysql(admin: AdminConnection, sql: str, product: str) -> Plan:
    form = "FORMAT=TRADITIONAL " if product == "mysql" else ""
    if product == "mariadb":
        # MariaDB has note_verbosity since 10.6.16 and 10.11.6.
        with suppress(ServerProblem):
            admin.query(_ENABLE_NOTES)
    accesses = []
    for row in admin.query(f"EXPLAIN {form}{sql}"):
        positions = _COLUMN_POSITIONS.get(len(row))
        if positions is None:
            continue
        table, method, key, rows = (row[position] for position in positions)
        # Skip derived tables (<derived2>) and rows of the plan without a table.
        if table is not None and method is not None and not str(table).startswith("<"):
            is_full_scan = str(method).upper() in ("ALL", "INDEX")
            index = key and str(key)
            # InnoDB's primary key has all columns, also where EXPLAIN does not say so, as in MariaDB 11.
            # "Using index condition" is another thing.
            is_covering = index == "PRIMARY" or "Using index" in re.split(r";\s*", str(row[-1]))
            accesses.append(Access(str(table), str(method), index, int(rows or 0), is_full_scan, is_covering))
    warnings = answers.rows(admin.query, "SHOW WARNINGS", answers.text, answers.text, answers.text)
    unusable = [message for *_, message in warnings if message.startswith(_UNUSABLE)]
    return Plan(tuple(accesses), tuple(dict.fromkeys(unusable)))


def _postgresql(admin: AdminConnection, sql: str) -> Plan:
    root = answers.value(admin.query, f"EXPLAIN (FORMAT JSON) {sql}", plan_root)
    accesses, conversions = [], []
    for node in iterate_nodes(root):
        table = node.get("Relation Name")
        if table is None or node["Node Type"] == "ModifyTable":
            continue
        is_full_scan = node["Node Type"] == "Seq Scan"
        rows = _table_rows(admin, str(table)) if is_full_scan else int(node.get("Plan Rows", 0))
        # A Bitmap Heap Scan has the index in a node below it.
        below = (one["Index Name"] for one in iterate_nodes(node) if "Index Name" in one)
        method = str(node["Node Type"])
        accesses.append(
            Access(str(table), method, next(below, None), rows, is_full_scan, method == "Index Only Scan")
        )
        if is_full_scan:
            conversions += list(_casts(str(table), str(node.get("Filter", ""))))
    return Plan(tuple(accesses), tuple(dict.fromkeys(conversions)))


def plan_root(answer: Any) -> Mapping[str, Any]:
    """The root of a plan in JSON. Raises ValueError."""
    try:
        document = json.loads(answer) if isinstance(answer, str | bytes) else answer
        root = document[0]["Plan"]
        nodes = [one["Node Type"] for one in iterate_nodes(root)]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("no plan") from error
    if not nodes:
        raise ValueError("no plan")
    return dict(root)


def iterate_nodes(root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields a node of PostgreSQL's plan and all nodes below it."""
    yield root
    for child in root.get("Plans", ()):
        yield from iterate_nodes(child)


def _table_rows(admin: AdminConnection, table: str) -> int:
    """The table's row count from statistics, since a plan shows only rows after the filter."""
    name = table.replace("'", "''")
    sql = f"SELECT reltuples::bigint FROM pg_class WHERE relname = '{name}' AND relkind = 'r'"
    return max((count for (count,) in answers.rows(admin.query, sql, answers.integer)), default=0)


def _casts(table: str, condition: str) -> Iterator[str]:
    """Describes the columns that a filter converts before it compares them, so that no index applies."""
    tree = parse_statement(f"SELECT 1 WHERE {condition}", POSTGRESQL) if condition else None
    if tree is None:
        return
    exp = sqlglot().exp
    for cast in tree.find_all(exp.Cast):
        comparison = cast.parent if isinstance(cast.parent, exp.Predicate | exp.Binary) else None
        inner = cast.this.unnest()
        # A varchar column is always shown as `(column)::text`; an index still applies.
        is_text = cast.to.this == exp.DataType.Type.TEXT
        if isinstance(inner, exp.Column) and comparison is not None and not is_text:
            to = cast.to.sql(dialect=POSTGRESQL.sqlglot).lower()
            yield compose(
                "{column} is converted to {type}: {condition}",
                column=f"{table}.{inner.name}",
                type=to,
                condition=condition,
            )
