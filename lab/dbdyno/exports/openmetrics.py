"""The results of a run as OpenMetrics text. Every sample has the time when the run began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from dbdyno.experiment.metrics import CPU, LATENCY_MEAN, THROUGHPUT, percentile_of
from dbdyno.exports.series import JudgedRun, Series, read, scaled
from dbdyno.metrics.exposition import LABELS, Family, as_text, run_info
from dbdyno.store import Run
from dbdyno.store.listing import began

_CHANGE_LABELS = (*LABELS, "baseline", "metric")
# Metric that is no percentile -> name and help of its family.
_FAMILIES = {
    THROUGHPUT: ("dbdyno_result_throughput_transactions_per_second", "Throughput"),
    LATENCY_MEAN: ("dbdyno_result_latency_mean_seconds", "Mean latency"),
    CPU: ("dbdyno_result_cpu_seconds_per_transaction", "CPU time of the server for a transaction"),
}


def as_openmetrics(run: Run) -> str:
    """Medians over the blocks, and ratios to the baseline with their intervals and verdicts."""
    judged, time = read(run), began(run.path)
    timestamp = None if time is None else time.timestamp()
    families = (run_info(run, timestamp), *_results(judged, timestamp), *_changes(judged, timestamp))
    return as_text(families).decode().rstrip("\n")


def _results(judged: JudgedRun, timestamp: float | None) -> Iterator[Family]:
    trials = GaugeMetricFamily("dbdyno_result_trials", "Trials by state", labels=(*LABELS, "state"))
    latency = GaugeMetricFamily(
        "dbdyno_result_latency_seconds",
        "Percentile of latency, median over the blocks",
        labels=(*LABELS, "quantile"),
    )
    families = {
        metric: GaugeMetricFamily(name, f"{text}, median over the blocks", labels=LABELS)
        for metric, (name, text) in _FAMILIES.items()
    }
    for one in judged.series:
        labels = _labels(one)
        for state, count in Counter(trial.status for trial in one.trials).items():
            trials.add_metric((*labels, state), count, timestamp)
        for metric in judged.metrics:
            if "value" not in (known := one.summary(metric)):
                continue
            value = scaled(metric, known["value"], 1.0)
            percent = percentile_of(metric)
            if percent is None:
                families[metric].add_metric(labels, value, timestamp)
            else:
                latency.add_metric((*labels, f"{percent / 100:g}"), value, timestamp)
    yield from (trials, *families.values(), latency)


def _changes(judged: JudgedRun, timestamp: float | None) -> Iterator[Family]:
    families = {
        key: GaugeMetricFamily(f"dbdyno_change_ratio{suffix}", text, labels=_CHANGE_LABELS)
        for key, suffix, text in (
            ("value", "", "Ratio of the metric to that of the baseline"),
            ("lower", "_lower", "Lower end of the interval of the ratio"),
            ("upper", "_upper", "Upper end of the interval of the ratio"),
        )
    }
    verdict = GaugeMetricFamily("dbdyno_verdict", "1 for the verdict", labels=(*_CHANGE_LABELS, "verdict"))
    for change in judged.changes:
        comparison, effect = change.comparison, change.effect
        labels = (
            comparison.variant,
            comparison.workload,
            change.load,
            judged.verdict.baseline,
            effect.metric,
        )
        for key, ratio in change.ratios.items():
            families[key].add_metric(labels, ratio, timestamp)
        if effect.verdict is not None:
            verdict.add_metric((*labels, effect.verdict), 1, timestamp)
    yield from (*families.values(), verdict)


def _labels(series: Series) -> tuple[str, str, str]:
    return series.variant, series.workload, series.point.label
