"""R13: whether enough transactions are beyond the percentiles that are judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.experiment.metrics import metric_text, percentile_of
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.second_lines import BEYOND_MIN
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose


def few_beyond(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note for each workload and judged percentile that some trial has too few transactions for."""
    duration_s = experiment.load.duration_s
    for workload in experiment.workloads:
        fewest = min(
            (trial.figures.events for trial in trials if trial.workload == workload.title and trial.figures),
            default=0,
        )
        for metric in experiment.metrics if fewest else ():
            percent = percentile_of(metric)
            if percent is None:
                continue
            # Without the rounding, 99.9 % of 10,000 would be more than 9,990.
            beyond = fewest - math.ceil(round(percent / 100.0 * fewest, 6))
            if beyond >= BEYOND_MIN:
                continue
            needed = math.ceil(round(BEYOND_MIN / (1.0 - percent / 100.0), 6))
            needed_s = math.ceil(duration_s * needed / fewest)
            yield Finding(
                "R13",
                "note",
                compose(
                    "{metric_text} of {title} depends on few transactions: {beyond} of the {fewest:,} in a "
                    "trial are beyond it; it is stable with {beyond_min}, that is {needed:,} in all",
                    metric_text=metric_text(metric),
                    title=workload.title,
                    beyond=beyond,
                    fewest=fewest,
                    beyond_min=BEYOND_MIN,
                    needed=needed,
                ),
                {
                    "workload": workload.title,
                    "metric": metric,
                    "transactions": fewest,
                    "beyond": beyond,
                    "needed": needed,
                },
                fix=compose(
                    'Set duration = "{needed_s}s" in [load], or name a lower percentile in design.metrics',
                    needed_s=needed_s,
                ),
            )
