"""A run in progress as OpenMetrics text, and the names that the text of its results shares with it.

Only this file and exports/openmetrics.py import prometheus_client (extra `metrics`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from dbdyno.experiment.metrics import FEW_PERCENTILES
from dbdyno.stats.histogram import merge, percentile
from dbdyno.store import Run
from dbdyno.store.live import LiveRun, LiveTrial
from dbdyno.store.measured import Point
from dbdyno.store.run import run_order

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
QUANTILES = tuple(percent / 100.0 for percent in FEW_PERCENTILES.values())
# Of every value of a variant, a workload and a load.
LABELS = ("variant", "workload", "point")

Family = CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily


def exposition(run: Run, live: LiveRun) -> bytes:
    """The values of a run at one moment.

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
    states = Counter(one.state for one in live.trials)
    for state in ("running", "done", "failed", "interrupted"):
        trials.add_metric((state,), states[state])
    yield trials
    yield GaugeMetricFamily("dbdyno_trials_planned", "Trials of the schedule", len(live.planned))
    blocks = {one.block for one in live.planned}
    yield GaugeMetricFamily("dbdyno_blocks_planned", "Blocks of the schedule", len(blocks))
    begun = max((one.trial.block + 1 for one in live.trials), default=0)
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
    for one in running:
        labels = _labels(one)
        connections.add_metric(labels, one.trial.point.connections)
        transactions.add_metric(labels, sum(part.events for part in one.parts))
        codes: Counter[str] = Counter()
        for part in one.parts:
            codes.update(part.errors)
        for code, count in sorted(codes.items()):
            errors.add_metric((*labels, code), count)
        if one.parts:
            last = one.parts[-1]
            throughput.add_metric((*labels, last.phase), last.throughput)
            known = merge([last.latency_us])
            ends_us = float(min(known, default=0)), float(max(known, default=0))
            for quantile in QUANTILES:
                if (value := percentile(known, quantile * 100.0, *ends_us)) is not None:
                    latency.add_metric((*labels, last.phase, str(quantile)), value.value_us / 1e6)
    yield from (connections, throughput, latency, transactions, errors)


def _labels(one: LiveTrial) -> tuple[str, str, str]:
    return one.trial.variant, one.trial.workload, Point.of(one.trial.point.as_dict()).label
