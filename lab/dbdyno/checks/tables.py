"""Compares the tables of a server with those that the engine creates (`run.description`).

Check P02 uses this module. `dbdyno run` uses it to decide whether it may use existing tables.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dbdyno.experiment.dialect import MYSQL
from dbdyno.run.description import Column, Index, Tables
from dbdyno.say.wording import rows_count
from dbdyno.servers.admin import answers
from dbdyno.servers.server import Server, StatementRefused
from dbdyno.text import compose, join

# Executes one administrative statement and returns its rows.
Query = Callable[[str], list[tuple[Any, ...]]]

# PostgreSQL's name of a type -> the engine's name.
_TYPES = {"int4": "int", "int8": "bigint", "bpchar": "char"}

_AUTO_INCREMENT = re.compile(r"\bAUTO_INCREMENT=(\d+)")


@dataclass
class Shape:
    """The definition of one table, from the server's catalogue."""

    engine: str = ""
    comment: str = ""
    columns: list[Column] = field(default_factory=list)
    # index name -> its columns in order.
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
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
        f"IS_NULLABLE, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema}",
        *(
            answers.text,
            answers.integer,
            answers.text,
            answers.text,
            answers.integer_or_none,
            answers.text,
            answers.text_or_empty,
        ),
    )
    for name, _, column, kind, length, nullable, extra in sorted(columns, key=lambda entry: entry[:2]):
        if name in shapes:
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
        "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME FROM information_schema.STATISTICS"
        f" WHERE TABLE_SCHEMA = {schema}",
        *(answers.text, answers.text, answers.integer, answers.text_or_empty),
    )
    for name, index, _, column in sorted(indexes, key=lambda entry: entry[:3]):
        if name in shapes:
            before = shapes[name].indexes.get(str(index), ())
            shapes[name].indexes[str(index)] = (*before, str(column))
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
    for name, column, kind, length, nullable, default in answers.rows(
        query,
        "SELECT c.relname, a.attname, t.typname, a.atttypmod - 4, NOT a.attnotnull, "
        "COALESCE(pg_get_expr(d.adbin, d.adrelid), a.attidentity::text) FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "JOIN pg_type t ON t.oid = a.atttypid "
        "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
        "WHERE c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, a.attnum",
        *(answers.text, answers.text, answers.text, answers.integer, bool, answers.text_or_empty),
    ):
        if name in shapes:
            is_serial = str(default).startswith("nextval(") or str(default) in ("a", "d")
            characters = int(length) if kind == "bpchar" else None
            type_name = _TYPES.get(kind, str(kind))
            shapes[name].columns.append(Column(str(column), type_name, characters, bool(nullable), is_serial))
    for name, index, primary, column in answers.rows(
        query,
        "SELECT t.relname, i.relname, x.indisprimary, a.attname FROM pg_index x "
        "JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid "
        "CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k(number, place) "
        "JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number "
        "WHERE t.relnamespace = current_schema()::regnamespace ORDER BY t.relname, i.relname, k.place",
        *(answers.text, answers.text, bool, answers.text),
    ):
        if name in shapes:
            key = "PRIMARY" if primary else str(index)
            shapes[name].indexes[key] = (*shapes[name].indexes.get(key, ()), str(column))
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


class Readers(NamedTuple):
    """How the tables of a protocol are read."""

    read_shapes: Callable[[Query, str, Iterable[str]], dict[str, Shape]]
    read_extent: Callable[[Query, str, str, Shape], Extent]


# Functions that read the tables, by protocol.
READERS: Mapping[str, Readers] = {
    "mysql": Readers(_mysql_shapes, _mysql_extent),
    "postgresql": Readers(_postgresql_shapes, _postgresql_extent),
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
