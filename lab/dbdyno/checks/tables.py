"""The tables of the OLTP family as a specification promises them, and as a server has them.

The promise is sysbench's schema (`oltp_common.lua`): sbtest1 to sbtestN with id, k, c and pad, an index on
k, ids 1 to table_size. Used by check P02, and by `dbdyno run` to tell whether tables that are already there
may be used.

What is counted, and why. Counting must not change what the trial measures more than it has to: `COUNT(*)`
is asked of the index on k, the smallest copy of the rows (some 13 bytes a row against 200 in the table
itself), and InnoDB keeps pages that one scan has read at the old end of its list, so nothing hot is pushed
out. `MIN(id)` and `MAX(id)` read one page each. It is done alike before every group, so no variant and no
block starts warmer than another. Statistics (information_schema.TABLES.TABLE_ROWS) would cost nothing and
are wrong by tens of per cent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dbdyno.experiment.model import OltpWorkload

# Runs one administrative statement and gives its rows.
Query = Callable[[str], list[tuple[Any, ...]]]

_AUTO_INCREMENT = re.compile(r"\bAUTO_INCREMENT=(\d+)")

# Beyond the last id of a signed 32-bit column, id and k are BIGINT.
_INT_MAX = 2**31 - 1

# name -> (type, length of a CHAR); every column is NOT NULL.
Columns = dict[str, tuple[str, int | None]]


@dataclass(frozen=True)
class DataSpec:
    """What decides which tables and rows there are; workloads with equal ones share their tables."""

    tables: int
    table_size: int
    auto_inc: bool
    secondary: bool
    create_secondary: bool
    engine: str
    # Tables of bulk_insert: id and k alone, empty at first, later with as many rows as there were events.
    bulk: bool = False

    @classmethod
    def of(cls, workload: OltpWorkload) -> DataSpec:
        """The data a workload runs over."""
        if workload.fills_own_tables:
            return cls(
                workload.tables, 0, False, False, False, workload.mysql_storage_engine.lower(), bulk=True
            )
        return cls(
            tables=workload.tables,
            table_size=workload.table_size,
            auto_inc=workload.auto_inc,
            secondary=workload.secondary,
            create_secondary=workload.create_secondary,
            engine=workload.mysql_storage_engine.lower(),
        )

    def columns(self) -> Columns:
        """The columns of each table, in order."""
        integer = "bigint" if self.table_size > _INT_MAX else "int"
        numbers: Columns = {"id": (integer, None), "k": (integer, None)}
        return numbers if self.bulk else {**numbers, "c": ("char", 120), "pad": ("char", 60)}

    def names(self) -> list[str]:
        """The tables' names, in order."""
        return [f"sbtest{index}" for index in range(1, self.tables + 1)]


@dataclass
class Shape:
    """What a server says of one table without reading its rows."""

    engine: str = ""
    comment: str = ""
    # name -> (type, length, nullable, auto-increment), in order.
    columns: dict[str, tuple[str, int | None, bool, bool]] = field(default_factory=dict)
    # index name -> its columns in order.
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Extent:
    """The rows of one table. `id_min` and `id_max` are None for an empty one."""

    rows: int
    id_min: int | None
    id_max: int | None
    # The id the next row without one would get; None where the server does not say (sql_mode = ANSI).
    auto_increment: int | None


def shapes(query: Query, database: str, names: Iterable[str]) -> dict[str, Shape]:
    """The shape of those of the named tables that exist in `database`."""
    wanted = set(names)
    found: dict[str, Shape] = {}
    schema = _literal(database)
    for name, engine, comment in query(
        "SELECT TABLE_NAME, ENGINE, TABLE_COMMENT FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = {schema}"
    ):
        if name in wanted:
            found[name] = Shape(engine=str(engine or "view").lower(), comment=str(comment))
    # Sorted here: a server whose sort buffer is part of the experiment may be unable to.
    columns = query(
        "SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, "
        f"IS_NULLABLE, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema}"
    )
    for name, _, column, kind, length, nullable, extra in sorted(
        columns, key=lambda row: (row[0], int(row[1]))
    ):
        if name in found:
            found[name].columns[str(column)] = (
                str(kind).lower(),
                None if length is None else int(length),
                str(nullable).upper() == "YES",
                "auto_increment" in str(extra).lower(),
            )
    indexes = query(
        "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME FROM information_schema.STATISTICS"
        f" WHERE TABLE_SCHEMA = {schema}"
    )
    for name, index, _, column in sorted(indexes, key=lambda row: (row[0], row[1], int(row[2]))):
        if name in found:
            before = found[name].indexes.get(str(index), ())
            found[name].indexes[str(index)] = (*before, str(column))
    return found


