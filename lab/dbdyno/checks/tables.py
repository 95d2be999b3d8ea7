"""Compares the tables of a server with those that the engine creates (`run.description`), and existing tables
of two servers with each other.

Checks P02 and P29 use this module. `dbdyno run` uses it to decide whether it may use existing tables.

Counting must disturb the trial as little as possible. In MySQL and MariaDB `COUNT(*)` scans the index on k,
the smallest copy of the rows (about 13 bytes per row, against 200 in the table itself). InnoDB puts pages
that only one scan has read at the old end of its LRU list, so the scan evicts no frequently used page.
`MIN(id)` and `MAX(id)` read one page each. Every group begins with the same scan, so no variant and no block
starts warmer than another. Statistics (information_schema.TABLES.TABLE_ROWS) would cost nothing, but are
wrong by tens of per cent.

In PostgreSQL `COUNT(*)` reads the index on k if its pages are known to be visible to all transactions, as
after a vacuum; otherwise it reads the table, through a small ring of buffers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dbdyno.experiment.dialect import MYSQL, POSTGRESQL
from dbdyno.experiment.differences import DataDifference
from dbdyno.result_text import rows_count
from dbdyno.run.description import Column, Index, Tables
from dbdyno.servers.admin import answers
from dbdyno.servers.server import Server, StatementRefused
from dbdyno.text import compose, join

# Executes one administrative statement and returns its rows.
Query = Callable[[str], list[tuple[Any, ...]]]

# PostgreSQL's name of a type -> the engine's name.
_TYPES = {"int4": "int", "int8": "bigint", "bpchar": "char"}

_AUTO_INCREMENT = re.compile(r"\bAUTO_INCREMENT=(\d+)")

# Existing tables are counted up to this estimate of their rows, and up to this sum of the estimates.
COUNTED_MAX, COUNTED_TOTAL_MAX = 1_000_000, 10_000_000
# Shares by which the rows of two existing tables may differ: counted ones, and the servers' estimates.
ROWS_TOLERANCE, ESTIMATES_TOLERANCE = 0.01, 0.1
# The width with which older servers show integers, and which has no effect.
_DISPLAY_WIDTH = re.compile(r"\b((?:tiny|small|medium|big)?int)\(\d+\)")
# What CREATE INDEX has before the method, such as "CREATE INDEX i ON public.t USING".
_BEFORE_METHOD = re.compile(r"^.*? USING (?:btree )?")
# Characters of a server's refusal in a note.
_REFUSAL_MAX = 250
# Bytes up to which a table of PostgreSQL without any estimate is counted.
_SMALL_BYTES = 100_000_000


@dataclass
class Shape:
    """The definition of one table, from the server's catalogue."""

    engine: str = ""
    comment: str = ""
    columns: list[Column] = field(default_factory=list)
    # index name -> its columns in order.
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # column -> its full type, as in "varchar(20) NOT NULL".
    types: dict[str, str] = field(default_factory=dict)
    # index name -> its definition without the name, as in "UNIQUE (customer, day DESC)".
    definitions: dict[str, str] = field(default_factory=dict)
    # False if the server has no such catalogue, so that only the table's existence is known.
    is_known: bool = True


@dataclass(frozen=True)
class Extent:
    """Number of rows and range of ids of one table. `id_min` and `id_max` are None if the table is empty."""

    rows: int
    id_min: int | None
    id_max: int | None
    # The next id that the server assigns; None if the server does not report it (sql_mode = ANSI).
    auto_increment: int | None


def shape_differences(shape: Shape, expected: Tables) -> Iterator[str]:
    """Differences between one table and the table that the engine creates."""
    if shape.engine == "view":
        yield compose("it is a view")
        return
    if shape.engine not in ("", expected.engine):
        yield compose(
            "storage engine is {engine}, not {engine_2}", engine=shape.engine, engine_2=expected.engine
        )
    existing = {column.name: column for column in shape.columns}
    if list(existing) != [column.name for column in expected.columns]:
        names = join(", ", (column.name for column in expected.columns))
        yield compose(
            "columns are {listed}, not {names}",
            listed=join(", ", existing) if existing else compose("none"),
            names=names,
        )
    for column in expected.columns:
        if column.name in existing:
            yield from _column_differences(existing[column.name], column)
    yield from _index_differences(shape, expected.indexes or ())


