"""Checks of the data: the tables (P02), their size compared with that of the cache (P14), and existing data
compared between variants (P29).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal

from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.checks.tables import (
    ExistingTable,
    ExistingTables,
    Extent,
    data_differences,
    extent_differences,
    read_existing,
    read_extent,
    shape_differences,
    shapes,
)
from dbdyno.experiment.dialect import DIALECTS
from dbdyno.experiment.differences import DataDifference, list_differences
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload, Variant, Workload
from dbdyno.experiment.quantities import number
from dbdyno.experiment.server import may_be_one_database
from dbdyno.experiment.sql_text import first_word, parse_statement, table_names
from dbdyno.finding import Finding, Level
from dbdyno.result_text import rows_count
from dbdyno.run.description import Tables, describe
from dbdyno.servers.admin import answers
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.server import Address, Description, Server
from dbdyno.text import compose, join, join_some, mark

# Maximum share of rows and ids that the trials of a group may change; otherwise late trials use other data
# than early ones.
DRIFT_SHARE = 0.01

# Maximum number of tables named in a message.
_NAMED_MAX = 5

# Statistics of the optimizer are stale if a larger share of the rows has changed since, and differ much in
# age if there is more time between those of two variants.
STALE_SHARE = 0.1
AGE_DIFFERENCE_S = 7 * 86_400
# Statements that name no table, also if they cannot be parsed.
_WITHOUT_TABLES = ("SET", "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")

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
            yield from _find_sql_differences(server, workload)


def _find_differences(
    server: Server, tables: Tables, tolerance: float, subject: str, *, changed_by_variant: bool
) -> Iterator[Finding]:
    """Findings if the tables in the load's database differ from `tables`. The number of rows and the ids may
    differ by `tolerance`, a share. With `changed_by_variant`, other differences are intended.
    """
    database = server.address().database
    existing = shapes(server, tables.names)
    if missing := [name for name in tables.names if name not in existing]:
        yield _missing_finding(missing, tables, database)
    differences = {
        name: differences
        for name, shape in existing.items()
        if shape.is_known and (differences := list(shape_differences(shape, tables)))
    }
    if any(not shape.is_known for shape in existing.values()):
        yield _unknown_finding(database)
    if differences and changed_by_variant:
        details = join("; ", (join(": ", (name, join(", ", differences[name]))) for name in differences))
        text = compose(
            "data.after of {subject} changed the tables in {database}: {details}",
            subject=subject,
            database=database,
            details=details,
        )
        yield make_finding("note", text, {"tables": differences})
    elif differences:
        yield _differences_finding(
            compose("do not have the specified columns, indexes or storage engine"),
            differences,
            database,
        )
        # The row count of a wrong table means nothing, and counting may take an hour.
        return
    if not tables.rows:
        return  # The workload itself fills the tables, one row per event.
    extents = {name: read_extent(server, name, shape) for name, shape in existing.items()}
    yield from _check_rows(extents, tables, tolerance, database)


def _missing_finding(missing: list[str], tables: Tables, database: str) -> Finding:
    return make_finding(
        "stop",
        compose(
            "{number} of {number_2} tables are missing in {database}: {shorten}",
            number=len(missing),
            number_2=len(tables.names),
            database=database,
            shorten=join_some(missing, _NAMED_MAX),
        ),
        {"missing": missing[:_NAMED_MAX], "missing_count": len(missing)},
        compose("Load them with the same options as the run"),
    )


def _unknown_finding(database: str) -> Finding:
    text = compose(
        "the columns and indexes of the tables in {database} are not checked: the server has no catalogue "
        "that dbdyno can read",
        database=database,
    )
    return make_finding("note", text)


def _find_sql_differences(server: Server, workload: SqlWorkload) -> Iterator[Finding]:
    """Findings if the tables differ from those that the user's statements and generators create."""
    address = server.address()
    names = workload.created_tables(address.protocol)
    existing = shapes(server, names)
    missing = [name for name in names if name not in existing]
    if missing:
        yield make_finding(
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
            compose("do not have the specified number of rows"), differences, address.database
        )