def shape_faults(shape: Shape, spec: DataSpec) -> Iterator[str]:
    """What keeps one table from being the one the specification names, each as a few words."""
    # Empty where the server has no storage engines.
    if shape.engine not in ("", spec.engine):
        yield f"storage engine is {shape.engine}, not {spec.engine}"
    wanted = spec.columns()
    if list(shape.columns) != list(wanted):
        yield f"columns are {', '.join(shape.columns) or 'none'}, not {', '.join(wanted)}"
    for name, (kind, length) in wanted.items():
        if name not in shape.columns:
            continue
        has_kind, has_length, nullable, increments = shape.columns[name]
        if (has_kind, has_length) != (kind, length):
            yield f"{name} is {_spelt(has_kind, has_length)}, not {_spelt(kind, length)}"
        if nullable:
            yield f"{name} may be NULL"
        if name == "id" and increments != spec.auto_inc:
            yield "id is AUTO_INCREMENT" if increments else "id is not AUTO_INCREMENT"
    yield from _index_faults(shape, spec)


def _index_faults(shape: Shape, spec: DataSpec) -> Iterator[str]:
    has_primary = shape.indexes.get("PRIMARY") == ("id",)
    on_id = [name for name, columns in shape.indexes.items() if columns == ("id",) and name != "PRIMARY"]
    if spec.secondary and (has_primary or not on_id):
        yield "id has no secondary index in place of the primary key"
    if not spec.secondary and not has_primary:
        yield "id is not the primary key"
    on_k = [name for name, columns in shape.indexes.items() if columns == ("k",)]
    if spec.create_secondary and not on_k:
        yield "there is no index on k"
    if not spec.create_secondary and on_k:
        yield "there is an index on k"
    # Every further index is work that each write has to do.
    expected = {"PRIMARY", *on_k[:1], *(on_id[:1] if spec.secondary else ())}
    extra = sorted(set(shape.indexes) - expected)
    if extra and not (extra == on_k and not spec.create_secondary):
        yield f"there are further indexes: {', '.join(extra)}"


def extent(query: Query, database: str, name: str, shape: Shape) -> Extent:
    """Count one table's rows and find its first and last id. See above for what is read."""
    table = f"{_quoted(database)}.{_quoted(name)}"
    on_k = next((index for index, columns in shape.indexes.items() if columns == ("k",)), None)
    hint = f" FORCE INDEX ({_quoted(on_k)})" if on_k else ""
    ((rows,),) = query(f"SELECT COUNT(*) FROM {table}{hint}")
    ((id_min, id_max),) = query(f"SELECT MIN(id), MAX(id) FROM {table}")
    # SHOW CREATE TABLE asks the table itself; information_schema may answer from a cache that is a day old.
    ((_, statement, *_),) = query(f"SHOW CREATE TABLE {table}")
    match = _AUTO_INCREMENT.search(str(statement))
    return Extent(
        rows=int(rows),
        id_min=None if id_min is None else int(id_min),
        id_max=None if id_max is None else int(id_max),
        auto_increment=int(match[1]) if match else None,
    )


def extent_faults(found: Extent, spec: DataSpec, tolerance: float = 0.0) -> Iterator[str]:
    """How one table's rows differ from ids 1 to table_size without gaps, by more than `tolerance` (a
    share).
    """
    allowed = spec.table_size * tolerance
    if abs(found.rows - spec.table_size) > allowed:
        yield f"{found.rows:,} rows, not {spec.table_size:,}"
    if found.id_min is None or found.id_max is None:
        return
    if abs(found.id_min - 1) > allowed:
        yield f"ids begin at {found.id_min:,}, not at 1"
    if abs(found.id_max - spec.table_size) > allowed:
        yield f"ids end at {found.id_max:,}, not at {spec.table_size:,}"
    gaps = found.id_max - found.id_min + 1 - found.rows
    if gaps > allowed:
        yield f"{gaps:,} ids between {found.id_min:,} and {found.id_max:,} have no row"


def _spelt(kind: str, length: int | None) -> str:
    return kind if length is None else f"{kind}({length})"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