def _column_differences(column: Column, expected: Column) -> Iterator[str]:
    name = column.name
    if (column.type, column.length) != (expected.type, expected.length):
        yield compose("{name} is {type}, not {type_2}", name=name, type=_type(column), type_2=_type(expected))
    if column.nullable and not expected.nullable:
        yield compose("{name} may be NULL", name=name)
    if column.auto_increment != expected.auto_increment:
        yield (
            compose("{name} is AUTO_INCREMENT", name=name)
            if column.auto_increment
            else compose("{name} is not AUTO_INCREMENT", name=name)
        )


def _index_differences(shape: Shape, expected: Iterable[Index]) -> Iterator[str]:
    """Differences in indexes. An additional index counts, because every write must maintain it."""
    remaining = dict(shape.indexes)
    for index in expected:
        name = next((name for name, columns in remaining.items() if columns == index.columns), None)
        on = join(", ", index.columns)
        if name is None:
            yield compose("there is no index on {on}", on=on)
        elif index.primary != (name == "PRIMARY"):
            yield (
                compose("{on} is not the primary key", on=on)
                if index.primary
                else compose("{on} is the primary key", on=on)
            )
        remaining.pop(name or "", None)
    yield from (
        compose("there is an additional index {name} on {listed}", name=name, listed=join(", ", columns))
        for name, columns in remaining.items()
    )


def extent_differences(extent: Extent, rows: int, tolerance: float = 0.0) -> Iterator[str]:
    """Differences of one table from ids 1 to `rows` without gaps, if larger than `tolerance` (a share)."""
    allowed = rows * tolerance
    if abs(extent.rows - rows) > allowed:
        yield compose("{count}, not {rows:,}", count=rows_count(extent.rows), rows=rows)
    if extent.id_min is None or extent.id_max is None:
        return
    if abs(extent.id_min - 1) > allowed:
        yield compose("ids begin at {id_min:,}, not at 1", id_min=extent.id_min)
    if abs(extent.id_max - rows) > allowed:
        yield compose("ids end at {id_max:,}, not at {rows:,}", id_max=extent.id_max, rows=rows)
    gaps = extent.id_max - extent.id_min + 1 - extent.rows
    if gaps > allowed:
        yield compose(
            "{gaps:,} ids between {id_min:,} and {id_max:,} have no row",
            gaps=gaps,
            id_min=extent.id_min,
            id_max=extent.id_max,
        )


def _type(column: Column) -> str:
    return f"{column.type}" if column.length is None else f"{column.type}({column.length})"


def _names_of_tables(query: Query, database: str) -> list[str]:
    """The tables and views in `database`."""
    rows = query(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {MYSQL.literal(database)}"
    )
    return [str(name) for (name,) in rows]


