"""The part of P04 about `[variant.session]`: what the connections of the load set must be effective."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks.check import Context
from dbdyno.checks.samples import open_load_connection
from dbdyno.experiment.model import SqlWorkload
from dbdyno.experiment.quantities import as_text, is_equal, variable_name, with_unit
from dbdyno.finding import Finding
from dbdyno.servers.admin import answers
from dbdyno.servers.server import ServerProblem
from dbdyno.text import compose


def find(context: Context) -> Iterator[Finding]:
    """Findings about statements of the session that the server refuses, and variables with another value."""
    session = context.variant.session if context.variant is not None else None
    if session is None or context.server is None or context.description is None:
        return
    address = context.server.address()
    statements = session.settings(address.protocol)
    if context.workload is not None:
        # Other statements may need the data.
        statements += session.sql
    if not statements:
        return
    if isinstance(context.workload, SqlWorkload):
        statements = [*context.workload.session, *statements]
    with open_load_connection(address, context.load.transport) as admin:
        for sql in statements:
            try:
                admin.query(sql)
            except ServerProblem as problem:
                fix = compose("Correct it under [variant.session], or in the `session` of the workload")
                yield _stop(
                    context,
                    compose("a statement of the session fails: {text}", text=problem.text),
                    fix,
                    sql=sql,
                )
                return
        for option, value in session.variables.items():
            name = variable_name(option)
            if address.protocol == "postgresql":
                effective = answers.value(admin.query, f"SHOW {name}", answers.text)
            else:
                sql = f"SHOW SESSION VARIABLES WHERE Variable_name = '{name}'"
                _, effective = answers.row(admin.query, sql, answers.text, answers.text)
            declared = with_unit(value, context.description.units.get(name))
            if not is_equal(name, declared, effective):
                text = compose(
                    "{name} is {effective} in the session, adjusted by the server from {as_text}",
                    name=name,
                    effective=effective,
                    as_text=as_text(value),
                )
                fix = compose(
                    "Write {name} = {effective} under [variant.session.variables]",
                    name=name,
                    effective=effective,
                )
                yield _stop(context, text, fix, variable=name, effective=effective)


def _stop(context: Context, text: str, fix: str, **evidence: object) -> Finding:
    return Finding("P04", "stop", text, evidence, context.subject, fix=fix)
