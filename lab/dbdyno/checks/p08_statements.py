"""P08: statements must find their rows by an index, and select the same rows at any time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.checks import samples
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.non_deterministic import Condition, find_conditions
from dbdyno.checks.plans import Plan, read_plan
from dbdyno.experiment.model import ScriptWorkload, SqlStatement, SqlWorkload
from dbdyno.experiment.sql_reading import dialect_of
from dbdyno.experiment.sql_text import Dialect, first_word, parse_statement, sqlglot
from dbdyno.experiment.sql_workload import DIALECTS
from dbdyno.finding import Finding, Level
from dbdyno.servers.server import ServerProblem
from dbdyno.text import compose, join, mark

# Tables with fewer rows are not checked, because servers prefer a full scan of a small table to an index.
SMALL_ROWS = 1_000

# Statements that EXPLAIN accepts.
EXPLAINABLE = ("SELECT", "WITH", "UPDATE", "DELETE", "TABLE", "REPLACE", "INSERT")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds full table scans, non-deterministic conditions and unusable indexes in the user's own statements.

    Catches statements that do not measure what their name says. A published benchmark called WHERE id =
    FLOOR(RAND() * 10000000) a read by primary key: RAND() is evaluated per row, so each execution reads the
    complete table, takes 2.5 s, and returns zero, one or several rows.

    Rule: a function that is evaluated per row (RAND, UUID, …) in WHERE, ON or HAVING is a stop; a
    function of the current time is a warning. When the data are loaded, EXPLAIN runs with parameter values of
    the load. A full scan of a table of at least 1,000 rows is a warning; it is a stop if the statement does
    not aggregate and `rows` is at most a hundredth of the table's rows. A type conversion that prevents the
    use of an index is a warning. A plan other than the statement's `access` is a warning too, and `access =
    "scan"` expects a full scan. A note lists every execution plan. For a script a note says that its
    statements are unknown before the run.
    """
    workloads = context.workloads
    own = [workload for workload in workloads if isinstance(workload, SqlWorkload)]
    if moment is Moment.DESIGN:
        for workload in own:
            yield from _check_texts(context, workload)
        for script in workloads:
            if isinstance(script, ScriptWorkload):
                yield Finding(
                    "P08",
                    "note",
                    compose(
                        "{title} is a script: its tables and statements are unknown before the run, so P02, "
                        "P08 and P09 cannot check them, and P07 counts one connection per user and no "
                        "prepared statement",
                        title=script.title,
                    ),
                    {"workload": script.title},
                )
        return
    # Only at the first start of each variant: plans do not change later, and later groups must not be
    # delayed.
    if context.server is not None and context.description is not None and context.first_description is None:
        for workload in own:
            yield from _check_plans(context, workload)


