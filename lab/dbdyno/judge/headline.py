"""R19: the rate of the statement that a workload names as its headline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.finding import Finding
from dbdyno.judge.wording import connections_count
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, join


def headline_rates(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note for each load of a workload with a headline, without trials in slices."""
    for workload in experiment.workloads:
        if not isinstance(workload, SqlWorkload) or workload.headline is None:
            continue
        rates: dict[tuple[str, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for trial in trials:
            known = trial.statements.get(workload.headline)
            if trial.workload == workload.title and trial.figures is not None and known is not None:
                per_minute = 60 * trial.figures.throughput * known.per_transaction
                rates[trial.point][trial.variant].append(per_minute)
        for (unit, value), by_variant in rates.items():
            medians = {variant: median(several) for variant, several in by_variant.items()}
            yield Finding(
                "R19",
                "note",
                compose(
                    "{statement} per minute in {title} at {load} (medians of the trials): {listed}. Such a "
                    "rate is no audited result of a standard benchmark",
                    statement=workload.headline,
                    title=workload.title,
                    load=compose("{value:g} transactions/s", value=value)
                    if unit == "rate"
                    else connections_count(round(value)),
                    listed=join(", ", (f"{name} {number:,.0f}" for name, number in medians.items())),
                ),
                {"workload": workload.title, "at": {unit: value}, "per_minute": medians},
            )
