"""R17: whether the limit of the load decides the throughput, instead of the variants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.wording import count
from dbdyno.store.measured import MeasuredTrial

# If the limit delays this share of the transactions, it changes the throughput.
DELAYED = 0.01


def reached_limit(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A finding for each load at which `load.max_rate` delayed a variant, if throughput is compared."""
    limit = experiment.load.max_rate
    is_compared = len(experiment.variants) > 1 and THROUGHPUT in experiment.metrics
    if limit is None or not is_compared:
        return
    delayed: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.figures is not None:
            share = trial.figures.rate_limited / trial.figures.events
            delayed[trial.variant, trial.workload, trial.at["connections"]].append(share)
    for (variant, workload, connections), shares in delayed.items():
        if median(shares) < DELAYED:
            continue
        yield Finding(
            "R17",
            "stop" if experiment.metrics[0] == THROUGHPUT else "warn",
            f"load.max_rate, {limit:g} transactions/s, delayed {median(shares):.0%} of the transactions of "
            f"{variant} at {count(round(connections), 'connection')} of {workload} (limit {DELAYED:.0%}): it "
            "decides the throughput, at least partly, not the variant",
            {
                "workload": workload,
                "at": {"connections": connections},
                "max_rate": limit,
                "delayed_share": median(shares),
            },
            variant,
            fix='Write metrics = ["p99"] in [design] to compare the latency at this rate, or raise max_rate',
        )
