"""Check of what an experiment writes to the tables of others (P28): tables that dbdyno has not created, on
servers that it does not start.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.checks.tables import shapes
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload, Variant, Workload
from dbdyno.experiment.schedule import schedule
from dbdyno.experiment.slices import load_s, only_reads
from dbdyno.experiment.sql_reading import dialect_of
from dbdyno.experiment.sql_text import created_objects, written_tables
from dbdyno.finding import Finding, Level
from dbdyno.run.description import describe
from dbdyno.run.marked_tables import has_comments, marked_tables
from dbdyno.servers.server import Server
from dbdyno.text import compose, compose_count, join, join_some, mark

# Tables and statements that a message names.
_NAMED_MAX = 6
# Without a rate, the number of statements is given for so many transactions/s.
_RATE = 100


class _Write(NamedTuple):
    """Statements that write to one table."""

    # As in the statement; empty if its text does not tell it.
    table: str
    statement: str
    # How often a transaction executes it, or the log has it; 0 if it runs once, as a setup does.
    times: float = 0.0


@check(
    "P28",
    "Writes to tables of others are allowed",
    Moment.DESIGN,
    Moment.READY,
    in_sweep=(Moment.DESIGN, Moment.READY),
    at_first_start=True,
    caveat=mark("it wrote to existing tables"),
)
def writes_to_existing_tables(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds statements that write to tables that dbdyno has not created, on servers that it does not start.

    Catches a benchmark that changes the data of its users. A replayed log added 175,000 rows to an existing
    table.

    Rule: on a server by URL, statements of the workload, of its setup and of `data.after` may write only to
    tables that the run creates, or that an earlier run has created and kept. Others are a stop before
    anything is written, unless `writes` in `[load]` is "replay", which makes it a note. With "skip",
    statements of a recorded log that write are left out. A statement whose tables its text does not tell, as
    CALL, counts as one that writes, unless the run creates tables; so do all statements of a script over
    existing tables. Functions in a SELECT may write all the same. The finding says how many statements will
    write: at a rate of arrivals all in all, else for every 100 transactions/s. Servers of other products
    without comments of tables do not say which tables an earlier run has created.
    """
    experiment = context.experiment
    if moment is Moment.DESIGN:
        remote = [variant for variant in experiment.variants if not variant.server.is_private]
        for number, variant in enumerate(remote):
            for workload in experiment.workloads_of(variant):
                earlier = remote[:number]
                if not any(_writes_same(experiment, workload, variant, entry) for entry in earlier):
                    yield from _design_findings(experiment, variant, workload)
    elif context.server is not None and context.variant is not None and not context.server.private:
        for workload in context.workloads:
            yield from _existing_findings(experiment, context.variant, workload, context.server)


def _writes_same(experiment: Experiment, workload: Workload, variant: Variant, earlier: Variant) -> bool:
    return (
        variant.server.data_location == earlier.server.data_location
        and variant.data == earlier.data
        and experiment.workload_for(earlier, workload.title) == workload
    )


def _design_findings(experiment: Experiment, variant: Variant, workload: Workload) -> Iterator[Finding]:
    """The writes to tables that the workload does not create."""
    if isinstance(workload, OltpWorkload):
        return
    if isinstance(workload, ScriptWorkload):
        if not workload.prepare:
            yield from _finding(experiment, variant, workload, [_Write("", workload.title)])
        return
    protocol = dialect_of(variant.server).protocol
    created = {entry.name.lower() for entry in workload.created_objects(protocol)}
    created |= {name.lower() for name in workload.created_tables(protocol)}
    if created:
        # A procedure that the setup creates or calls fills the tables that it creates.
        created.add("")
    writes = [
        write
        for write in _writes(experiment, variant, workload)
        if write.table.rpartition(".")[2].lower() not in created
    ]
    if writes:
        yield from _finding(experiment, variant, workload, writes)


def _existing_findings(
    experiment: Experiment, variant: Variant, workload: Workload, server: Server
) -> Iterator[Finding]:
    """The writes to tables that the workload would create, but that exist and are not dbdyno's."""
    if isinstance(workload, ScriptWorkload) or not has_comments(server):
        return
    protocol = server.address().protocol
    if isinstance(workload, OltpWorkload):
        # A comparison refuses tables that dbdyno has not created.
        if only_reads(workload) or len(experiment.variants) > 1:
            return
        names: Collection[str] = describe(experiment, workload, protocol).table_names()
        writes = [_Write(name, workload.title) for name in names]
    else:
        names = workload.created_tables(protocol)
        writes = list(_writes(experiment, variant, workload, with_setup=False))
    if not names or not writes:
        return
    existing = {name.lower() for name in shapes(server, names)}
    if len(existing) < len(names):
        # They are loaded, or refused.
        return
    existing -= {table.name.lower() for table in marked_tables(server) if table.is_dbdynos}
    writes = [write for write in writes if write.table.rpartition(".")[2].lower() in existing]
    if writes:
        yield from _finding(experiment, variant, workload, writes)


