"""R17: whether the limit of the load decides the throughput, instead of the variants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.wording import connections_count
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# A limit for which connections wait this share of the time changes the throughput by about as much.
WAIT = 0.01


def reached_limit(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A finding for each load at which `load.max_rate` delayed a variant, if throughput is compared."""
    limit = experiment.load.max_rate
    is_compared = len(experiment.variants) > 1 and THROUGHPUT in experiment.metrics
    if limit is None or not is_compared:
        return
    waits: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.figures is not None:
            load = trial.variant, trial.workload, trial.at["connections"]
            waits[load].append(trial.figures.rate_limit_wait)
    for (variant, workload, connections), shares in waits.items():
        if median(shares) < WAIT:
            continue
        yield Finding(
            "R17",
            "stop" if experiment.metrics[0] == THROUGHPUT else "warn",
            compose(
                "because of load.max_rate, {limit:g} transactions/s, the connections of {variant} waited "
                "{median:.0%} of the time at {count} of {workload} (limit {wait:.0%}): the limit decides "
                "the throughput, at least partly, not the variant",
                limit=limit,
                variant=variant,
                median=median(shares),
                count=connections_count(round(connections)),
                workload=workload,
                wait=WAIT,
            ),
            {
                "workload": workload,
                "at": {"connections": connections},
                "max_rate": limit,
                "wait_share": median(shares),
            },
            variant,
            fix=compose(
                'Write metrics = ["p99"] in [design] to compare the latency at this rate, or raise max_rate'
            ),
        )
