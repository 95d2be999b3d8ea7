"""Compares the tables of a server with those that the engine creates (`run.description`).

Check P02 uses this module. `dbdyno run` uses it to decide whether it may use existing tables.

Counting must disturb the trial as little as possible: `COUNT(*)` scans the index on k, the smallest copy of
the rows (about 13 bytes per row, against 200 in the table itself). InnoDB puts pages that only one scan has
read at the old end of its LRU list, so the scan evicts no frequently used page. `MIN(id)` and `MAX(id)` read
one page each. Every group begins with the same scan, so no variant and no block starts warmer than another.
Statistics (information_schema.TABLES.TABLE_ROWS) would cost nothing, but are wrong by tens of per cent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dbdyno.run.description import Column, Index, Tables
from dbdyno.servers.admin import answers
from dbdyno.text import compose, join

# Executes one administrative statement and returns its rows.
Query = Callable[[str], list[tuple[Any, ...]]]

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


def names_of_tables(query: Query, database: str) -> list[str]:
    """The tables and views in `database`."""
    rows = query(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {_literal(database)}"
    )
    return [str(name) for (name,) in rows]


def read_shapes(query: Query, database: str, names: Iterable[str]) -> dict[str, Shape]:
    """The shapes of those of the named tables that exist in `database`."""
    expected = set(names)
    shapes: dict[str, Shape] = {}
    schema = _literal(database)
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
    for name, _, column, kind, length, nullable, extra in sorted(columns, key=lambda one: one[:2]):
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
    for name, index, _, column in sorted(indexes, key=lambda one: one[:3]):
        if name in shapes:
            before = shapes[name].indexes.get(str(index), ())
            shapes[name].indexes[str(index)] = (*before, str(column))
    return shapes


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


def read_extent(query: Query, database: str, name: str, shape: Shape) -> Extent:
    """Count one table's rows and find its first and last id."""
    table = f"{_quoted(database)}.{_quoted(name)}"
    on_k = next((index for index, columns in shape.indexes.items() if columns == ("k",)), None)
    hint = f" FORCE INDEX ({_quoted(on_k)})" if on_k else ""
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


def extent_differences(extent: Extent, rows: int, tolerance: float = 0.0) -> Iterator[str]:
    """Differences of one table from ids 1 to `rows` without gaps, if larger than `tolerance` (a share)."""
    allowed = rows * tolerance
    if abs(extent.rows - rows) > allowed:
        yield compose("{rows:,} rows, not {rows_2:,}", rows=extent.rows, rows_2=rows)
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


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