def _mysql_shapes(query: Query, database: str, names: Iterable[str]) -> dict[str, Shape]:
    """The shapes of those of the named tables that exist in `database`."""
    expected = set(names)
    shapes: dict[str, Shape] = {}
    schema = MYSQL.literal(database)
    for name, engine, comment in answers.rows(
        query,
        "SELECT TABLE_NAME, ENGINE, TABLE_COMMENT FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = {schema}",
        *(answers.text, answers.text_or_empty, answers.text_or_empty),
    ):
        if name in expected:
            shapes[name] = Shape(engine=(engine or "view").lower(), comment=comment)
    # dbdyno sorts the rows, because the experiment may set the server's sort buffer too small.
    columns = answers.rows(
        query,
        "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, "
        "IS_NULLABLE, EXTRA, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS "
        f"WHERE TABLE_SCHEMA = {schema}",
        *(
            answers.text,
            answers.integer,
            answers.text,
            answers.text,
            answers.integer_or_none,
            answers.text,
            answers.text_or_empty,
            answers.text_or_empty,
            answers.text_or_empty,
        ),
    )
    for name, _, column, kind, length, nullable, extra, full_type, collation in sorted(
        columns, key=lambda entry: entry[:2]
    ):
        if name in shapes:
            parts = (
                _DISPLAY_WIDTH.sub(r"\1", full_type),
                collation,
                "" if str(nullable).upper() == "YES" else "NOT NULL",
            )
            shapes[name].types[str(column)] = " ".join(filter(None, parts))
            shapes[name].columns.append(
                Column(
                    name=str(column),
                    type=str(kind).lower(),
                    length=None if length is None else int(length),
                    nullable=str(nullable).upper() == "YES",
                    auto_increment="auto_increment" in str(extra).lower(),
                )
            )
    indexes = answers.rows(
        query,
        "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE, SUB_PART, COLLATION, "
        f"INDEX_TYPE FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {schema}",
        *(answers.text, answers.text, answers.integer, answers.text_or_empty),
        *(answers.integer, answers.integer_or_none, answers.text_or_empty, answers.text_or_empty),
    )
    written: dict[tuple[str, str], list[str]] = {}
    for name, index, _, column, not_unique, length, order, kind in sorted(
        indexes, key=lambda entry: entry[:3]
    ):
        if name in shapes:
            before = shapes[name].indexes.get(str(index), ())
            shapes[name].indexes[str(index)] = (*before, str(column))
            text = f"{column}({length})" if length is not None else column or "expression"
            written.setdefault((name, index), []).append(f"{text} DESC" if order == "D" else text)
            beginning = "PRIMARY KEY " if index == "PRIMARY" else "" if not_unique else "UNIQUE "
            method = "" if kind == "BTREE" else f"{kind} "
            listed = ", ".join(written[name, index])
            shapes[name].definitions[index] = f"{beginning}{method}({listed})"
    return shapes


def _mysql_extent(query: Query, database: str, name: str, shape: Shape) -> Extent:
    """Count one table's rows and find its first and last id."""
    table = MYSQL.quote(database, name)
    on_k = next((index for index, columns in shape.indexes.items() if columns == ("k",)), None)
    hint = f" FORCE INDEX ({MYSQL.quote(on_k)})" if on_k else ""
    count = answers.value(query, f"SELECT COUNT(*) FROM {table}{hint}", answers.integer)
    limits = answers.row(
        query, f"SELECT MIN(id), MAX(id) FROM {table}", answers.integer_or_none, answers.integer_or_none
    )
    # SHOW CREATE TABLE reads the table itself; information_schema may use a cache that is a day old.
    sql = f"SHOW CREATE TABLE {table}"
    created = query(sql)
    # A view has more columns.
    if len(created) != 1 or len(created[0]) < 2:
        raise answers.UnexpectedAnswer(sql, "one row of two texts", created)
    match = _AUTO_INCREMENT.search(str(created[0][1]))
    return Extent(
        rows=count,
        id_min=limits[0],
        id_max=limits[1],
        auto_increment=int(match[1]) if match else None,
    )


def _postgresql_shapes(query: Query, database: str, names: Iterable[str]) -> dict[str, Shape]:  # noqa: ARG001
    """The shapes of those of the named tables that exist in the connection's current schema."""
    expected = set(names)
    shapes: dict[str, Shape] = {}
    for name, kind, comment in answers.rows(
        query,
        "SELECT relname, relkind::text, COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')",
        *(answers.text, answers.text, answers.text),
    ):
        if name in expected:
            # PostgreSQL has no storage engines.
            shapes[name] = Shape(engine="" if kind in ("r", "p") else "view", comment=str(comment))
    for name, column, kind, length, nullable, default, full_type in answers.rows(
        query,
        "SELECT c.relname, a.attname, t.typname, a.atttypmod - 4, NOT a.attnotnull, "
        "COALESCE(pg_get_expr(d.adbin, d.adrelid), a.attidentity::text), "
        "format_type(a.atttypid, a.atttypmod) FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "JOIN pg_type t ON t.oid = a.atttypid "
        "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
        "WHERE c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, a.attnum",
        *(answers.text, answers.text, answers.text, answers.integer, bool, answers.text_or_empty),
        answers.text_or_empty,
    ):
        if name in shapes:
            shapes[name].types[column] = full_type if nullable else f"{full_type} NOT NULL"
            is_serial = str(default).startswith("nextval(") or str(default) in ("a", "d")
            characters = int(length) if kind == "bpchar" else None
            type_name = _TYPES.get(kind, str(kind))
            shapes[name].columns.append(Column(str(column), type_name, characters, bool(nullable), is_serial))
    for name, index, primary, column, unique, statement in answers.rows(
        query,
        "SELECT t.relname, i.relname, x.indisprimary, COALESCE(a.attname, ''), x.indisunique, "
        "pg_get_indexdef(x.indexrelid) FROM pg_index x "
        "JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid "
        "CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k(number, place) "
        "LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number "
        "WHERE t.relnamespace = current_schema()::regnamespace ORDER BY t.relname, i.relname, k.place",
        *(answers.text, answers.text, bool, answers.text_or_empty, bool, answers.text_or_empty),
    ):
        if name in shapes:
            key = "PRIMARY" if primary else str(index)
            shapes[name].indexes[key] = (*shapes[name].indexes.get(key, ()), str(column))
            beginning = "PRIMARY KEY " if primary else "UNIQUE " if unique else ""
            shapes[name].definitions[key] = beginning + _BEFORE_METHOD.sub("", statement)
    return shapes


