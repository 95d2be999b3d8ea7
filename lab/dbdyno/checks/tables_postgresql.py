"""The tables of the OLTP family as PostgreSQL has them, in the words of `tables`.

Rows are counted by `COUNT(*)`: over the index on k where its pages are known to be visible to all, as freshly
loaded and vacuumed ones are, else over the table, which PostgreSQL reads through a small ring of buffers.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbdyno.checks.tables import Extent, Query, Shape

# PostgreSQL's own names of types.
_TYPES = {"int4": "int", "int8": "bigint", "bpchar": "char"}


def shapes(query: Query, database: str, names: Iterable[str]) -> dict[str, Shape]:  # noqa: ARG001
    """The shape of those of the named tables that exist in the schema of the connection's database."""
    wanted = set(names)
    found: dict[str, Shape] = {}
    for name, kind, comment in query(
        "SELECT relname, relkind::text, COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')"
    ):
        if name in wanted:
            # It has no storage engines; what is no table is told by that name.
            found[name] = Shape(engine="" if kind in ("r", "p") else "view", comment=str(comment))
    for name, column, kind, length, nullable, default in query(
        "SELECT c.relname, a.attname, t.typname, a.atttypmod - 4, NOT a.attnotnull, "
        "COALESCE(pg_get_expr(d.adbin, d.adrelid), a.attidentity::text) FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "JOIN pg_type t ON t.oid = a.atttypid "
        "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
        "WHERE c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, a.attnum"
    ):
        if name in found:
            counts = str(default).startswith("nextval(") or str(default) in ("a", "d")
            characters = int(length) if kind == "bpchar" else None
            found[name].columns[str(column)] = (
                _TYPES.get(kind, str(kind)),
                characters,
                bool(nullable),
                counts,
            )
    for name, index, primary, column in query(
        "SELECT t.relname, i.relname, x.indisprimary, a.attname FROM pg_index x "
        "JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid "
        "CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k(number, place) "
        "JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number "
        "WHERE t.relnamespace = current_schema()::regnamespace ORDER BY t.relname, i.relname, k.place"
    ):
        if name in found:
            key = "PRIMARY" if primary else str(index)
            found[name].indexes[key] = (*found[name].indexes.get(key, ()), str(column))
    return found


def extent(query: Query, database: str, name: str, shape: Shape) -> Extent:  # noqa: ARG001
    """Count one table's rows, find its first and last id, and ask its sequence."""
    ((rows, id_min, id_max),) = query(f'SELECT COUNT(*), MIN(id), MAX(id) FROM "{name}"')
    following = None
    if shape.columns.get("id", ("", None, False, False))[3]:
        ((sequence,),) = query(f"SELECT pg_get_serial_sequence('\"{name}\"', 'id')")
        if sequence is not None:
            ((last, called),) = query(f"SELECT last_value, is_called FROM {sequence}")
            following = int(last) + bool(called)
    return Extent(
        rows=int(rows),
        id_min=None if id_min is None else int(id_min),
        id_max=None if id_max is None else int(id_max),
        auto_increment=following,
    )
