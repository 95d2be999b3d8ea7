"""P02: tables and rows must match their specification, before the load and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dbdyno.checks import tables_postgresql
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.tables import (
    Extent,
    Query,
    Shape,
    extent_differences,
    names_of_tables,
    read_extent,
    read_shapes,
    shape_differences,
)
from dbdyno.experiment.model import OltpWorkload, SqlWorkload
from dbdyno.finding import Finding, Level
from dbdyno.run.description import Tables, describe
from dbdyno.servers.admin import answers
from dbdyno.servers.server import Address, Server, StatementRefused
from dbdyno.text import compose, join, join_some, mark

# Maximum share of rows and ids that the trials of a group may change; otherwise late trials use other data
# than early ones.
DRIFT_SHARE = 0.01

# Maximum number of tables named in a message.
_NAMED_MAX = 5


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds missing tables, wrong columns, indexes or storage engines, and unexpected rows and ids.

    Catches a load that uses other rows than those that were loaded. A published benchmark loaded 100,000 rows
    per table and used ids up to 1,000,000: nine statements in ten matched no row, and every DELETE + INSERT
    pair made the tables grow.

    Rule: before the load, the tables must have the columns, indexes and storage engine that the engine
    creates, and exactly the ids 1 to table_size; after a group, the number of rows and the ids must be within
    1 % of these. Any larger difference is a stop. An AUTO_INCREMENT counter other than table_size + 1 on
    fresh data is a warning: rows were inserted and deleted after loading. For the user's own SQL, the tables
    that `setup` creates must exist before the load, and generated tables must have their number of rows. For
    a bundled OLTP workload, a note lists what a variant's `data.after` changed in columns, indexes and
    storage engine.
    """
    if context.server is None:
        return
    tolerance = DRIFT_SHARE if moment is Moment.AFTER_GROUP else 0.0
    workloads = context.workloads
    # Workloads that only insert or only delete change the number of rows, so it cannot be checked afterwards.
    checked = [workload for workload in workloads if moment is Moment.READY or not workload.changes_row_count]
    protocol = context.server.address().protocol
    oltp = (workload for workload in checked if isinstance(workload, OltpWorkload))
    # Tables that several workloads use are checked once.
    distinct = {
        tables: None
        for workload in oltp
        for tables in describe(context.experiment, workload, protocol).tables
    }
    changed_by = context.variant.data.after if context.variant is not None else ()
    for tables in distinct:
        yield from find_differences(
            context.server, tables, tolerance, context.subject, changed_by_variant=bool(changed_by)
        )
    for workload in checked:
        if isinstance(workload, SqlWorkload):
            yield from find_sql_differences(context.server, workload, context.subject)


class _Readers(NamedTuple):
    read_shapes: Callable[[Query, str, Iterable[str]], dict[str, Shape]]
    read_extent: Callable[[Query, str, str, Shape], Extent]


# Functions that read the tables, by protocol.
_READERS: Mapping[str, _Readers] = {
    "mysql": _Readers(read_shapes, read_extent),
    "postgresql": _Readers(tables_postgresql.read_shapes, tables_postgresql.read_extent),
}


def shapes(server: Server, names: Iterable[str]) -> dict[str, Shape]:
    """The shapes of the named tables, as far as they exist in the load's database."""
    address, names = server.address(), list(names)
    try:
        stored = _stored_names(server, names)
        shapes_by_name = _READERS[address.protocol].read_shapes(server.query, address.database, stored)
        return {stored[name]: shape for name, shape in shapes_by_name.items()}
    except StatementRefused:
        if server.private:
            raise
        return {name: Shape(is_known=False) for name in names if _can_read(server, name)}


def _stored_names(server: Server, names: Sequence[str]) -> dict[str, str]:
    """For the name of each table in the server's catalogue: its name in `names`."""
    address = server.address()
    if address.protocol != "mysql" or server.variables().get("lower_case_table_names", "0") == "0":
        return {name: name for name in names}
    # The server takes Item for item.
    by_lower_case = {name.lower(): name for name in names}
    return {
        name: by_lower_case[name.lower()]
        for name in names_of_tables(server.query, address.database)
        if name.lower() in by_lower_case
    }


def _can_read(server: Server, name: str) -> bool:
    """Whether a server without a catalogue has a table."""
    try:
        server.query(f"SELECT COUNT(*) FROM {name} WHERE 1 = 0")
    except StatementRefused:
        return False
    return True


def find_differences(
    server: Server,
    tables: Tables,
    tolerance: float,
    subject: str = "",
    *,
    changed_by_variant: bool = False,
) -> Iterator[Finding]:
    """Findings if the tables in the load's database differ from `tables`. The number of rows and the ids may
    differ by `tolerance`, a share. With `changed_by_variant`, other differences are intended.
    """
    query, database = server.query, server.address().database
    existing = shapes(server, tables.names)
    if missing := [name for name in tables.names if name not in existing]:
        yield _missing_finding(missing, tables, database, subject)
    differences = {
        name: differences
        for name, shape in existing.items()
        if shape.is_known and (differences := list(shape_differences(shape, tables)))
    }
    if any(not shape.is_known for shape in existing.values()):
        yield _unknown_finding(database, subject)
    if differences and changed_by_variant:
        details = join("; ", (join(": ", (name, join(", ", differences[name]))) for name in differences))
        text = compose(
            "data.after of {subject} changed the tables in {database}: {details}",
            subject=subject,
            database=database,
            details=details,
        )
        yield _finding("note", text, {"tables": differences}, subject, "")
    elif differences:
        yield _differences_finding(
            compose("do not have the specified columns, indexes or storage engine"),
            differences,
            database,
            subject,
        )
        # The row count of a wrong table means nothing, and counting may take an hour.
        return
    if not tables.rows:
        return  # The workload itself fills the tables, one row per event.
    read = _READERS[server.address().protocol].read_extent
    extents = {name: read(query, database, name, shape) for name, shape in existing.items()}
    yield from _check_rows(extents, tables, tolerance, database, subject)