def _postgresql_extent(query: Query, database: str, name: str, shape: Shape) -> Extent:  # noqa: ARG001
    """Count one table's rows, find its first and last id, and read its sequence."""
    sql = f'SELECT COUNT(*), MIN(id), MAX(id) FROM "{name}"'
    count, id_min, id_max = answers.row(
        query, sql, answers.integer, answers.integer_or_none, answers.integer_or_none
    )
    next_id = None
    if any(column.auto_increment for column in shape.columns if column.name == "id"):
        sequence = answers.value(
            query, f"SELECT pg_get_serial_sequence('\"{name}\"', 'id')", answers.text_or_empty
        )
        if sequence:
            last, called = answers.row(
                query, f"SELECT last_value, is_called FROM {sequence}", answers.integer, bool
            )
            next_id = last + called
    return Extent(rows=count, id_min=id_min, id_max=id_max, auto_increment=next_id)


@dataclass(frozen=True)
class TableState:
    """What the server's catalogue says of one existing table besides its definition."""

    # Such as "row format" -> "Dynamic".
    storage: Mapping[str, str] = field(default_factory=dict)
    # The rows that the server estimates; None if it does not.
    estimate: int | None = None
    # When the optimizer's statistics were made; None if that is not known.
    analyzed_unix_s: int | None = None
    # The share of the rows that have changed since; None if that is not known.
    modified_share: float | None = None


def _mysql_states(query: Query, database: str) -> dict[str, TableState]:
    """The states of the tables in `database`."""
    schema = MYSQL.literal(database)
    states = {
        name: TableState(
            {
                "row format": row_format,
                "collation": collation,
                "partitioning": "yes" if "partitioned" in options else "no",
            },
            rows,
        )
        for name, rows, row_format, collation, options in answers.rows(
            query,
            "SELECT TABLE_NAME, TABLE_ROWS, ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS "
            f"FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND ENGINE IS NOT NULL",
            *(answers.text, answers.integer_or_none),
            *(answers.text_or_empty, answers.text_or_empty, answers.text_or_empty),
        )
    }
    # An account without rights on the database mysql may not read it.
    with suppress(StatementRefused):
        for name, analyzed in answers.rows(
            query,
            "SELECT table_name, UNIX_TIMESTAMP(last_update) DIV 1 FROM mysql.innodb_table_stats "
            f"WHERE database_name = {schema}",
            *(answers.text, answers.integer_or_none),
        ):
            # A partition is `table#P#name`.
            table = re.split("#p#", name, maxsplit=1, flags=re.IGNORECASE)[0]
            if table in states and analyzed is not None:
                before = states[table].analyzed_unix_s
                states[table] = replace(states[table], analyzed_unix_s=min(analyzed, before or analyzed))
    return states


