"""P08 and P09 in a stored run: differing execution plans, and rows that the user's SQL examined
under load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dbdyno.experiment.differences import list_differences
from dbdyno.experiment.model import Experiment, OltpWorkload
from dbdyno.experiment.sql_reading import protocol_of
from dbdyno.explain.costs import Cost
from dbdyno.finding import Finding
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, join

# Counters whose sum is the number of examined rows. PostgreSQL counts rows in table scans and entries in
# index scans.
_MYSQL = "Handler_read_"
_POSTGRESQL = "pg_stat_database.tup_returned"


def examined_rows(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], experiment: Experiment
) -> Iterator[Finding]:
    """P09: the number of rows that the server examined for each transaction under load, by its counters."""
    for workload in experiment.workloads:
        if isinstance(workload, OltpWorkload):
            continue
        medians: dict[str, float] = {}
        for variant in experiment.variants:
            rows = [
                number
                for trial in trials
                if (trial.variant, trial.workload) == (variant.name, workload.title)
                and (number := _examined(costs.get(trial.index, {}))) is not None
            ]
            if rows:
                medians[variant.name] = median(rows)
        if medians:
            listed = join(", ", (f"{name} {number:,.1f}" for name, number in medians.items()))
            yield Finding(
                "P09",
                "note",
                compose(
                    "rows examined for each transaction of {title} under load, by the servers' counters "
                    "(medians of the trials): {listed}",
                    title=workload.title,
                    listed=listed,
                ),
                {"workload": workload.title, "examined": medians},
            )


def _examined(costs: Mapping[str, Cost]) -> float | None:
    rows = [cost.each for key, cost in costs.items() if key.startswith(_MYSQL) or key == _POSTGRESQL]
    return sum(rows) if rows else None


def differing_plans(findings: Sequence[Finding], experiment: Experiment) -> Iterator[Finding]:
    """P08: statements that a variant's server executes by a different plan than the baseline's server.

    If the variant declares other statements, tables or indexes, other plans are intended, and a note.
    """
    by_variant = {
        (one.subject, one.evidence["workload"]): one.evidence["plans"]
        for one in findings
        if one.code == "P08" and "plans" in one.evidence
    }
    baseline = experiment.variants[0].name
    products = {one.name: (one.server.product, protocol_of(one.server)) for one in experiment.variants}
    for (subject, workload), own_plans in by_variant.items():
        others = by_variant.get((baseline, workload), {})
        # Different products have different names for the same plan, so only variants of one product are
        # compared.
        if subject == baseline or products.get(subject) != products[baseline]:
            continue
        changed = {
            name: (others[name], plan)
            for name, plan in own_plans.items()
            if name in others and others[name] != plan
        }
        if changed:
            listed = join(
                "; ",
                (
                    compose("{name}: {plan} instead of {other}", name=name, plan=plan, other=other)
                    for name, (other, plan) in changed.items()
                ),
            )
            declared = list_differences(experiment, experiment.variant(subject))
            intended = any(key == "data.after" or key.startswith("workload") for key in declared)
            yield Finding(
                "P08",
                "note" if intended else "warn",
                compose(
                    "{subject} executes statements of {workload} by different plans than {baseline}: "
                    "{listed}",
                    subject=subject,
                    workload=workload,
                    baseline=baseline,
                    listed=listed,
                ),
                {"workload": workload, "plans": changed},
                subject,
            )
