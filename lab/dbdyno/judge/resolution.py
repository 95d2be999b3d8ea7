"""R08: whether a difference between percentiles exceeds the resolution with which they are recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from dbdyno.experiment.metrics import metric_text, percentile_of
from dbdyno.finding import Finding
from dbdyno.judge.comparison import Comparison
from dbdyno.stats.histogram import bucket_width_us
from dbdyno.text import compose


def below_resolution(comparison: Comparison) -> Iterator[Finding]:
    """The finding about one comparison, if its effect is significant but below the width of the buckets."""
    effect, metric = comparison.judged.overall, comparison.scale.metric
    if percentile_of(metric) is None or effect is None or not effect.is_significant:
        return
    values = [
        median(trial.value(metric) for trial in pairs.baseline.values() if trial.has(metric))
        for pairs in comparison.pairs
        if any(trial.has(metric) for trial in pairs.baseline.values())
    ]
    if not all(map(math.isfinite, values)):
        # The baseline's server failed in most blocks at some load: no difference is below a resolution there.
        return
    share = abs(effect.effect_percent) / 100.0
    widths = [bucket_width_us(round(value)) for value in values]
    if not values or any(share * value >= width for value, width in zip(values, widths, strict=True)):
        return
    baseline, variant, workload = comparison.names
    yield Finding(
        "R08",
        "warn",
        compose(
            "{metric} of {workload} differs between {baseline} and {variant} by {difference:.2f} us, which "
            "is less than the {width} us with which latencies of {value:,.0f} us are recorded: the size of "
            "the difference is not known",
            metric=metric_text(metric),
            workload=workload,
            baseline=baseline,
            variant=variant,
            difference=share * max(values),
            width=max(widths),
            value=max(values),
        ),
        {"workload": workload, "metric": metric, "width_us": max(widths)},
        variant,
        fix=compose("Compare the throughput of a closed loop, which has no such resolution"),
    )
