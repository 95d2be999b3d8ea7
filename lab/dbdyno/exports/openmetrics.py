"""A run as OpenMetrics text: the values of a run in progress, or the results of a judged one.

Only this file imports prometheus_client (extra `metrics`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from dbdyno.experiment.metrics import CPU, FEW_PERCENTILES, LATENCY_MEAN, THROUGHPUT, percentile_of
from dbdyno.exports.series import JudgedRun, read, scaled
from dbdyno.stats.histogram import merge, percentile
from dbdyno.store import Run
from dbdyno.store.listing import began
from dbdyno.store.live import LiveRun, LiveTrial
from dbdyno.store.measured import Point
from dbdyno.store.run import run_order

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
QUANTILES = tuple(percent / 100.0 for percent in FEW_PERCENTILES.values())
# Of every value of a variant, a workload and a load.
LABELS = ("variant", "workload", "point")

Family = CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily


def exposition(run: Run, live: LiveRun) -> bytes:
    """The values of a run in progress at one moment.

    Values of trials are those of the running ones. Their gauges are of the last interval that has ended, and
    their counters of the trial so far; a counter begins again at 0 with each trial.
    """
    running = GaugeMetricFamily("dbdyno_running", "1 while a dbdyno writes to the run", int(live.is_running))
    return as_text((run_info(run), running, *_progress(live), *_trials(live.running)))


def as_text(families: Iterable[Family]) -> bytes:
    """The metric families as OpenMetrics text."""
    registry = CollectorRegistry()
    registry.register(_Collector(families))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


# The registry compares collectors by identity.
@dataclass(eq=False)
class _Collector:
    families: Iterable[Family]

    def collect(self) -> Iterable[Family]:
        """The metric families, which the library asks for."""
        return self.families


def run_info(run: Run, timestamp: float | None = None) -> Family:
    """The names of a run."""
    info = InfoMetricFamily("dbdyno_run", "The run whose values these are")
    names = {"experiment": run.path.parent.name, "run": run.path.name}
    info.add_metric((), {**names, "number": str(run_order(run.path)[0])}, timestamp)
    return info


def _progress(live: LiveRun) -> Iterator[Family]:
    trials = GaugeMetricFamily("dbdyno_trials", "Trials that have begun, by state", labels=("state",))
    states = Counter(trial.state for trial in live.trials)
    for state in ("running", "done", "failed", "interrupted"):
        trials.add_metric((state,), states[state])
    yield trials
    yield GaugeMetricFamily("dbdyno_trials_planned", "Trials of the schedule", len(live.planned))
    blocks = {entry.block for entry in live.planned}
    yield GaugeMetricFamily("dbdyno_blocks_planned", "Blocks of the schedule", len(blocks))
    begun = max((entry.trial.block + 1 for entry in live.trials), default=0)
    yield GaugeMetricFamily("dbdyno_block", "Number of the last block that has begun, from 1", begun)


def _trials(running: tuple[LiveTrial, ...]) -> Iterator[Family]:
    connections = GaugeMetricFamily("dbdyno_connections", "Connections of the load", labels=LABELS)
    throughput = GaugeMetricFamily(
        "dbdyno_throughput_transactions_per_second",
        "Throughput in the last interval",
        labels=(*LABELS, "phase"),
    )
    latency = GaugeMetricFamily(
        "dbdyno_latency_seconds",
        "Latency of the transactions that ended in the last interval",
        labels=(*LABELS, "phase", "quantile"),
    )
    transactions = CounterMetricFamily(
        "dbdyno_transactions", "Transactions of the trial, with its warm-up", labels=LABELS
    )
    errors = CounterMetricFamily(
        "dbdyno_errors", "Errors of the trial by their code, with its warm-up", labels=(*LABELS, "code")
    )
    for entry in running:
        labels = _labels_of_trial(entry)
        connections.add_metric(labels, entry.trial.point.connections)
        transactions.add_metric(labels, sum(part.events for part in entry.parts))
        codes: Counter[str] = Counter()
        for part in entry.parts:
            codes.update(part.errors)
        for code, count in sorted(codes.items()):
            errors.add_metric((*labels, code), count)
        if entry.parts:
            last = entry.parts[-1]
            throughput.add_metric((*labels, last.phase), last.throughput)
            latencies_us = merge([last.latency_us])
            ends_us = float(min(latencies_us, default=0)), float(max(latencies_us, default=0))
            for quantile in QUANTILES:
                if (value := percentile(latencies_us, quantile * 100.0, *ends_us)) is not None:
                    latency.add_metric((*labels, last.phase, str(quantile)), value.value_us / 1e6)
    yield from (connections, throughput, latency, transactions, errors)


def _labels_of_trial(live_trial: LiveTrial) -> tuple[str, str, str]:
    return (
        live_trial.trial.variant,
        live_trial.trial.workload,
        Point.of(live_trial.trial.point.as_dict()).label,
    )


_CHANGE_LABELS = (*LABELS, "baseline", "metric")
# Metric that is no percentile -> name and help of its family.
_FAMILIES = {
    THROUGHPUT: ("dbdyno_result_throughput_transactions_per_second", "Throughput"),
    LATENCY_MEAN: ("dbdyno_result_latency_mean_seconds", "Mean latency"),
    CPU: ("dbdyno_result_cpu_seconds_per_transaction", "CPU time of the server for a transaction"),
}


def as_openmetrics(run: Run) -> str:
    """The results of a judged run: medians over the blocks, and ratios to the baseline with their intervals
    and verdicts. Every sample has the time when the run began.
    """
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
    for entry in judged.series:
        labels = (entry.variant, entry.workload, entry.point.label)
        for state, count in Counter(trial.status for trial in entry.trials).items():
            trials.add_metric((*labels, state), count, timestamp)
        for metric in judged.metrics:
            if "value" not in (summary_of_metric := entry.summary(metric)):
                continue
            value = scaled(metric, summary_of_metric["value"], 1.0)
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