def _writes(
    experiment: Experiment, variant: Variant, workload: SqlWorkload, *, with_setup: bool = True
) -> Iterator[_Write]:
    """All writes of a workload and of a variant's `data.after`."""
    dialect = dialect_of(variant.server)

    def of(texts: Iterable[str], name: str) -> Iterator[_Write]:
        for sql in texts:
            # What a statement creates did not exist.
            tables = None if created_objects([sql], dialect) else written_tables(sql, dialect)
            if tables is not None:
                yield from (_Write(table, name) for table in tables or [""])

    if with_setup:
        yield from of(workload.setup, "setup")
        yield from of(workload.after, "after")
        yield from of(workload.cleanup, "cleanup")
    yield from of(variant.data.after, "data.after")
    yield from of((*workload.session, *variant.session.sql), "session")
    for background in workload.background:
        for name, _, statement in background.named_statements():
            yield from of((statement.sql,), name)
    total = math.fsum(entry.weight for entry in workload.transactions) or 1.0
    for name, transaction, statement in workload.named_statements():
        times = statement.repeat * transaction.weight / total
        yield from (write._replace(times=times) for write in of((statement.sql,), name))
    if workload.replay is None or experiment.load.writes == "skip":
        return
    for recorded in describe(experiment, workload, dialect.protocol).recorded:
        if recorded.writes:
            tables = written_tables(recorded.sql, dialect) if recorded.sql is not None else []
            word = recorded.sql.split(maxsplit=1)[0].upper() if recorded.sql else ""
            yield from (_Write(table, word, recorded.writes) for table in tables or [""])


def _finding(
    experiment: Experiment, variant: Variant, workload: Workload, writes: list[_Write]
) -> Iterator[Finding]:
    is_replay = isinstance(workload, SqlWorkload) and workload.replay is not None
    details: dict[str, dict[str, None]] = {}
    for write in writes:
        details.setdefault(write.table or compose("unknown tables"), {})[write.statement] = None
    text = compose(
        "{title} writes to tables that dbdyno has not created: {details}{amount}",
        title=workload.title,
        details=join_some(
            [join("", (table, f" ({', '.join(names)})")) for table, names in details.items()], _NAMED_MAX
        ),
        amount=_amount(experiment, workload, writes, is_replay=is_replay),
    )
    allowed = experiment.load.writes == "replay"
    fix = compose('Run it on a copy; or allow it: --writes replay, which is writes = "replay" in [load]')
    if is_replay:
        fix = compose(
            "Run it on a copy; or leave these statements out (--writes skip), or allow them (--writes "
            "replay); in a file it is writes in [load]"
        )
    evidence = {
        "workload": workload.title,
        "tables": {table: list(names) for table, names in details.items()},
    }
    level: Level = "note" if allowed else "stop"
    yield make_finding(level, text, evidence, "" if allowed else fix, variant.name)


def _amount(experiment: Experiment, workload: Workload, writes: list[_Write], *, is_replay: bool) -> str:
    """How many statements will write, as the end of a sentence; empty if it is not known."""
    count = math.fsum(write.times for write in writes)
    if not count:
        return ""
    if is_replay:
        return compose_count(
            round(count),
            ". Each pass through the log executes {number:,} such statement",
            ". Each pass through the log executes {number:,} such statements",
        )
    trials = [trial for trial in schedule(experiment) if trial.workload == workload.title]
    load = experiment.load
    per_trial = [
        (
            trial.point,
            math.fsum(load_s(experiment, workload.title, trial.point.connections, load.warmup_allowance_s())),
        )
        for trial in trials
    ]
    time = format_duration(math.fsum(seconds for _, seconds in per_trial))
    if load.rate:
        number = math.fsum(seconds * (point.rate or 0.0) for point, seconds in per_trial) * count
        return compose(". In {time} of load about {number:,.0f} of these run", number=number, time=time)
    number = math.fsum(seconds for _, seconds in per_trial) * _RATE * count
    return compose(
        ". In {time} of load about {number:,.0f} of these run for every {rate} transactions/s",
        number=number,
        rate=_RATE,
        time=time,
    )
