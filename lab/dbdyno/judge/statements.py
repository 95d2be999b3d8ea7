"""What a run says of SQL of the user's own: rows examined under load, and plans that differ.

Codes are those of the checks that look before the load, P08 and P09.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dbdyno.experiment.model import Experiment, OltpWorkload
from dbdyno.explain.costs import Cost
from dbdyno.judge.findings import Finding, finding
from dbdyno.judge.measured import Measured

# Counters whose sum is the rows that a server has looked at. PostgreSQL's counts rows of scans and entries of
# indexes.
_MYSQL = "Handler_read_"
_POSTGRESQL = "pg_stat_database.tup_returned"


def examined(
    trials: Sequence[Measured], costs: Mapping[int, Mapping[str, Cost]], experiment: Experiment
) -> Iterator[Finding]:
    """P09: rows that a transaction made the server examine, by the server's counters under load."""
    for workload in experiment.workloads:
        if isinstance(workload, OltpWorkload):
            continue
        told: dict[str, float] = {}
        for variant in experiment.variants:
            each = [
                count
                for trial in trials
                if (trial.place.variant, trial.place.workload) == (variant.name, workload.title)
                and (count := _examined(costs.get(trial.place.index, {}))) is not None
            ]
            if each:
                told[variant.name] = median(each)
        if told:
            listed = ", ".join(f"{name} {count:,.1f}" for name, count in told.items())
            yield finding(
                "P09",
                "note",
                f"rows examined for each transaction of {workload.title} under load, by the servers' "
                f"counters (medians of the trials): {listed}",
                workload=workload.title,
                examined=told,
            )


def _examined(costs: Mapping[str, Cost]) -> float | None:
    found = [cost.each for key, cost in costs.items() if key.startswith(_MYSQL) or key == _POSTGRESQL]
    return sum(found) if found else None


def plans(found: Sequence[Finding], experiment: Experiment) -> Iterator[Finding]:
    """P08: statements for which a variant's server has another plan than the baseline's."""
    told = {
        (entry["subject"], entry["evidence"]["workload"]): entry["evidence"]["plans"]
        for entry in found
        if entry["code"] == "P08" and "plans" in entry["evidence"]
    }
    baseline = experiment.variants[0].name
    products = {variant.name: variant.server.product for variant in experiment.variants}
    for (subject, workload), known in told.items():
        others = told.get((baseline, workload), {})
        # Two products name the same thing differently.
        if subject == baseline or products.get(subject) != products[baseline]:
            continue
        changed = {
            name: (others[name], plan)
            for name, plan in known.items()
            if name in others and others[name] != plan
        }
        if changed:
            listed = "; ".join(f"{name}: {one}, there {other}" for name, (other, one) in changed.items())
            yield finding(
                "P08",
                "warn",
                f"{subject} executes statements of {workload} by other plans than {baseline}: {listed}",
                subject,
                workload=workload,
                plans=changed,
            )
