"""P08 and P09 on the stored run: rows that the user's SQL examined under load, and differing plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dbdyno.experiment.model import Experiment, OltpWorkload
from dbdyno.explain.costs import Cost
from dbdyno.finding import Finding
from dbdyno.store.measured import MeasuredTrial

# Counters whose sum is the number of examined rows. PostgreSQL counts rows of scans and entries of indexes.
_MYSQL = "Handler_read_"
_POSTGRESQL = "pg_stat_database.tup_returned"


def examined(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], experiment: Experiment
) -> Iterator[Finding]:
    """P09: rows examined per transaction, by the server's counters under load."""
    for workload in experiment.workloads:
        if isinstance(workload, OltpWorkload):
            continue
        medians: dict[str, float] = {}
        for variant in experiment.variants:
            rows = [
                number
                for trial in trials
                if (trial.place.variant, trial.place.workload) == (variant.name, workload.title)
                and (number := _examined(costs.get(trial.place.index, {}))) is not None
            ]
            if rows:
                medians[variant.name] = median(rows)
        if medians:
            listed = ", ".join(f"{name} {number:,.1f}" for name, number in medians.items())
            yield Finding(
                "P09",
                "note",
                f"rows examined for each transaction of {workload.title} under load, by the servers' "
                f"counters (medians of the trials): {listed}",
                {"workload": workload.title, "examined": medians},
            )


def _examined(costs: Mapping[str, Cost]) -> float | None:
    rows = [cost.each for key, cost in costs.items() if key.startswith(_MYSQL) or key == _POSTGRESQL]
    return sum(rows) if rows else None


def plans(findings: Sequence[Finding], experiment: Experiment) -> Iterator[Finding]:
    """P08: statements whose plan on a variant's server differs from the baseline's."""
    by_variant = {
        (one.subject, one.evidence["workload"]): one.evidence["plans"]
        for one in findings
        if one.code == "P08" and "plans" in one.evidence
    }
    baseline = experiment.variants[0].name
    products = {variant.name: variant.server.product for variant in experiment.variants}
    for (subject, workload), known in by_variant.items():
        others = by_variant.get((baseline, workload), {})
        # Different products have different names for the same access method.
        if subject == baseline or products.get(subject) != products[baseline]:
            continue
        changed = {
            name: (others[name], plan)
            for name, plan in known.items()
            if name in others and others[name] != plan
        }
        if changed:
            listed = "; ".join(f"{name}: {one}, there {other}" for name, (other, one) in changed.items())
            yield Finding(
                "P08",
                "warn",
                f"{subject} executes statements of {workload} by other plans than {baseline}: {listed}",
                {"workload": workload, "plans": changed},
                subject,
            )
