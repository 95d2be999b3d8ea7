"""P08: the statements do what they seem to do, by the server's own plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.moving import Moving, moving
from dbdyno.checks.plans import Plan, explained
from dbdyno.checks.samples import (
    ROWS_FOR_EACH,
    STATEMENTS_MAX,
    about,
    asking,
    filled,
    refused,
    statements,
    values,
)
from dbdyno.experiment.model import ScriptWorkload, SqlStatement, SqlWorkload
from dbdyno.experiment.sql_reading import dialect_of
from dbdyno.experiment.sql_text import Dialect, first_word, parsed, sqlglot
from dbdyno.experiment.sql_workload import DIALECTS
from dbdyno.finding import Finding
from dbdyno.servers.server import ServerProblem

# Reading a small table from end to end is no mistake, and often what a server chooses.
SMALL_ROWS = 1_000

# What can be explained; INSERT of values has nothing to find.
EXPLAINED = ("SELECT", "WITH", "UPDATE", "DELETE", "TABLE", "REPLACE", "INSERT")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Statements of the user's own that find their rows in another way than it seems.

    Catches queries that measure something else than their name says. Seed 004 asks WHERE id =
    FLOOR(RAND() * 10000000) and calls it a look-up by primary key: RAND() is evaluated for every row, so
    each execution reads the whole table, for 2.5 s, and returns no row, one, or several.

    Rule: a function that is evaluated for every row (RAND, UUID, …) in WHERE, ON or HAVING is a stop, as the
    text shows; one that moves with the time of day is a warning. With the data loaded, EXPLAIN with values of
    the load's own: a table of at least 1,000 rows that is read from end to end is a warning, and a stop where
    the contract promises a hundredth of its rows or less and nothing is summed up; a conversion that keeps an
    index from being used is a warning. A note tells every plan. Of a script a note says that its statements
    are not known before the run.
    """
    workloads = (context.workload,) if context.workload else context.experiment.workloads
    own = [workload for workload in workloads if isinstance(workload, SqlWorkload)]
    if moment is Moment.DESIGN:
        for workload in own:
            yield from _by_text(context, workload)
        yield from (_of_script(one) for one in workloads if isinstance(one, ScriptWorkload))
        return
    # At the first start of each variant with its data: the same everywhere, and no later group waits for it.
    if context.server is not None and context.description is not None and context.first is None:
        for workload in own:
            yield from _by_plan(context, workload)


def _of_script(workload: ScriptWorkload) -> Finding:
    return Finding(
        "P08",
        "note",
        f"{workload.title} is a script: its tables and statements are not known before the run, so P02, P08 "
        "and P09 do not look at them, and P07 counts one connection for each user and no prepared statement.",
        {"workload": workload.title},
    )


def _by_text(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    dialects = sorted({dialect_of(variant.server) for variant in context.experiment.variants})
    told: set[tuple[str, str]] = set()
    for name, _, statement in workload.named_statements():
        for dialect in dialects:
            for found in moving(statement.sql, dialect):
                if (statement.sql, found.function) not in told:
                    told.add((statement.sql, found.function))
                    yield _of_moving(workload, name, statement, found)


def _of_moving(workload: SqlWorkload, name: str, statement: SqlStatement, found: Moving) -> Finding:
    what = f"statement {name} of {workload.title}"
    ask = ""
    if found.asked:
        generator = f'"{found.generator}"' if found.generator else "a generator of its own"
        ask = f" Ask WHERE {found.asked} instead, with the parameter {found.parameter} = {generator}."
    evidence = {
        "workload": workload.title,
        "statement": name,
        "sql": statement.sql,
        "condition": found.condition,
    }
    if found.evaluated_per == "row":
        return Finding(
            "P08",
            "stop",
            f"{what} scans the whole table and returns a random number of rows: in {found.condition} the "
            f"value of {found.function}() is evaluated for every row, so no index can find it, and each row "
            f"fits or not by chance.{ask}",
            evidence,
        )
    return Finding(
        "P08",
        "warn",
        f"{what} asks for other rows as time goes by, by {found.condition}: what comes later in a run meets "
        f"other data than what came first.{ask}",
        evidence,
    )


@dataclass(frozen=True)
class _Explained:
    """A statement and its plan, or why there is none."""

    name: str
    statement: SqlStatement
    plan: Plan | None
    reason: str = ""


def _by_plan(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    assert context.server is not None, "there is one when data are ready"
    assert context.description is not None, "it was described"
    dialect = DIALECTS[context.server.address().protocol]
    plans = list(_plans(context, workload, dialect))
    for one in plans:
        if one.plan is not None:
            yield from _of_plan(context, workload, one, dialect)
        elif one.reason:
            yield about(
                "P08",
                context,
                workload,
                "warn",
                f"statement {one.name} of {workload.title} could not be explained: {one.reason}",
                statement=one.name,
            )
    known = {one.name: str(one.plan) for one in plans if one.plan is not None}
    if known:
        told = "; ".join(f"{name}: {plan}" for name, plan in known.items())
        yield about("P08", context, workload, "note", f"plans of {workload.title}: {told}.", plans=known)


def _plans(context: Context, workload: SqlWorkload, dialect: Dialect) -> Iterator[_Explained]:
    assert context.server is not None, "there is one when data are ready"
    assert context.description is not None, "it was described"
    # A value from the middle: the first and the last of a range may be special.
    sample = values(workload, 2)
    done: set[str] = set()
    with asking(context.server, workload) as admin:
        protocol = context.server.address().protocol
        for name, statement, described in statements(context, workload, protocol):
            if statement.sql in done or first_word(statement.sql, dialect) not in EXPLAINED:
                continue
            done.add(statement.sql)
            if len(done) > STATEMENTS_MAX:
                return
            sql = filled(described, sample, dialect)
            if sql is None:
                continue  # It needs what another one returns.
            try:
                yield _Explained(name, statement, explained(admin, sql, context.description.product))
            except ServerProblem as problem:
                yield _Explained(name, statement, None, refused(problem))


def _of_plan(context: Context, workload: SqlWorkload, one: _Explained, dialect: Dialect) -> Iterator[Finding]:
    assert one.plan is not None, "it has one"
    what = f"statement {one.name} of {workload.title}"
    for access in one.plan.accesses:
        if not access.whole or access.rows < SMALL_ROWS:
            continue
        promised = one.statement.rows
        few = promised is not None and access.rows > ROWS_FOR_EACH * max(promised, 1)
        stops = few and not _sums_up(one.statement.sql, dialect)
        contract = f", and its contract is {promised:,}" if promised is not None else ""
        yield about(
            "P08",
            context,
            workload,
            "stop" if stops else "warn",
            f"{what} reads {access.table} from end to end each time, about {access.rows:,} rows{contract} "
            f"(EXPLAIN: {access}). Give it a condition that an index can find, or say why it is meant so.",
            statement=one.name,
            table=access.table,
            rows=access.rows,
        )
    if one.plan.conversions:
        conversion = "; ".join(one.plan.conversions)
        yield about(
            "P08",
            context,
            workload,
            "warn",
            f"{what} compares values of different types, so that an index is not used: {conversion}. Give "
            "the parameter the column's type.",
            statement=one.name,
        )


def _sums_up(sql: str, dialect: Dialect) -> bool:
    """Whether few rows come of many by what is asked: a sum, a count, groups."""
    tree = parsed(sql, dialect)
    exp = sqlglot().exp
    return tree is not None and tree.find(exp.AggFunc, exp.Group, exp.Distinct) is not None


CHECK = Check("P08", "What statements do", frozenset({Moment.DESIGN, Moment.READY}), find)