def _postgresql_states(query: Query, database: str) -> dict[str, TableState]:  # noqa: ARG001
    """The states of the tables in the connection's current schema."""
    states = {}
    for (
        name,
        persistence,
        method,
        partitioned,
        options,
        collation,
        estimate,
        analyzed,
        modified,
    ) in answers.rows(
        query,
        "SELECT c.relname, c.relpersistence::text, am.amname, pg_get_partkeydef(c.oid), "
        "array_to_string(c.reloptions, ', '), d.datcollate, "
        "CASE WHEN c.relkind = 'p' THEN (SELECT SUM(GREATEST(l.reltuples, 0))::bigint "
        "FROM pg_partition_tree(c.oid) p JOIN pg_class l ON l.oid = p.relid) "
        "WHEN c.reltuples < 0 AND COALESCE(s.n_live_tup, 0) = 0 "
        f"AND pg_relation_size(c.oid) > {_SMALL_BYTES} THEN NULL "
        "WHEN c.reltuples > 0 THEN c.reltuples::bigint ELSE COALESCE(s.n_live_tup, 0) END, "
        "EXTRACT(EPOCH FROM GREATEST(s.last_analyze, s.last_autoanalyze))::bigint, s.n_mod_since_analyze "
        "FROM pg_class c JOIN pg_database d ON d.datname = current_database() "
        "LEFT JOIN pg_am am ON am.oid = c.relam LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid "
        "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') "
        "AND NOT c.relispartition",
        *(answers.text, answers.text, answers.text_or_empty, answers.text_or_empty, answers.text_or_empty),
        *(answers.text_or_empty, answers.integer_or_none, answers.integer_or_none, answers.integer_or_none),
    ):
        storage = {
            "access method": method,
            "persistence": "unlogged" if persistence == "u" else "logged",
            "partitioning": partitioned or "no",
            "options": options or "none",
            "collation": collation,
        }
        share = modified / max(estimate, 1) if modified is not None and estimate is not None else None
        states[name] = TableState(storage, estimate, analyzed, share)
    return states


class Readers(NamedTuple):
    """How the tables of a protocol are read."""

    read_shapes: Callable[[Query, str, Iterable[str]], dict[str, Shape]]
    read_extent: Callable[[Query, str, str, Shape], Extent]
    # Of the tables in the load's database, without views.
    read_states: Callable[[Query, str], dict[str, TableState]]


# Functions that read the tables, by protocol.
READERS: Mapping[str, Readers] = {
    "mysql": Readers(_mysql_shapes, _mysql_extent, _mysql_states),
    "postgresql": Readers(_postgresql_shapes, _postgresql_extent, _postgresql_states),
}


def shapes(server: Server, names: Iterable[str]) -> dict[str, Shape]:
    """The shapes of the named tables, as far as they exist in the load's database."""
    address, names = server.address(), list(names)
    try:
        stored = _stored_names(server, names)
        shapes_by_name = READERS[address.protocol].read_shapes(server.query, address.database, stored)
        return {stored[name]: shape for name, shape in shapes_by_name.items()}
    except StatementRefused:
        if server.private:
            raise
        return {name: Shape(is_known=False) for name in names if _can_read(server, name)}


def _stored_names(server: Server, names: Sequence[str]) -> dict[str, str]:
    """For the name of each table in the server's catalogue: its name in `names`."""
    address = server.address()
    if address.dialect is not MYSQL or server.variables().get("lower_case_table_names", "0") == "0":
        return {name: name for name in names}
    # The server takes Item for item.
    by_lower_case = {name.lower(): name for name in names}
    return {
        name: by_lower_case[name.lower()]
        for name in _names_of_tables(server.query, address.database)
        if name.lower() in by_lower_case
    }


def _can_read(server: Server, name: str) -> bool:
    """Whether a server without a catalogue has a table."""
    try:
        server.query(f"SELECT COUNT(*) FROM {name} WHERE 1 = 0")
    except StatementRefused:
        return False
    return True


def read_extent(server: Server, name: str, shape: Shape) -> Extent:
    """Count one table's rows, and find its first, last and next id."""
    address = server.address()
    return READERS[address.protocol].read_extent(server.query, address.database, name, shape)


@dataclass(frozen=True)
class ExistingTable:
    """A table that dbdyno did not create."""

    shape: Shape
    state: TableState = field(default_factory=TableState)
    # The counted rows; None if the table is too large to count, or a view.
    rows: int | None = None

    @property
    def rows_or_estimate(self) -> int | None:
        """The number of rows, as exactly as it is known."""
        return self.state.estimate if self.rows is None else self.rows