def _missing_finding(missing: list[str], tables: Tables, database: str, subject: str) -> Finding:
    return _finding(
        "stop",
        compose(
            "{number} of {number_2} tables are missing in {database}: {shorten}",
            number=len(missing),
            number_2=len(tables.names),
            database=database,
            shorten=join_some(missing, _NAMED_MAX),
        ),
        {"missing": missing[:_NAMED_MAX], "missing_count": len(missing)},
        subject,
        compose("Load them with the same options as the run"),
    )


def _unknown_finding(database: str, subject: str) -> Finding:
    text = compose(
        "the columns and indexes of the tables in {database} are not checked: the server has no catalogue "
        "that dbdyno can read",
        database=database,
    )
    return _finding("note", text, {}, subject, "")


def find_sql_differences(server: Server, workload: SqlWorkload, subject: str = "") -> Iterator[Finding]:
    """Findings if the tables differ from those that the user's statements and generators create."""
    address = server.address()
    names = workload.created_tables(address.protocol)
    existing = shapes(server, names)
    missing = [name for name in names if name not in existing]
    if missing:
        yield _finding(
            "stop",
            compose(
                "{number} of {number_2} tables of {title} are missing in {database}: {shorten}",
                number=len(missing),
                number_2=len(names),
                title=workload.title,
                database=address.database,
                shorten=join_some(missing, _NAMED_MAX),
            ),
            {"missing": missing[:_NAMED_MAX], "missing_count": len(missing)},
            subject,
            compose("Load them with the same setup as the run"),
        )
    differences = {}
    for name, rows in workload.row_counts.items():
        if name in existing:
            sql = f"SELECT COUNT(*) FROM {_qualified_name(address, names[name])}"
            count = answers.value(server.query, sql, answers.integer)
            if count != rows:
                differences[name] = [compose("{count:,} rows, not {rows:,}", count=count, rows=rows)]
    if differences:
        yield _differences_finding(
            compose("do not have the specified number of rows"), differences, address.database, subject
        )


def _qualified_name(address: Address, name: str) -> str:
    """The qualified name of a table of the load, for the administrator's connection."""
    if address.protocol == "postgresql" or "." in name:
        return name
    return f"`{address.database}`.{name}"


def _check_rows(
    extents: dict[str, Extent], tables: Tables, tolerance: float, database: str, subject: str
) -> Iterator[Finding]:
    differences = {
        name: differences
        for name, extent in extents.items()
        if (differences := list(extent_differences(extent, tables.rows, tolerance)))
    }
    if differences:
        yield _differences_finding(
            compose("do not have the specified rows and ids"), differences, database, subject
        )
    if not tolerance and not differences and tables.columns[0].auto_increment:
        moved = [
            name for name, extent in extents.items() if extent.auto_increment not in (None, tables.rows + 1)
        ]
        if moved:
            first = extents[moved[0]].auto_increment
            yield _finding(
                "warn",
                compose(
                    "AUTO_INCREMENT of {shorten} in {database} is not {rows:,} ({moved}: {first}): rows were "
                    "inserted and deleted after loading, so pages may be fuller or emptier than after "
                    "loading",
                    shorten=join_some(moved, _NAMED_MAX),
                    database=database,
                    rows=tables.rows + 1,
                    moved=moved[0],
                    first=first,
                ),
                {"tables": moved[:_NAMED_MAX], "auto_increment": first, "expected": tables.rows + 1},
                subject,
                compose("Load the tables again"),
            )


def _differences_finding(
    what: str, differences: Mapping[str, Sequence[str]], database: str, subject: str
) -> Finding:
    named = list(differences)[:_NAMED_MAX]
    details = join("; ", (join(": ", (name, join(", ", differences[name]))) for name in named))
    more = (
        compose("; and {number} more", number=len(differences) - len(named))
        if len(differences) > len(named)
        else ""
    )
    return _finding(
        "stop",
        compose(
            "{number} of the tables in {database} {what}: {details}{more}",
            number=len(differences),
            database=database,
            what=what,
            details=details,
            more=more,
        ),
        {"tables": {name: differences[name] for name in named}, "count": len(differences)},
        subject,
        compose("Load and run with the same options, or use another database"),
    )


def _finding(level: Level, text: str, evidence: dict[str, object], subject: str, fix: str) -> Finding:
    return Finding("P02", level, text, evidence, subject, fix=fix)


CHECK = Check(
    "P02",
    "Data match their specification",
    frozenset({Moment.READY, Moment.AFTER_GROUP}),
    find,
    caveat=mark("the tables differ from the declaration"),
)
