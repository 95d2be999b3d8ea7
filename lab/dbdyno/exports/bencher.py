"""Medians and ratios in the Bencher Metric Format, JSON that `bencher run --adapter json` reads.

Source of the format: https://bencher.dev/docs/reference/bencher-metric-format.
"""

from __future__ import annotations

import json
from statistics import median

from dbdyno.experiment.metrics import CPU, LATENCY_MEAN, THROUGHPUT, is_latency
from dbdyno.exports.series import latency_name, read
from dbdyno.store import Run

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
            if known := series.values(metric):
                scale = 1.0 if metric == THROUGHPUT else 1000.0
                bounds = {"value": median(known), "lower_value": min(known), "upper_value": max(known)}
                entry = {key: value * scale for key, value in bounds.items()}
                benchmarks.setdefault(series.name, {})[_measure(metric)] = entry
    keys = {"value": "value", "lower": "lower_value", "upper": "upper_value"}
    for change in judged.changes:
        if "value" in (ratios := change.ratios):
            entry = {keys[key]: ratio for key, ratio in ratios.items()}
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
