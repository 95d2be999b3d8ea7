"""P18: a trial is long enough for the work that a server does from time to time."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.quantities import number
from dbdyno.experiment.slices import only_reads
from dbdyno.finding import Finding
from dbdyno.text import compose, join

# Variables that give the time from one such work to the next, of which one may exceed a trial.
_PERIODS = ("checkpoint_timeout", "autovacuum_naptime")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds trials that are shorter than the periods of a server's background work.

    Catches a throughput of a server that postpones work until after the trial.

    Rule: if the workload may change rows, a trial with its warm-up must be longer than PostgreSQL's
    `checkpoint_timeout` and `autovacuum_naptime`; otherwise a note says that the trials do not contain this
    work. MySQL and MariaDB have no such periods: they write checkpoints as the redo log fills, which D07
    compares at the end of the trials.
    """
    assert moment is Moment.READY, "P18 is registered for READY only"
    description = context.description
    if description is None or context.workload is None or only_reads(context.workload):
        return
    # Every server start of the run shows the same.
    if context.first_description is not None:
        return
    trial_s = context.load.duration_s + context.load.warmup_allowance_s()
    periods = {
        name: float(value) / 1000.0
        for name in _PERIODS
        if (value := number(description.variables.get(name, ""))) is not None
    }
    longer = {name: period_s for name, period_s in periods.items() if trial_s < period_s}
    if not longer:
        return
    yield Finding(
        "P18",
        "note",
        compose(
            "a trial of {workload} takes {trial}, less than {listed}: most trials contain no checkpoint or "
            "vacuum that time triggers, and their costs are not in the result",
            workload=context.workload.title,
            trial=format_duration(trial_s),
            listed=join(
                ", ",
                (
                    compose("{name} ({period})", name=name, period=format_duration(period_s))
                    for name, period_s in longer.items()
                ),
            ),
        ),
        {"trial_s": trial_s, "periods_s": longer},
        context.subject,
        fix=compose("Set a longer duration in [load] if the result must hold for hours of load"),
    )


CHECK = Check("P18", "Trials are longer than the server's periods", frozenset({Moment.READY}), find)
