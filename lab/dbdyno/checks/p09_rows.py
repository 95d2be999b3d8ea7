"""P09: statements must return the expected number of rows, and the server must examine few rows for that."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from dbdyno.checks import samples
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.plans import iterate_nodes, plan_root
from dbdyno.checks.samples import Value
from dbdyno.experiment.generators import StatementResult
from dbdyno.experiment.model import SqlStatement, SqlWorkload
from dbdyno.experiment.sql_text import Dialect, first_word
from dbdyno.experiment.sql_workload import DIALECTS
from dbdyno.finding import Finding, Level
from dbdyno.run.description import Statement
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import ServerProblem, StatementRefused
from dbdyno.text import compose, join, mark

# Only statements that read are executed, so that the data do not change.
READ_STATEMENTS = ("SELECT", "WITH", "TABLE", "VALUES")
# Total time for the executions of one statement.
SECONDS_MAX = 5.0
# A statement that examines fewer rows per execution is not reported.
EXAMINED_MIN = 1_000
# Maximum number of transactions executed per workload; a .sql file may have thousands.
TRANSACTIONS_MAX = 200

# Error codes of a statement that exceeds the time limit of one minute, which `_SET_TIME_LIMIT` sets.
_TIMEOUT_ERRORS = (3024, 1969, 57014)
_SET_TIME_LIMIT = {
    "mysql": "SET SESSION max_execution_time = 60000",
    "mariadb": "SET SESSION max_statement_time = 60",
    "postgresql": "SET statement_timeout = 60000",
}


def find(moment: Moment, context: Context) -> Iterator[Finding]:
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
    assert moment is Moment.READY, "P09 is registered for READY only"
    workloads = context.workloads
    # Only at the first start of each variant: later groups have the same data, and must not be delayed.
    if context.server is None or context.description is None or context.first_description is not None:
        return
    for workload in workloads:
        if isinstance(workload, SqlWorkload):
            yield from _check_workload(context, workload)


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
        return not self.refusal and self.seconds + mean_s < SECONDS_MAX


def _check_workload(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    assert context.server is not None, "READY checks run with a server"
    assert context.description is not None, "a server is described when it has started"
    executions: dict[str, _Executions] = {}
    with samples.open_load_session(context.server, workload, context.variant) as admin:
        # A server of another product may have no such limit; that of `AdminConnection` remains.
        with suppress(StatementRefused):
            admin.query(_SET_TIME_LIMIT.get(context.description.product, "SELECT 1"))
        protocol = context.server.address().protocol
        # The statements of all transactions, one transaction after another.
        statements = samples.statements(context, workload, protocol)
        transactions = [list(islice(statements, len(spec.statements))) for spec in workload.transactions]
        runner = _StatementRunner(workload, admin, DIALECTS[protocol], executions)
        for sample_number in range(samples.SAMPLE_COUNT):
            for transaction in transactions[:TRANSACTIONS_MAX]:
                runner.execute(transaction, sample_number)
    for name, of_statement in executions.items():
        yield from _findings(context, workload, name, of_statement)
    examined = {name: max(done.examined) for name, done in executions.items() if done.examined}
    if examined:
        listed = join(", ", (f"{name} {count:,}" for name, count in examined.items()))
        text = compose(
            "maximum rows examined per execution, by the server's counters: {listed}", listed=listed
        )
        yield samples.make_finding("P09", context, workload, "note", text, examined=examined)


def _findings(
    context: Context, workload: SqlWorkload, name: str, executions: _Executions
) -> Iterator[Finding]:
    what = compose("statement {name} of {title}", name=name, title=workload.title)
    if executions.refusal:
        is_slow = any(f"(error {code})" in executions.refusal for code in _TIMEOUT_ERRORS)
        yield samples.make_finding(
            "P09",
            context,
            workload,
            "warn" if is_slow else "stop",
            compose("the server refused {what}: {refusal}", what=what, refusal=executions.refusal),
            statement=name,
        )
    if executions.unexpected:
        rows, expected, with_values = executions.unexpected[0]
        level: Level = "stop" if len(executions.unexpected) > 1 else "warn"
        yield samples.make_finding(
            "P09",
            context,
            workload,
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
            fix=compose("Fix the data, the range of the parameter, or `rows` of the statement"),
            statement=name,
            rows=executions.rows,
            expected=expected,
        )
    # P08 checks the plan of a statement that states its access.
    if executions.statement.access is None:
        yield from _scan_findings(context, workload, name, executions)


def _scan_findings(
    context: Context, workload: SqlWorkload, name: str, executions: _Executions
) -> Iterator[Finding]:
    worst = max(
        (
            (examined, rows)
            for examined, rows in zip(executions.examined, executions.rows, strict=False)
            if examined >= EXAMINED_MIN and examined > samples.SCAN_RATIO * max(rows, 1)
        ),
        default=None,
    )
    if worst is not None:
        yield samples.make_finding(
            "P09",
            context,
            workload,
            "warn",
            compose(
                "{what} made the server examine {worst:,} rows to return {worst_2:,}: the load would "
                "mostly measure a scan",
                what=compose("statement {name} of {title}", name=name, title=workload.title),
                worst=worst[0],
                worst_2=worst[1],
            ),
            statement=name,
            examined=worst[0],
            rows=worst[1],
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
        # Each reading of the counters increases them by this number.
        self._overhead = -self._read_handler_count() + self._read_handler_count() if dialect == "mysql" else 0

    def execute(self, transaction: Iterable[tuple[str, SqlStatement, Statement]], sample_number: int) -> None:
        """Execute the reading statements of a transaction in order, with the parameter values of a sample."""
        sample = samples.parameter_values(self._workload, sample_number)
        for name, statement, engine_statement in transaction:
            if first_word(statement.sql, self._dialect) not in READ_STATEMENTS:
                continue
            executions = self._executions.setdefault(name, _Executions(statement))
            sql = samples.fill_parameters(engine_statement, sample, self._dialect)
            if sql is None or not executions.can_repeat:
                continue
            try:
                self._execute_statement(sql, name, executions, sample)
            except ServerProblem as problem:
                executions.refusal = samples.describe_refusal(problem)

    def _execute_statement(
        self, sql: str, name: str, executions: _Executions, sample: dict[str, Value]
    ) -> None:
        began = time.monotonic()
        results = {parameter: g for parameter, g in self._results.items() if g.statement == name}
        if self._dialect == "postgres":
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
            counts = self._admin.pairs("SHOW SESSION STATUS LIKE 'Handler_read%'").values()
            return sum(int(count) for count in counts)
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
        self._can_analyze = False
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


CHECK = Check(
    "P09",
    "Statements return the expected rows",
    frozenset({Moment.READY}),
    find,
    caveat=mark("statements examined or returned unexpected numbers of rows"),
)