def _check_texts(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    dialects = sorted({dialect_of(variant.server) for variant in context.experiment.variants})
    reported: set[tuple[str, str]] = set()
    for name, _, statement in workload.named_statements():
        for dialect in dialects:
            for condition in find_conditions(statement.sql, dialect):
                if (statement.sql, condition.function) not in reported:
                    reported.add((statement.sql, condition.function))
                    yield _condition_finding(workload, name, statement, condition)


def _condition_finding(
    workload: SqlWorkload, name: str, statement: SqlStatement, condition: Condition
) -> Finding:
    what = compose("statement {name} of {title}", name=name, title=workload.title)
    fix = ""
    if condition.parameterized:
        generator = f'"{condition.generator}"' if condition.generator else compose("a generator of its own")
        fix = compose(
            "Use WHERE {condition}, with the parameter {parameter} = {generator}",
            condition=condition.parameterized,
            parameter=condition.parameter,
            generator=generator,
        )
    if condition.evaluated_per == "row":
        level: Level = "stop"
        text = compose(
            "full table scan by {what}, which returns a random number of rows: {function}() in "
            "{text} is evaluated per row, so no index applies",
            what=what,
            function=condition.function,
            text=condition.text,
        )
    else:
        level = "warn"
        text = compose(
            "{what} selects different rows over time ({text}): late transactions of a run read other "
            "data than early ones",
            what=what,
            text=condition.text,
        )
    evidence = {
        "workload": workload.title,
        "statement": name,
        "sql": statement.sql,
        "condition": condition.text,
    }
    return Finding("P08", level, text, evidence, fix=fix)


@dataclass(frozen=True)
class _StatementPlan:
    """A statement with its plan, or the reason why it has none."""

    name: str
    statement: SqlStatement
    plan: Plan | None
    reason: str = ""


def _check_plans(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    assert context.server is not None, "READY checks run with a server"
    assert context.description is not None, "a server is described when it has started"
    dialect = DIALECTS[context.server.address().protocol]
    plans = list(_read_plans(context, workload, dialect))
    if plans and not (context.server.private or any(planned.plan for planned in plans)):
        # A server of another product explains nothing: one note for all statements.
        text = compose(
            "the statements of {title} are not explained, so that full table scans would not be found: "
            "{reason}",
            title=workload.title,
            reason=plans[0].reason,
        )
        yield samples.make_finding("P08", context, workload, "note", text)
        return
    for planned in plans:
        if planned.plan is not None:
            yield from _plan_findings(context, workload, planned, dialect)
        elif planned.reason:
            yield samples.make_finding(
                "P08",
                context,
                workload,
                "warn",
                compose(
                    "statement {name} of {title} could not be explained: {reason}",
                    name=planned.name,
                    title=workload.title,
                    reason=planned.reason,
                ),
                statement=planned.name,
            )
    known = {planned.name: planned.plan.text() for planned in plans if planned.plan is not None}
    if known:
        plans_text = join("; ", (join(": ", (name, plan)) for name, plan in known.items()))
        yield samples.make_finding(
            "P08",
            context,
            workload,
            "note",
            compose("plans of {title}: {plans_text}", title=workload.title, plans_text=plans_text),
            plans=known,
        )


def _read_plans(context: Context, workload: SqlWorkload, dialect: Dialect) -> Iterator[_StatementPlan]:
    assert context.server is not None, "READY checks run with a server"
    assert context.description is not None, "a server is described when it has started"
    # A value from the middle of the range, since the first and the last may be special.
    sample = samples.parameter_values(workload, samples.SAMPLE_COUNT // 2)
    done: set[str] = set()
    with samples.open_load_session(context.server, workload, context.variant) as admin:
        protocol = context.server.address().protocol
        for name, statement, engine_statement in samples.statements(context, workload, protocol):
            if statement.sql in done or first_word(statement.sql, dialect) not in EXPLAINABLE:
                continue
            done.add(statement.sql)
            if len(done) > samples.STATEMENTS_MAX:
                return
            sql = samples.fill_parameters(engine_statement, sample, dialect)
            if sql is None:
                continue  # A parameter needs the result of another statement.
            try:
                yield _StatementPlan(name, statement, read_plan(admin, sql, context.description.product))
            except ServerProblem as problem:
                yield _StatementPlan(name, statement, None, samples.describe_refusal(problem))


def _plan_findings(
    context: Context, workload: SqlWorkload, planned: _StatementPlan, dialect: Dialect
) -> Iterator[Finding]:
    assert planned.plan is not None, "the caller passes only statements with a plan"
    what = compose("statement {name} of {title}", name=planned.name, title=workload.title)
    yield from _access_findings(context, workload, planned, what)
    for access in planned.plan.accesses:
        if not access.is_full_scan or access.rows < SMALL_ROWS or planned.statement.access == "scan":
            continue
        expected = planned.statement.rows
        few = expected is not None and access.rows > samples.SCAN_RATIO * max(expected, 1)
        stops = few and not _aggregates(planned.statement.sql, dialect)
        to_return = compose(" to return {expected:,}", expected=expected) if expected is not None else ""
        yield samples.make_finding(
            "P08",
            context,
            workload,
            "stop" if stops else "warn",
            compose(
                "full table scan on {table} by {what}: about {rows:,} rows{to_return} (EXPLAIN: {access})",
                table=access.table,
                what=what,
                rows=access.rows,
                to_return=to_return,
                access=access.text(),
            ),
            fix=compose("Add a condition that an index supports, or override P08")
            if stops
            else compose('Add a condition that an index supports, or state access = "scan"'),
            statement=planned.name,
            table=access.table,
            rows=access.rows,
        )
    if planned.plan.conversions:
        conversion = join("; ", planned.plan.conversions)
        yield samples.make_finding(
            "P08",
            context,
            workload,
            "warn",
            compose(
                "{what} compares values of different types, so that an index is not used: {conversion}",
                what=what,
                conversion=conversion,
            ),
            fix=compose("Give the parameter the column's type"),
            statement=planned.name,
        )


def _access_findings(
    context: Context, workload: SqlWorkload, planned: _StatementPlan, what: str
) -> Iterator[Finding]:
    """A finding if the plan is not the statement's `access`. Small tables are not checked."""
    expected, plan = planned.statement.access, planned.plan
    if expected is None or plan is None or max(workload.row_counts.values(), default=0) < SMALL_ROWS:
        return
    if any(access.is_as(expected) for access in plan.accesses):
        return
    text = compose(
        "{what} has another plan than expected: {plan} (EXPLAIN), not {expected}",
        what=what,
        plan=plan.text(),
        expected=expected,
    )
    fix = compose("The statement measures something else than its name says: change it, or its `access`")
    evidence = {"statement": planned.name, "expected": expected}
    yield samples.make_finding("P08", context, workload, "warn", text, fix=fix, **evidence)


def _aggregates(sql: str, dialect: Dialect) -> bool:
    """Whether the statement aggregates many rows to few."""
    tree = parse_statement(sql, dialect)
    exp = sqlglot().exp
    return tree is not None and tree.find(exp.AggFunc, exp.Group, exp.Distinct) is not None


CHECK = Check(
    "P08",
    "Statements use indexes and are deterministic",
    frozenset({Moment.DESIGN, Moment.READY}),
    find,
    caveat=mark("execution plans differ or scan tables"),
)
