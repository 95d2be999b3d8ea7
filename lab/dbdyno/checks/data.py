"""Checks of the data: the tables (P02), and their size compared with that of the cache (P14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from dbdyno.checks.register import Context, Moment, check
from dbdyno.checks.tables import Extent, extent_differences, read_extent, shape_differences, shapes
from dbdyno.experiment.model import OltpWorkload, SqlWorkload, Workload
from dbdyno.experiment.quantities import number
from dbdyno.finding import Finding, Level
from dbdyno.run.description import Tables, describe
from dbdyno.say.wording import rows_count
from dbdyno.servers.admin import answers
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.server import Address, Description, Server
from dbdyno.text import compose, join, join_some, mark

# Maximum share of rows and ids that the trials of a group may change; otherwise late trials use other data
# than early ones.
DRIFT_SHARE = 0.01

# Maximum number of tables named in a message.
_NAMED_MAX = 5

# Range of the ratio of data to cache in which a small difference in caching causes a large difference in
# reads.
BORDERLINE = (0.8, 1.25)
MIB, GIB = 1024.0**2, 1024.0**3


@check(
    "P02",
    "Data match their specification",
    Moment.READY,
    Moment.AFTER_GROUP,
    in_sweep=(Moment.READY, Moment.AFTER_GROUP),
    needs_data=True,
    admits_tables=True,
    caveat=mark("the tables differ from the declaration"),
)
def specified_tables(moment: Moment, context: Context, server: Server) -> Iterator[Finding]:
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
    tolerance = DRIFT_SHARE if moment is Moment.AFTER_GROUP else 0.0
    workloads = context.workloads
    # Workloads that only insert or only delete change the number of rows, so it cannot be checked afterwards.
    checked = [workload for workload in workloads if moment is Moment.READY or not workload.changes_row_count]
    protocol = server.address().protocol
    oltp = (workload for workload in checked if isinstance(workload, OltpWorkload))
    # Tables that several workloads use are checked once.
    distinct = {
        tables: None
        for workload in oltp
        for tables in describe(context.experiment, workload, protocol).tables
    }
    changed_by = context.variant.data.after if context.variant is not None else ()
    for tables in distinct:
        yield from _find_differences(
            server, tables, tolerance, context.subject, changed_by_variant=bool(changed_by)
        )
    for workload in checked:
        if isinstance(workload, SqlWorkload):
            yield from _find_sql_differences(server, workload, context.subject)


def _find_differences(
    server: Server, tables: Tables, tolerance: float, subject: str, *, changed_by_variant: bool
) -> Iterator[Finding]:
    """Findings if the tables in the load's database differ from `tables`. The number of rows and the ids may
    differ by `tolerance`, a share. With `changed_by_variant`, other differences are intended.
    """
    database = server.address().database
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
        yield _tables_finding("note", text, {"tables": differences}, subject, "")
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
    extents = {name: read_extent(server, name, shape) for name, shape in existing.items()}
    yield from _check_rows(extents, tables, tolerance, database, subject)


def _missing_finding(missing: list[str], tables: Tables, database: str, subject: str) -> Finding:
    return _tables_finding(
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
    return _tables_finding("note", text, {}, subject, "")


def _find_sql_differences(server: Server, workload: SqlWorkload, subject: str) -> Iterator[Finding]:
    """Findings if the tables differ from those that the user's statements and generators create."""
    address = server.address()
    names = workload.created_tables(address.protocol)
    existing = shapes(server, names)
    missing = [name for name in names if name not in existing]
    if missing:
        yield _tables_finding(
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
                differences[name] = [compose("{count}, not {rows:,}", count=rows_count(count), rows=rows)]
    if differences:
        yield _differences_finding(
            compose("do not have the specified number of rows"), differences, address.database, subject
        )


def _qualified_name(address: Address, name: str) -> str:
    """The qualified name of a table of the load, for the administrator's connection."""
    in_database = address.dialect.has_schemas or "." in name
    return name if in_database else f"{address.dialect.quote(address.database)}.{name}"


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
            yield _tables_finding(
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
    return _tables_finding(
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


def _tables_finding(level: Level, text: str, evidence: dict[str, object], subject: str, fix: str) -> Finding:
    return Finding("P02", level, text, evidence, subject, fix=fix)


@check(
    "P14",
    "Data are clearly smaller or larger than the cache",
    Moment.READY,
    caveat=mark("the data are about as large as the cache"),
)
def size_of_data_and_cache(
    context: Context, description: Description, workload: Workload
) -> Iterator[Finding]:
    """Finds data whose size is close to that of the cache.

    Catches results that depend on which pages happen to be cached. A published benchmark had 40 GB of data
    for a buffer pool of 40 GB.

    Rule: the ratio of data and indexes to the cache must be below 0.8 or above 1.25; otherwise the
    finding is a warning. A note says whether the data fit. PostgreSQL also uses the OS page cache, so its
    finding is always a note.
    """
    data_bytes, cache_bytes = description.data_bytes or 0, _cache_bytes(description)
    if not data_bytes or not cache_bytes:
        return
    ratio = data_bytes / cache_bytes
    is_borderline = BORDERLINE[0] <= ratio <= BORDERLINE[1]
    is_postgresql = description.product == "postgresql"
    label = "borderline" if is_borderline else "in memory" if ratio < 1 else "more than the cache holds"
    values = {
        "workload": workload.title,
        "size": _size_text(data_bytes),
        "cache": PRODUCTS[description.product].cache_title,
        "cache_size": _size_text(cache_bytes),
    }
    if is_borderline:
        text = compose(
            "data and indexes of {workload} ({size}) are about as large as {cache} ({cache_size})", **values
        )
    elif ratio < 1:
        text = compose("data and indexes of {workload} ({size}) fit in {cache} ({cache_size})", **values)
    else:
        text = compose(
            "data and indexes of {workload} ({size}) do not fit in {cache} ({cache_size})", **values
        )
    if is_postgresql:
        text += compose(". PostgreSQL also uses the OS page cache")
    is_warning = is_borderline and not is_postgresql
    if is_warning:
        text += compose(". A small difference in caching then causes a large difference in reads")
    yield Finding(
        code="P14",
        level="warn" if is_warning else "note",
        text=text,
        evidence={
            "data_bytes": data_bytes,
            "cache_bytes": cache_bytes,
            "ratio": round(ratio, 3),
            "label": label,
        },
        subject=context.subject,
        fix=compose("Choose a buffer pool well above or below the size of the data") if is_warning else "",
    )


def _size_text(size_bytes: int) -> str:
    return (
        compose("{size_bytes:,.2f} GiB", size_bytes=size_bytes / GIB)
        if size_bytes >= GIB
        else compose("{size_bytes:.1f} MiB", size_bytes=size_bytes / MIB)
    )


def _cache_bytes(description: Description) -> int:
    name = PRODUCTS[description.product].cache_variable
    return int(number(description.variables.get(name, "")) or Decimal(0))