def _qualified_name(address: Address, name: str) -> str:
    """The qualified name of a table of the load, for the administrator's connection."""
    in_database = address.dialect.has_schemas or "." in name
    return name if in_database else f"{address.dialect.quote(address.database)}.{name}"


def _check_rows(
    extents: dict[str, Extent], tables: Tables, tolerance: float, database: str
) -> Iterator[Finding]:
    differences = {
        name: differences
        for name, extent in extents.items()
        if (differences := list(extent_differences(extent, tables.rows, tolerance)))
    }
    if differences:
        yield _differences_finding(compose("do not have the specified rows and ids"), differences, database)
    if not tolerance and not differences and tables.columns[0].auto_increment:
        moved = [
            name for name, extent in extents.items() if extent.auto_increment not in (None, tables.rows + 1)
        ]
        if moved:
            first = extents[moved[0]].auto_increment
            yield make_finding(
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
                compose("Load the tables again"),
            )


def _differences_finding(what: str, differences: Mapping[str, Sequence[str]], database: str) -> Finding:
    named = list(differences)[:_NAMED_MAX]
    details = join("; ", (join(": ", (name, join(", ", differences[name]))) for name in named))
    more = (
        compose("; and {number} more", number=len(differences) - len(named))
        if len(differences) > len(named)
        else ""
    )
    return make_finding(
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
        compose("Load and run with the same options, or use another database"),
    )


