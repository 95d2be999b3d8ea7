"""Checks of the statements of a workload in SQL: their plans (P08), their rows (P09), and the conditions that
the data must meet afterwards (P24).

A server explains or executes statements with values in place of their parameters. The load uses these values
too: values spread over the range of a random number, the first values of a list, or those of the first line
of a CSV file. A parameter that is the result of an earlier statement has a value only after that statement
was executed.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from dbdyno.checks.non_deterministic import Condition, find_conditions
from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.experiment import generators
from dbdyno.experiment.dialect import DIALECTS, MYSQL, POSTGRESQL, Dialect
from dbdyno.experiment.generators import StatementResult
from dbdyno.experiment.model import ScriptWorkload, SqlStatement, SqlWorkload
from dbdyno.experiment.sql_reading import dialects_of
from dbdyno.experiment.sql_text import first_word, parse_statement, sqlglot
from dbdyno.finding import Finding, Level
from dbdyno.run.description import Statement, describe
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.kinds.remote_protocol import open_load_session
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.products.postgresql import iterate_nodes, plan_root
from dbdyno.servers.products.product import Plan
from dbdyno.servers.server import Description, Server, ServerProblem, StatementRefused
from dbdyno.text import compose, join, mark

# Number of samples; each one has a value of every parameter.
SAMPLE_COUNT = 5
# Maximum number of statements explained per workload; a .sql file may have thousands.
STATEMENTS_MAX = 200
# A statement that reads more than this number of rows per expected or returned row counts as a scan.
SCAN_RATIO = 100

Value = int | float | str | None

# Tables with fewer rows are not checked, because servers prefer a full scan of a small table to an index.
SMALL_ROWS = 1_000

# Statements that EXPLAIN accepts.
EXPLAINABLE = ("SELECT", "WITH", "UPDATE", "DELETE", "TABLE", "REPLACE", "INSERT")

# Only statements that read are executed, so that the data do not change.
READ_STATEMENTS = ("SELECT", "WITH", "TABLE", "VALUES")
# Total time for the executions of one statement.
EXECUTION_S_MAX = 5.0
# A statement that examines fewer rows per execution is not reported.
EXAMINED_MIN = 1_000
# Maximum number of transactions executed per workload; a .sql file may have thousands.
TRANSACTIONS_MAX = 200

# Error codes of a statement that exceeds the time limit of one minute, which `Product.time_limit` sets.
_TIMEOUT_ERRORS = (3024, 1969, 57014)

# Maximum seconds for one condition: it may read all rows of large tables.
CONDITION_S_MAX = 3600.0


@check(
    "P08",
    "Statements use indexes and are deterministic",
    Moment.DESIGN,
    Moment.READY,
    in_sweep=(Moment.DESIGN, Moment.READY),
    needs_data=True,
    at_first_start=True,
    caveat=mark("execution plans differ or scan tables"),
)
def statement_plans(moment: Moment, context: Context) -> Iterator[Finding]:
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
    of_users = [workload for workload in workloads if isinstance(workload, SqlWorkload)]
    if moment is Moment.DESIGN:
        for workload in of_users:
            yield from _check_texts(context, workload)
        for script in workloads:
            if isinstance(script, ScriptWorkload):
                yield make_finding(
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
    if context.server is not None and context.description is not None:
        for workload in of_users:
            yield from _check_plans(context, workload, context.server, context.description.product)


def _check_texts(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    dialects = dialects_of(variant.server for variant in context.experiment.variants)
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
    return make_finding(level, text, evidence, fix)


@dataclass(frozen=True)
class _StatementPlan:
    """A statement with its plan, or the reason why it has none."""

    name: str
    statement: SqlStatement
    plan: Plan | None
    reason: str = ""


def _check_plans(context: Context, workload: SqlWorkload, server: Server, product: str) -> Iterator[Finding]:
    dialect = DIALECTS[server.address().protocol]
    plans = list(_read_plans(context, workload, server, product))
    if plans and not (server.private or any(planned.plan for planned in plans)):
        # A server of another product explains nothing: one note for all statements.
        text = compose(
            "the statements of {title} are not explained, so that full table scans would not be found: "
            "{reason}",
            title=workload.title,
            reason=plans[0].reason,
        )
        yield make_finding("note", text, {"workload": workload.title})
        return
    for planned in plans:
        if planned.plan is not None:
            yield from _plan_findings(workload, planned, dialect)
        elif planned.reason:
            yield make_finding(
                "warn",
                compose(
                    "statement {name} of {title} could not be explained: {reason}",
                    name=planned.name,
                    title=workload.title,
                    reason=planned.reason,
                ),
                {"workload": workload.title, "statement": planned.name},
            )
    plan_texts = {planned.name: planned.plan.text() for planned in plans if planned.plan is not None}
    if plan_texts:
        plans_text = join("; ", (join(": ", (name, plan)) for name, plan in plan_texts.items()))
        yield make_finding(
            "note",
            compose("plans of {title}: {plans_text}", title=workload.title, plans_text=plans_text),
            {"workload": workload.title, "plans": plan_texts},
        )


def _read_plans(
    context: Context, workload: SqlWorkload, server: Server, product: str
) -> Iterator[_StatementPlan]:
    # A value from the middle of the range, since the first and the last may be special.
    sample = parameter_values(workload, SAMPLE_COUNT // 2)
    done: set[str] = set()
    protocol = server.address().protocol
    dialect = DIALECTS[protocol]
    with open_load_session(server, workload, context.variant) as admin:
        for name, statement, engine_statement in _statements(context, workload, protocol):
            if statement.sql in done or first_word(statement.sql, dialect) not in EXPLAINABLE:
                continue
            done.add(statement.sql)
            if len(done) > STATEMENTS_MAX:
                return
            sql = _fill_parameters(engine_statement, sample, dialect)
            if sql is None:
                continue  # A parameter needs the result of another statement.
            try:
                yield _StatementPlan(name, statement, PRODUCTS[product].read_plan(admin, sql))
            except ServerProblem as problem:
                yield _StatementPlan(name, statement, None, _describe_refusal(problem))


def _plan_findings(workload: SqlWorkload, planned: _StatementPlan, dialect: Dialect) -> Iterator[Finding]:
    assert planned.plan is not None, "the caller passes only statements with a plan"
    what = compose("statement {name} of {title}", name=planned.name, title=workload.title)
    yield from _access_findings(workload, planned, what)
    for access in planned.plan.accesses:
        if not access.is_full_scan or access.rows < SMALL_ROWS or planned.statement.access == "scan":
            continue
        expected = planned.statement.rows
        few = expected is not None and access.rows > SCAN_RATIO * max(expected, 1)
        stops = few and not _aggregates(planned.statement.sql, dialect)
        to_return = compose(" to return {expected:,}", expected=expected) if expected is not None else ""
        yield make_finding(
            "stop" if stops else "warn",
            compose(
                "full table scan on {table} by {what}: about {rows:,} rows{to_return} (EXPLAIN: {access})",
                table=access.table,
                what=what,
                rows=access.rows,
                to_return=to_return,
                access=access.text(),
            ),
            {
                "workload": workload.title,
                "statement": planned.name,
                "table": access.table,
                "rows": access.rows,
            },
            compose("Add a condition that an index supports, or override P08")
            if stops
            else compose('Add a condition that an index supports, or state access = "scan"'),
        )
    if planned.plan.conversions:
        conversion = join("; ", planned.plan.conversions)
        yield make_finding(
            "warn",
            compose(
                "{what} compares values of different types, so that an index is not used: {conversion}",
                what=what,
                conversion=conversion,
            ),
            {"workload": workload.title, "statement": planned.name},
            compose("Give the parameter the column's type"),
        )


def _access_findings(workload: SqlWorkload, planned: _StatementPlan, what: str) -> Iterator[Finding]:
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
    yield make_finding("warn", text, {"workload": workload.title, **evidence}, fix)


def _aggregates(sql: str, dialect: Dialect) -> bool:
    """Whether the statement aggregates many rows to few."""
    tree = parse_statement(sql, dialect)
    exp = sqlglot().exp
    return tree is not None and tree.find(exp.AggFunc, exp.Group, exp.Distinct) is not None


@check(
    "P09",
    "Statements return the expected rows",
    Moment.READY,
    in_sweep=(Moment.READY,),
    needs_data=True,
    at_first_start=True,
    caveat=mark("statements had unexpected numbers of rows"),
)
def row_counts(context: Context, server: Server, description: Description) -> Iterator[Finding]:
    """Finds unexpected row counts, and statements for which the server examines many rows.

    Catches statements that do not fit the data. In a published benchmark nine statements in ten matched no
    row; in another one a query examined ten million rows to return one.

    Rule: before the load each reading statement is executed five times, with parameter values spread over
    the range that the load uses. A row count other than the statement's `rows` in two or more executions is a
    stop, in one execution a warning. A statement that the server refuses is a stop too. A
    note lists the rows that the server examined per execution by its own counters (Handler_read_* of the
    session; the scans of PostgreSQL's EXPLAIN ANALYZE). If an execution examines at least 1,000 rows, and
    more than 100 per row returned, that is a warning, unless the statement states its `access`. Writing
    statements are not executed: D04 counts their rows under load.
    """
    for workload in context.workloads:
        if isinstance(workload, SqlWorkload):
            yield from _check_rows(context, workload, server, description.product)


@dataclass
class _Executions:
    """Executions of one statement."""

    statement: SqlStatement
    # Number of rows that each execution returned.
    rows: list[int] = field(default_factory=list)
    # Unexpected row counts, each with the expected one and the values that caused it.
    unexpected: list[tuple[int, int, str]] = field(default_factory=list)
    # Number of rows that the server examined in each execution.
    examined: list[int] = field(default_factory=list)
    seconds: float = 0.0
    # The server's error; empty if it accepted the statement.
    refusal: str = ""

    @property
    def can_repeat(self) -> bool:
        """Whether to execute the statement again."""
        mean_s = self.seconds / max(len(self.rows), 1)
        return not self.refusal and self.seconds + mean_s < EXECUTION_S_MAX


def _check_rows(context: Context, workload: SqlWorkload, server: Server, product: str) -> Iterator[Finding]:
    executions: dict[str, _Executions] = {}
    with open_load_session(server, workload, context.variant) as admin:
        # A server of another product may have no such limit; that of `AdminConnection` remains.
        with suppress(StatementRefused):
            admin.query(PRODUCTS[product].time_limit)
        protocol = server.address().protocol
        # The statements of all transactions, one transaction after another.
        statements = _statements(context, workload, protocol)
        transactions = [list(islice(statements, len(spec.statements))) for spec in workload.transactions]
        runner = _StatementRunner(workload, admin, DIALECTS[protocol], executions)
        for sample_number in range(SAMPLE_COUNT):
            for transaction in transactions[:TRANSACTIONS_MAX]:
                runner.execute(transaction, sample_number)
    for name, of_statement in executions.items():
        yield from _row_findings(workload, name, of_statement)
    examined = {name: max(done.examined) for name, done in executions.items() if done.examined}
    if examined:
        listed = join(", ", (f"{name} {count:,}" for name, count in examined.items()))
        text = compose(
            "maximum rows examined per execution, by the server's counters: {listed}", listed=listed
        )
        yield make_finding("note", text, {"workload": workload.title, "examined": examined})


def _row_findings(workload: SqlWorkload, name: str, executions: _Executions) -> Iterator[Finding]:
    what = compose("statement {name} of {title}", name=name, title=workload.title)
    if executions.refusal:
        is_slow = any(f"(error {code})" in executions.refusal for code in _TIMEOUT_ERRORS)
        yield make_finding(
            "warn" if is_slow else "stop",
            compose("the server refused {what}: {refusal}", what=what, refusal=executions.refusal),
            {"workload": workload.title, "statement": name},
        )
    if executions.unexpected:
        rows, expected, with_values = executions.unexpected[0]
        level: Level = "stop" if len(executions.unexpected) > 1 else "warn"
        yield make_finding(
            level,
            compose(
                "{what} returned an unexpected row count in {number} of {number_2} executions: {rows:,} "
                "rows{with_values}; expected {rows_2:,}",
                what=what,
                number=len(executions.unexpected),
                number_2=len(executions.rows),
                rows=rows,
                with_values=with_values,
                rows_2=expected,
            ),
            {"workload": workload.title, "statement": name, "rows": executions.rows, "expected": expected},
            compose("Fix the data, the range of the parameter, or `rows` of the statement"),
        )
    # P08 checks the plan of a statement that states its access.
    if executions.statement.access is None:
        yield from _scan_findings(workload, name, executions)


def _scan_findings(workload: SqlWorkload, name: str, executions: _Executions) -> Iterator[Finding]:
    worst = max(
        (
            (examined, rows)
            for examined, rows in zip(executions.examined, executions.rows, strict=False)
            if examined >= EXAMINED_MIN and examined > SCAN_RATIO * max(rows, 1)
        ),
        default=None,
    )
    if worst is not None:
        yield make_finding(
            "warn",
            compose(
                "{what} made the server examine {worst:,} rows to return {worst_2:,}: the load would "
                "mostly measure a scan",
                what=compose("statement {name} of {title}", name=name, title=workload.title),
                worst=worst[0],
                worst_2=worst[1],
            ),
            {"workload": workload.title, "statement": name, "examined": worst[0], "rows": worst[1]},
        )


class _StatementRunner:
    """Executes the reading statements of transactions, once for each sample."""

    def __init__(
        self,
        workload: SqlWorkload,
        admin: AdminConnection,
        dialect: Dialect,
        executions: dict[str, _Executions],
    ) -> None:
        self._workload, self._admin, self._dialect, self._executions = workload, admin, dialect, executions
        generators = {name: workload.generator(name) for name in workload.parameters}
        self._results = {
            name: generator
            for name, generator in generators.items()
            if isinstance(generator, StatementResult)
        }
        # Whether the server explains an execution as PostgreSQL does.
        self._can_analyze = True
        # Whether the server counts the rows that it examines.
        self._counts_rows = True
        # Each reading of the counters increases them by this number.
        self._overhead = -self._read_handler_count() + self._read_handler_count() if dialect is MYSQL else 0

    def execute(self, transaction: Iterable[tuple[str, SqlStatement, Statement]], sample_number: int) -> None:
        """Execute the reading statements of a transaction in order, with the parameter values of a sample."""
        sample = parameter_values(self._workload, sample_number)
        for name, statement, engine_statement in transaction:
            if first_word(statement.sql, self._dialect) not in READ_STATEMENTS:
                continue
            executions = self._executions.setdefault(name, _Executions(statement))
            sql = _fill_parameters(engine_statement, sample, self._dialect)
            if sql is None or not executions.can_repeat:
                continue
            try:
                self._execute_statement(sql, name, executions, sample)
            except ServerProblem as problem:
                executions.refusal = _describe_refusal(problem)

    def _execute_statement(
        self, sql: str, name: str, executions: _Executions, sample: dict[str, Value]
    ) -> None:
        began = time.monotonic()
        results = {parameter: g for parameter, g in self._results.items() if g.statement == name}
        if self._dialect is POSTGRESQL:
            rows, examined = self._analyze(sql)
            if results:
                self._store_results(self._admin.query(sql), results, sample)
        else:
            before = self._read_handler_count()
            result = self._admin.query(sql)
            examined = self._read_handler_count() - before - self._overhead
            rows = len(result)
            self._store_results(result, results, sample)
        statement = executions.statement
        executions.seconds += time.monotonic() - began
        executions.rows.append(rows)
        if self._counts_rows:
            executions.examined.append(max(examined, 0))
        expected = sample.get(statement.rows_parameter or "", statement.rows)
        if isinstance(expected, int) and rows != expected:
            used = {key: value for key, value in sample.items() if f":{key}" in statement.sql}
            with_values = join(", ", (f"{key} = {value!r}" for key, value in used.items()))
            executions.unexpected.append(
                (
                    rows,
                    expected,
                    compose(" with {with_values}", with_values=with_values) if with_values else "",
                )
            )

    def _store_results(
        self, rows: list[tuple[Value, ...]], results: dict[str, StatementResult], sample: dict[str, Value]
    ) -> None:
        for parameter, generator in results.items():
            row = rows[0] if rows else ()
            value = row[generator.column - 1] if len(row) >= generator.column else None
            if value is None or generator.type == "text":
                sample[parameter] = None if value is None else str(value)
            else:
                sample[parameter] = int(float(value))

    def _read_handler_count(self) -> int:
        """Number of rows that the session has read so far, from any index or table; 0 if the server does not
        count them.
        """
        with suppress(StatementRefused, answers.UnexpectedAnswer, ValueError):
            if counts := self._admin.pairs("SHOW SESSION STATUS LIKE 'Handler_read%'").values():
                return sum(int(count) for count in counts)
        self._counts_rows = False
        return 0

    def _analyze(self, sql: str) -> tuple[int, int]:
        """Number of rows that the statement returns, and number of rows that its scans examine; 0 if the
        server does not say it.
        """
        if self._can_analyze:
            # A server of another product may explain in another form, or not at all.
            with suppress(StatementRefused, answers.UnexpectedAnswer, ValueError, TypeError, LookupError):
                return self._explain_execution(sql)
        rows = len(self._admin.query(sql))
        self._can_analyze = self._counts_rows = False
        return rows, 0

    def _explain_execution(self, sql: str) -> tuple[int, int]:
        root = answers.value(
            self._admin.query, f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", plan_root
        )
        examined = 0.0
        for node in iterate_nodes(root):
            if node.get("Relation Name"):
                removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
                examined += (node["Actual Rows"] + removed) * node["Actual Loops"]
        return int(root["Actual Rows"]), round(examined)


@check(
    "P24",
    "Data are consistent after the load",
    Moment.AFTER_GROUP,
    needs_data=True,
    caveat=mark("the data are inconsistent after the load"),
)
def conditions_of_consistency(context: Context, server: Server) -> Iterator[Finding]:
    """Finds data that do not meet a condition of the workload (`consistency`).

    Catches a server, a proxy or a setting that loses or repeats a part of committed transactions, and
    statements that do not belong to one transaction. Throughput of a server that damages data is no result.

    Rule: after the trials of a group, each condition is queried once on the group's server, outside of the
    measurement. A row is a violation and a stop; so is a query that the server refuses. Transactions in
    progress at the end of a trial have ended, or are not committed, so no condition sees a part of one.
    """
    for workload in context.workloads:
        if isinstance(workload, SqlWorkload) and workload.consistency:
            yield from _check_conditions(context, workload, server)


def _check_conditions(context: Context, workload: SqlWorkload, server: Server) -> Iterator[Finding]:
    violations = 0
    with (
        open_load_session(server, workload, context.variant) as admin,
        answers_within(CONDITION_S_MAX),
    ):
        for condition in workload.consistency:
            what = {"title": workload.title, "name": condition.name}
            try:
                rows = admin.query(condition.sql)
            except ServerProblem as problem:
                # A server that has ended since the last trial refuses nothing.
                admin.query("SELECT 1")
                text = compose(
                    "the server refused the condition {name} of {title}: {refusal}",
                    **what,
                    refusal=_describe_refusal(problem),
                )
                yield make_finding("stop", text, {"workload": workload.title, "condition": condition.name})
                continue
            if rows:
                violations += 1
                example = ", ".join(str(value) for value in rows[0])
                text = compose(
                    "after the load the data of {title} violate the condition {name} in {count:,} places, "
                    "such as ({example})",
                    **what,
                    count=len(rows),
                    example=example,
                )
                fix = compose(
                    "Find out which committed changes {variant} has lost or repeated", variant=context.subject
                )
                yield make_finding(
                    "stop",
                    text,
                    {"workload": workload.title, "condition": condition.name, "rows": len(rows)},
                    fix,
                )
    if not violations:
        text = compose(
            "after the load the data of {title} met its {number} conditions of consistency",
            title=workload.title,
            number=len(workload.consistency),
        )
        yield make_finding(
            "note", text, {"workload": workload.title, "conditions": len(workload.consistency)}
        )


def parameter_values(workload: SqlWorkload, number: int) -> dict[str, Value]:
    """Sample `number`, from 0 to SAMPLE_COUNT - 1: values of all parameters except results of statements."""
    sample: dict[str, Value] = {}
    all_parameters = workload.plan_parameters()
    for name, generator in all_parameters.items():
        # The first of several parameters has the value, as that of most transactions.
        chosen = (
            all_parameters[generator.parameters[0]] if isinstance(generator, generators.Choice) else generator
        )
        for value in _sample(chosen, number):
            sample[name] = value
    return sample


def _sample(generator: generators.Generator, number: int) -> Iterator[Value]:
    """One value of the generator; none if only the server knows it."""
    match generator:
        case generators.IntegerRange(low=low, high=high):
            yield low + (high - low) * number // (SAMPLE_COUNT - 1)
        case generators.Latest(low=low, high=high):
            yield high - (high - low) * number // (SAMPLE_COUNT - 1)
        case generators.Text(length=length, alphabet=alphabet):
            yield (alphabet or "a")[0] * length
        case generators.Connection(low=low, high=high):
            yield low + (high - low) * number // (SAMPLE_COUNT - 1)
        case generators.Repetition():
            yield 1
        case generators.Words(words=words, numbers=numbers):
            yield generators.write_words(words, numbers, numbers.low + number)
        case generators.Sequence(first=first, last=last):
            yield first + number if last is None else min(last, first + number)
        case generators.OneOf(values=values):
            yield values[number % len(values)]
        case generators.Csv(file=file, column=column):
            yield from _cell(Path(file), column)
        case _:
            pass


def _cell(file: Path, column: str) -> Iterator[Value]:
    """The column's value in the first line of a CSV file, if it has one."""
    with suppress(OSError, UnicodeDecodeError, csv.Error, StopIteration), file.open(newline="") as lines:
        text = next(csv.DictReader(lines)).get(column)
        if text is not None:
            yield int(text) if text.lstrip("-").isdigit() else text


def _statements(
    context: Context, workload: SqlWorkload, protocol: str
) -> Iterator[tuple[str, SqlStatement, Statement]]:
    """Every statement of the workload: its name in the records, its form in the experiment, and its form in
    the engine's plan.
    """
    engine_statements = describe(context.experiment, workload, protocol).statements
    for (name, _, statement), engine_statement in zip(
        workload.named_statements(), engine_statements, strict=True
    ):
        yield name, statement, engine_statement


def _fill_parameters(statement: Statement, values: Mapping[str, Value], dialect: Dialect) -> str | None:
    """The statement with values; None if a parameter has no value."""
    as_sql = dialect.typed_literal if statement.prepared else dialect.literal
    parts, end = [], 0
    for parameter in statement.parameters:
        name = parameter.name or ""
        if name not in values:
            return None
        value = values[name]
        parts += [statement.sql[end : parameter.at], "NULL" if value is None else as_sql(value)]
        end = parameter.at + 1 + len(name)
    return "".join([*parts, statement.sql[end:]])


def _describe_refusal(problem: ServerProblem) -> str:
    """The error of a server that rejected a statement, as one line."""
    return " ".join(problem.text.split())
