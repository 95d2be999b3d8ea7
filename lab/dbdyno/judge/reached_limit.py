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

# A trial that reaches this share of the limit was probably held back by it: the rest is lost in
# stalls, which the load does not catch up.
REACHED = 0.98


def reached_limit(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A finding for each load at which a variant reached `load.max_rate`, if throughput is compared."""
    limit = experiment.load.max_rate
    is_compared = len(experiment.variants) > 1 and THROUGHPUT in experiment.metrics
    if limit is None or experiment.load.is_open or not is_compared:
        return
    throughputs: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for trial in trials:
        if trial.figures is not None:
            connections = trial.at["connections"]
            throughputs[trial.variant, trial.workload, connections].append(trial.figures.throughput)
    for (variant, workload, connections), values in throughputs.items():
        if median(values) < REACHED * limit:
            continue
        yield Finding(
            "R17",
            "stop" if experiment.metrics[0] == THROUGHPUT else "warn",
            f"{variant} reached load.max_rate, {limit:g} transactions/s, at "
            f"{count(round(connections), 'connection')} of {workload}: the limit decides the throughput, not "
            "the variant",
            {"workload": workload, "at": {"connections": connections}, "max_rate": limit},
            variant,
            fix='Write metrics = ["p99"] in [design] to compare the latency at this rate, or raise max_rate',
        )
