"""P08 and P09 in a stored run: differing execution plans, and rows that the user's SQL examined
under load.

P22: differences between variants in encryption, compression and authentication of the load's
connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dbdyno.experiment.differences import is_identical, list_differences
from dbdyno.experiment.model import Experiment, OltpWorkload
from dbdyno.experiment.sql_reading import dialect_of
from dbdyno.explain import Cost
from dbdyno.finding import Finding
from dbdyno.rules.register import rule
from dbdyno.stats.verdict_rule import BLOCKS_MIN
from dbdyno.store import StoredTrial
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.trial import sessions_of
from dbdyno.text import compose, join

# Counters whose sum is the number of examined rows. PostgreSQL counts rows in table scans and entries in
# index scans.
_MYSQL = "Handler_read_"
_POSTGRESQL = "pg_stat_database.tup_returned"


@rule("P09")
def examined_rows(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], experiment: Experiment
) -> Iterator[Finding]:
    """The number of rows that the server examined for each transaction under load, by its counters."""
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


@rule("P08")
def differing_plans(findings_of_run: Sequence[Finding], experiment: Experiment) -> Iterator[Finding]:
    """Statements that a variant's server executes by a different plan than the baseline's server.

    If the variant declares other statements, tables or indexes, other plans are intended, and a note.
    """
    by_variant = {
        (entry.subject, entry.evidence["workload"]): entry.evidence["plans"]
        for entry in findings_of_run
        if entry.code == "P08" and "plans" in entry.evidence
    }
    baseline = experiment.variants[0].name
    products = {
        variant.name: (variant.server.product, dialect_of(variant.server)) for variant in experiment.variants
    }
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
                    compose("{name}: {plan} instead of {other}", name=name, plan=plan, other=earlier_plan)
                    for name, (earlier_plan, plan) in changed.items()
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


# Properties that affect the cost of every statement. Authentication affects only the start of a connection.
AFFECTING_STATEMENTS = ("tls", "compression")


@rule("P22")
def session_differences(stored: Sequence[StoredTrial], experiment: Experiment) -> Iterator[Finding]:
    """Variants whose connections differ from those of the baseline in one of these properties. A difference
    that the experiment declares is a note.
    """
    sessions = sessions_of(stored)
    baseline = experiment.variants[0].name
    base = sessions.get(baseline)
    for variant in experiment.variants[1:]:
        session = sessions.get(variant.name)
        if not session or not base:
            continue
        differing = {key: [base.get(key), value] for key, value in session.items() if value != base.get(key)}
        if differing:
            listed = join(
                ", ",
                (
                    compose(
                        "{key} {first} in {baseline} and {second} in {name}",
                        key=key,
                        first=first or compose("none"),
                        baseline=baseline,
                        second=second or compose("none"),
                        name=variant.name,
                    )
                    for key, (first, second) in differing.items()
                ),
            )
            declared = list_differences(experiment, variant)
            is_warning = any(
                key in AFFECTING_STATEMENTS and f"session.{key}" not in declared for key in differing
            )
            yield Finding(
                "P22",
                "warn" if is_warning else "note",
                compose(
                    "the connections of {name} differ from those of {baseline}: {listed}",
                    name=variant.name,
                    baseline=baseline,
                    listed=listed,
                )
                + (compose("; this may be the cause of a measured difference") if is_warning else ""),
                differing,
                variant.name,
            )


@rule("P17")
def unchanged(explanation: ExplainedFile, experiment: Experiment) -> Iterator[Finding]:
    """Variants whose servers are declared differently although no metric changed significantly."""
    first = experiment.variants[0]
    for entry in explanation.comparisons:
        variant, measures = experiment.variant(entry.variant), entry.measures
        enough = bool(measures) and measures[0].blocks >= BLOCKS_MIN
        differs = not is_identical(experiment, variant)
        if differs and enough and not any(measure.significant for measure in measures):
            yield Finding(
                "P17",
                "warn",
                compose(
                    "{name} and {name_2} are declared differently, but none of {number} metrics per "
                    "transaction of {workload} changed significantly: the difference may not affect what "
                    "this workload does",
                    name=variant.name,
                    name_2=first.name,
                    number=len(measures),
                    workload=entry.workload,
                ),
                {"workload": entry.workload, "measures": len(measures)},
                variant.name,
            )