@dataclass(frozen=True)
class ExistingTables:
    """The tables of a variant that the run uses and does not create."""

    protocol: str
    tables: Mapping[str, ExistingTable]
    # The tables that the statements name; None: every table of the database.
    names: tuple[str, ...] | None
    # Why the server's catalogue could not be read.
    refusal: str = ""


def read_existing(server: Server, names: Collection[str] | None, created: Collection[str]) -> ExistingTables:
    """Facts about the tables with these names, or about every table of the load's database if `names` is
    None; `created` are those that the run creates. Counts the rows of small tables.
    """
    address, named = server.address(), None if names is None else tuple(names)
    reader = READERS[address.protocol]
    try:
        states = reader.read_states(server.query, address.database)
        stored = _stored_names(server, [name for name in names or states if name not in created])
        shapes_by_name = reader.read_shapes(server.query, address.database, stored)
    except (StatementRefused, answers.UnexpectedAnswer) as refusal:
        # Some servers repeat the whole statement.
        return ExistingTables(
            address.protocol, {}, named, answers.shorten_statement(refusal.text, _REFUSAL_MAX)
        )
    tables = {
        stored[name]: ExistingTable(shape, states.get(name, TableState()))
        for name, shape in shapes_by_name.items()
        if names is not None or name in states
    }
    total = 0
    for name in sorted(states.keys() & stored.keys(), key=lambda name: states[name].estimate or 0):
        estimate = states[name].estimate
        if estimate is None or estimate > COUNTED_MAX or total + estimate > COUNTED_TOTAL_MAX:
            continue
        total += estimate
        has_schemas = address.dialect.has_schemas
        written = POSTGRESQL.quote(name) if has_schemas else MYSQL.quote(address.database, name)
        # Without the right to read it, the load will say so.
        with suppress(StatementRefused):
            rows = answers.value(server.query, f"SELECT COUNT(*) FROM {written}", answers.integer)
            tables[stored[name]] = replace(tables[stored[name]], rows=rows)
    return ExistingTables(address.protocol, tables, named)


def data_differences(baseline: ExistingTables, variant: ExistingTables) -> Iterator[DataDifference]:
    """The differences between the existing tables of a variant and those of the baseline. Definitions are
    compared only between servers of one protocol, whose catalogues have the same words.
    """
    for name in dict.fromkeys([*baseline.tables, *variant.tables]):
        before, after = baseline.tables.get(name), variant.tables.get(name)
        if before is None or after is None:
            yield DataDifference(
                "table", name, "", None if before is None else name, None if after is None else name
            )
            continue
        yield from _row_differences(name, before, after)
        if baseline.protocol == variant.protocol:
            yield from _definition_differences(name, before, after)


def _row_differences(name: str, before: ExistingTable, after: ExistingTable) -> Iterator[DataDifference]:
    first, second = before.rows_or_estimate, after.rows_or_estimate
    if first is None or second is None:
        return
    is_exact = before.rows is not None and after.rows is not None
    tolerance = ROWS_TOLERANCE if is_exact else ESTIMATES_TOLERANCE
    if abs(second - first) > tolerance * first:
        yield DataDifference("rows" if is_exact else "estimated rows", name, "", first, second)


def _definition_differences(
    name: str, before: ExistingTable, after: ExistingTable
) -> Iterator[DataDifference]:
    for key in dict.fromkeys([*before.shape.types, *after.shape.types]):
        old, new = before.shape.types.get(key), after.shape.types.get(key)
        if old != new:
            yield DataDifference("column", name, key, old, new)
    for key, old, new in (
        ("storage engine", before.shape.engine, after.shape.engine),
        *((key, before.state.storage.get(key), after.state.storage.get(key)) for key in before.state.storage),
    ):
        if old != new:
            yield DataDifference("storage", name, key, old, new)
    # An index with another name does the same.
    first, second = list(before.shape.definitions.values()), list(after.shape.definitions.values())
    for key, definition in after.shape.definitions.items():
        if definition in first:
            first.remove(definition)
        else:
            yield DataDifference("index", name, key, None, definition)
    for key, definition in before.shape.definitions.items():
        if definition in second:
            second.remove(definition)
        else:
            yield DataDifference("index", name, key, definition, None)
