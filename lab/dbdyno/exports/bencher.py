"""Medians and ratios in the Bencher Metric Format, JSON that `bencher run --adapter json` reads.

Source of the format: https://bencher.dev/docs/reference/bencher-metric-format.
"""

from __future__ import annotations

import json

from dbdyno.experiment.metrics import CPU, LATENCY_MEAN, is_latency
from dbdyno.exports.series import latency_name, read, scaled
from dbdyno.store import Run

# Key of a summary or a ratio -> key of the format.
_KEYS = {"value": "value", "lower": "lower_value", "upper": "upper_value"}
Benchmarks = dict[str, dict[str, dict[str, float]]]


def as_bencher(run: Run) -> str:
    """Benchmark (workload, load and variant) -> measure -> value, lower_value, upper_value.

    Measures are medians over the blocks, with minimum and maximum; units are those of Bencher's own measures:
    transactions/s, and nanoseconds. A measure that ends in -ratio is the ratio to the baseline, with the
    interval of the verdict, of which a side may be open.
    """
    judged = read(run)
    benchmarks: Benchmarks = {}
    for series in judged.series:
        for metric in judged.metrics:
            if "value" in (known := series.summary(metric)):
                entry = {_KEYS[key]: scaled(metric, value, 1e9) for key, value in known.items()}
                benchmarks.setdefault(series.name, {})[_measure(metric)] = entry
    for change in judged.changes:
        if "value" in (ratios := change.ratios):
            entry = {_KEYS[key]: ratio for key, ratio in ratios.items()}
            measure = f"{_measure(change.effect.metric)}-ratio"
            benchmarks.setdefault(change.name, {})[measure] = entry
    return json.dumps(benchmarks, indent=1, ensure_ascii=False)


def _measure(metric: str) -> str:
    if metric == CPU:
        return "cpu"
    if not is_latency(metric):
        return metric
    # Bencher has a measure of this name, and its benchmark adapters fill it with means.
    return "latency" if metric == LATENCY_MEAN else f"latency-{latency_name(metric)}"
