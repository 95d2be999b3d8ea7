"""Reads the tables of a PostgreSQL server into the types of the module `tables`.

`COUNT(*)` reads the index on k if its pages are known to be visible to all transactions, as after a vacuum;
otherwise it reads the table, through a small ring of buffers.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbdyno.checks.tables import Extent, Query, Shape
from dbdyno.run.description import Column
from dbdyno.servers.admin import answers

# PostgreSQL's name of a type -> the engine's name.
_TYPES = {"int4": "int", "int8": "bigint", "bpchar": "char"}


def read_shapes(query: Query, database: str, names: Iterable[str]) -> dict[str, Shape]:  # noqa: ARG001
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


def read_extent(query: Query, database: str, name: str, shape: Shape) -> Extent:  # noqa: ARG001
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
