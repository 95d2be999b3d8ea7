"""Statements with values in place of their parameters, so that a server can explain or execute them.

The load uses these values too: values spread over the range of a random number, the first values of a list,
or those of the first line of a CSV file. A parameter that is the result of an earlier statement has a value
only after that statement was executed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path

from dbdyno.checks.check import Context
from dbdyno.experiment import generators
from dbdyno.experiment.model import SqlStatement, SqlWorkload, Variant
from dbdyno.experiment.sql_text import Dialect
from dbdyno.finding import Finding, Level
from dbdyno.run.description import Statement, describe
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS
from dbdyno.servers.server import Address, Server, ServerProblem
from dbdyno.servers.url import Target

# Number of samples; each one has a value of every parameter.
SAMPLE_COUNT = 5
# Maximum number of statements explained per workload; a .sql file may have thousands.
STATEMENTS_MAX = 200
# A statement that reads more than this number of rows per expected or returned row counts as a scan.
SCAN_RATIO = 100

Value = int | float | str | None


@contextmanager
def open_load_session(
    server: Server, workload: SqlWorkload, variant: Variant | None
) -> Iterator[AdminConnection]:
    """A connection with the account, database and session statements of the load."""
    address = server.address()
    own = variant.session.statements(address.protocol) if variant is not None else []
    with open_load_connection(address) as admin:
        for sql in (*workload.session, *own):
            admin.query(sql)
        yield admin


@contextmanager
def open_load_connection(address: Address, transport: str | None = None) -> Iterator[AdminConnection]:
    """A connection to the load's database with the load's account. Over TCP the server may select another
    account than over a unix socket. Raises ServerProblem.
    """
    socket = None if transport == "tcp" else address.unix_socket
    target = {field.name: getattr(address, field.name) for field in fields(Target)}
    whole = Target(**target | {"unix_socket": socket})
    admin = PROTOCOLS[address.protocol].admin(whole, address.password)
    try:
        admin.query("SELECT 1")
        yield admin
    finally:
        admin.close()


def make_finding(
    code: str,
    context: Context,
    workload: SqlWorkload,
    level: Level,
    text: str,
    *,
    fix: str = "",
    **evidence: object,
) -> Finding:
    """A finding about the statements of `workload` on the context's server."""
    return Finding(code, level, text, {"workload": workload.title, **evidence}, context.subject, fix=fix)


def parameter_values(workload: SqlWorkload, number: int) -> dict[str, Value]:
    """Sample `number`, from 0 to SAMPLE_COUNT - 1: values of all parameters except results of statements."""
    sample: dict[str, Value] = {}
    known = workload.plan_parameters()
    for name, generator in known.items():
        # The first of several parameters has the value, as that of most transactions.
        chosen = known[generator.parameters[0]] if isinstance(generator, generators.Choice) else generator
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


def statements(
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


def fill_parameters(statement: Statement, values: Mapping[str, Value], dialect: Dialect) -> str | None:
    """The statement with values; None if a parameter has no value."""
    parts, end = [], 0
    for parameter in statement.parameters:
        name = parameter.name or ""
        if name not in values:
            return None
        parts += [statement.sql[end : parameter.at], _literal(values[name], dialect, statement.prepared)]
        end = parameter.at + 1 + len(name)
    return "".join([*parts, statement.sql[end:]])


def _literal(value: Value, dialect: Dialect, prepared: bool) -> str:
    """A value as SQL. For PostgreSQL it has the type with which a prepared statement sends it."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return f"{value}::bigint" if dialect == "postgres" and prepared else str(value)
    text = str(value).replace("'", "''")
    if dialect == "postgres":
        return f"'{text}'::varchar" if prepared else f"'{text}'"
    return "'" + text.replace("\\", "\\\\") + "'"


def describe_refusal(problem: ServerProblem) -> str:
    """The error of a server that rejected a statement, as one line."""
    return " ".join(problem.text.split())
