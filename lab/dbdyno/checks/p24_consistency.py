"""P24: the data meet the workload's conditions of consistency after the load."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks import samples
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.model import SqlWorkload
from dbdyno.finding import Finding
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.server import ServerProblem
from dbdyno.text import compose, mark

# Maximum seconds for one condition: it may read all rows of large tables.
SECONDS_MAX = 3600.0


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds data that do not meet a condition of the workload (`consistency`).

    Catches a server, a proxy or a setting that loses or repeats a part of committed transactions, and
    statements that do not belong to one transaction. Throughput of a server that damages data is no result.

    Rule: after the trials of a group, each condition is queried once on the group's server, outside of the
    measurement. A row is a violation and a stop; so is a query that the server refuses. Transactions in
    progress at the end of a trial have ended, or are not committed, so no condition sees a part of one.
    """
    assert moment is Moment.AFTER_GROUP, "P24 is registered for AFTER_GROUP only"
    for workload in context.workloads:
        if isinstance(workload, SqlWorkload) and workload.consistency:
            yield from _check_workload(context, workload)


def _check_workload(context: Context, workload: SqlWorkload) -> Iterator[Finding]:
    assert context.server is not None, "AFTER_GROUP checks run with a server"
    violations = 0
    with (
        samples.open_load_session(context.server, workload, context.variant) as admin,
        answers_within(SECONDS_MAX),
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
                    refusal=samples.describe_refusal(problem),
                )
                yield samples.make_finding("P24", context, workload, "stop", text, condition=condition.name)
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
                yield samples.make_finding(
                    "P24", context, workload, "stop", text, fix=fix, condition=condition.name, rows=len(rows)
                )
    if not violations:
        text = compose(
            "after the load the data of {title} met its {number} conditions of consistency",
            title=workload.title,
            number=len(workload.consistency),
        )
        yield samples.make_finding(
            "P24", context, workload, "note", text, conditions=len(workload.consistency)
        )


CHECK = Check(
    "P24",
    "Data are consistent after the load",
    frozenset({Moment.AFTER_GROUP}),
    find,
    caveat=mark("the data are inconsistent after the load"),
)