@check(
    "P14",
    "Data are clearly smaller or larger than the cache",
    Moment.READY,
    caveat=mark("the data are about as large as the cache"),
)
def size_of_data_and_cache(description: Description, workload: Workload) -> Iterator[Finding]:
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
    yield make_finding(
        "warn" if is_warning else "note",
        text,
        {
            "data_bytes": data_bytes,
            "cache_bytes": cache_bytes,
            "ratio": round(ratio, 3),
            "label": label,
        },
        compose("Choose a buffer pool well above or below the size of the data") if is_warning else "",
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


def read_existing_tables(experiment: Experiment, variant: Variant, server: Server) -> ExistingTables | None:
    """Facts about the tables that the run uses and does not create; None if there are none, or if no other
    variant has them in another database.
    """
    peers = experiment.variants[1:] if variant is experiment.variants[0] else experiment.variants[:1]
    if not any(_have_own_data(variant, peer) for peer in peers):
        return None
    protocol = server.address().protocol
    names, created = _existing_names(experiment, protocol)
    return None if names == [] else read_existing(server, names, created)


def _have_own_data(first: Variant, second: Variant) -> bool:
    """Whether two variants use two databases of servers that dbdyno does not start."""
    places = first.server.data_location, second.server.data_location
    return places[0] is not None and places[1] is not None and not may_be_one_database(places[0], places[1])


def _existing_names(experiment: Experiment, protocol: str) -> tuple[list[str] | None, set[str]]:
    """The tables that the statements of any variant name and the run does not create, or None if the
    statements are unknown; and the tables that the run creates.
    """
    dialect = DIALECTS[protocol]
    workloads = list(experiment.distinct_workloads())
    for workload in experiment.distinct_workloads():
        if not isinstance(workload, ScriptWorkload):
            workloads += workload.background
    names: dict[str, None] = {}
    created: set[str] = set()
    is_unknown = False
    for workload in workloads:
        if isinstance(workload, OltpWorkload):
            created |= {*describe(experiment, workload, protocol).table_names()}
        elif isinstance(workload, ScriptWorkload):
            is_unknown |= not workload.prepare
        else:
            created |= {*workload.created_tables(protocol)}
            statements = [statement.sql for _, _, statement in workload.named_statements()]
            names |= dict.fromkeys(table_names(statements, dialect))
            is_unknown |= workload.replay is not None or any(
                parse_statement(sql, dialect) is None and first_word(sql, dialect) not in _WITHOUT_TABLES
                for sql in statements
            )
    return None if is_unknown else [name for name in names if name not in created], created


@check(
    "P29",
    "Variants have the same data",
    Moment.READY,
    at_first_start=True,
    of_comparison=True,
    caveat={
        "statistics": mark("the optimizer's statistics are stale or of different ages"),
        "": mark("the existing data differ"),
    },
)
def same_data(context: Context, variant: Variant, existing_tables: ExistingTables) -> Iterator[Finding]:
    """Finds existing tables that differ between variants on servers that dbdyno does not start.

    Catches a difference that is one of the data. A comparison of a table with and without an index used a
    copy of 302,000 rows of a table of 479,000.

    Rule: before anything is loaded, and at the first start of each variant, the tables that the statements
    name and the run does not create are compared with those of the baseline; every table of the database, if
    the statements are unknown, as those of a replay. A table that one side lacks is a stop, and so are rows
    that differ by more than 1 %. Tables of up to 1,000,000 rows, and up to 10,000,000 rows in all, are
    counted; for others the servers' estimates may differ by 10 %, and a note names these tables. Other
    columns, storage or collation are a warning. Other indexes are a note if the URL (or `data.after`) is all
    that the experiment declares for the variant; otherwise two things differ, which is a warning. Statistics
    of the optimizer that are seven days older than those of the other variant are a warning, and so are those
    of PostgreSQL since which more than 10 % of the rows have changed. Variants on one database are not
    compared, and neither are definitions of servers that speak different protocols.
    """
    if existing_tables.refusal:
        text = compose(
            "existing tables are not compared, because the server does not describe them: {refusal}",
            refusal=existing_tables.refusal,
        )
        yield make_finding("note", text)
        return
    yield from _stale_findings(existing_tables, context.subject)
    sides = {**context.peer_tables, variant.name: existing_tables}
    baseline = sides.pop(context.baseline.name, None)
    if baseline is None or baseline.refusal:
        return
    for name, tables in sides.items():
        compared = context.experiment.variant(name)
        is_new = variant.name in (name, context.baseline.name)
        if is_new and not tables.refusal and _have_own_data(context.baseline, compared):
            yield from _data_findings(context, compared, baseline, tables)
            yield from _age_findings(context.baseline.name, name, baseline, tables)
            yield from _inexact_findings(context.baseline.name, name, baseline, tables)


def _data_findings(
    context: Context, variant: Variant, baseline: ExistingTables, tables: ExistingTables
) -> Iterator[Finding]:
    """Findings about rows and definitions, one for each level."""
    names = {"name": variant.name, "baseline": context.baseline.name}
    by_kind: dict[str, list[DataDifference]] = {"content": [], "definition": [], "index": []}
    for entry in data_differences(baseline, tables):
        kind = {"index": "index", "column": "definition", "storage": "definition"}.get(entry.what, "content")
        by_kind[kind].append(entry)
    keys = [key for key in list_differences(context.experiment, variant) if key != "url"]
    is_declared = "data.after" in keys
    further = [key for key in keys if key != "data.after"]
    if content := by_kind["content"]:
        is_estimate = any(entry.what == "estimated rows" for entry in content)
        text = compose(
            "{name} has other data than {baseline}: {listed}. A measured difference may be one of the data",
            listed=_listed(content),
            **names,
        )
        fix = (
            compose("Update the statistics of both, load the same data into both databases, or override P29")
            if is_estimate
            else compose("Load the same data into both databases, or override P29")
        )
        yield _data_finding("stop", text, content, variant.name, fix)
    if definition := by_kind["definition"]:
        text = compose(
            "{name} defines its tables in another way than {baseline}: {listed}. A measured difference may "
            "be one of the tables",
            listed=_listed(definition),
            **names,
        )
        level: Level = "note" if is_declared else "warn"
        fix = compose("Define the tables alike")
        yield _data_finding(level, text, definition, variant.name, "" if is_declared else fix)
    if indexes := by_kind["index"]:
        text = compose("{name} has other indexes than {baseline}: {listed}", listed=_listed(indexes), **names)
        if not further:
            yield _data_finding("note", text, indexes, variant.name, "")
            return
        text += compose(
            ". The experiment also declares other differences ({keys}), whose effects cannot be "
            "separated from that of the indexes",
            keys=join(", ", further),
        )
        fix = compose("Create the same indexes, or compare nothing but them")
        yield _data_finding("warn", text, indexes, variant.name, fix)


def _listed(differences: Sequence[DataDifference]) -> str:
    listed = join("; ", (entry.text for entry in differences[:_NAMED_MAX]))
    more = len(differences) - _NAMED_MAX
    return listed + compose("; and {number} more", number=more) if more > 0 else listed


def _data_finding(
    level: Level, text: str, differences: Sequence[DataDifference], subject: str, fix: str
) -> Finding:
    listed = [asdict(entry) for entry in differences[:_NAMED_MAX]]
    evidence = {"differences": listed, "count": len(differences)}
    return make_finding(level, text, evidence, fix, subject)


def _stale_findings(existing: ExistingTables, subject: str) -> Iterator[Finding]:
    """A finding if many rows have changed since the optimizer's statistics were made."""
    shares = {
        name: table.state.modified_share
        for name, table in existing.tables.items()
        if table.state.modified_share is not None and table.state.modified_share > STALE_SHARE
    }
    if shares:
        listed = [
            compose("{percent:.0f} % of {name}", percent=100 * share, name=name)
            for name, share in shares.items()
        ]
        text = compose(
            "many rows of {subject} have changed since the statistics of the optimizer were made: {listed}. "
            "Plans may be wrong, and change during the run",
            subject=subject,
            listed=join_some(listed, _NAMED_MAX),
        )
        yield _statistics_finding(text, shares, existing, subject)


def _age_findings(
    before: str, after: str, baseline: ExistingTables, tables: ExistingTables
) -> Iterator[Finding]:
    """A finding if the optimizer's statistics of two variants are of different ages."""
    ages = {
        name: (first, second)
        for name in baseline.tables.keys() & tables.tables.keys()
        if (first := baseline.tables[name].state.analyzed_unix_s) is not None
        and (second := tables.tables[name].state.analyzed_unix_s) is not None
        and abs(first - second) > AGE_DIFFERENCE_S
    }
    if ages:
        listed = [
            compose("{name} of {first} and {second}", name=name, first=_day(first), second=_day(second))
            for name, (first, second) in sorted(ages.items())
        ]
        text = compose(
            "the statistics of the optimizer of {before} and {after} are of different ages: {listed}. The "
            "servers may choose different plans for equal data",
            before=before,
            after=after,
            listed=join_some(listed, _NAMED_MAX),
        )
        yield _statistics_finding(text, ages, tables, after)


def _day(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).date().isoformat()


def _statistics_finding(
    text: str, statistics: Mapping[str, object], existing: ExistingTables, subject: str
) -> Finding:
    fix = compose("Run {statement} on these tables", statement=DIALECTS[existing.protocol].analyze)
    evidence = {"statistics": {name: statistics[name] for name in list(statistics)[:_NAMED_MAX]}}
    return make_finding("warn", text, evidence, fix, subject)


def _inexact_findings(
    before: str, after: str, baseline: ExistingTables, tables: ExistingTables
) -> Iterator[Finding]:
    """Notes of tables whose rows are compared by estimates, and of those that are not compared."""
    common = [name for name in tables.tables if name in baseline.tables]
    pairs = {name: (baseline.tables[name], tables.tables[name]) for name in common}
    inexact = [name for name, pair in pairs.items() if any(_is_uncounted(table) for table in pair)]
    unknown = [name for name in inexact if any(table.rows_or_estimate is None for table in pairs[name])]
    if estimated := [name for name in inexact if name not in unknown]:
        text = compose(
            "the rows of {listed} are compared by the servers' estimates, which may differ by 10 %: the "
            "tables are too large to be counted",
            listed=join_some(estimated, _NAMED_MAX),
        )
        yield make_finding("note", text, {"estimated": estimated[:_NAMED_MAX]}, "", after)
    lacking = [name for name in tables.names or () if not (name in baseline.tables or name in tables.tables)]
    if unread := [*unknown, *lacking]:
        text = compose(
            "the data of {listed} are not compared: the databases of {before} and {after} do not report "
            "their rows, or do not have tables of these names",
            listed=join_some(unread, _NAMED_MAX),
            before=before,
            after=after,
        )
        yield make_finding("note", text, {"unread": unread[:_NAMED_MAX]}, "", after)


def _is_uncounted(table: ExistingTable) -> bool:
    """Whether the rows of a table, and no view, were not counted."""
    return table.rows is None and table.shape.engine != "view"
