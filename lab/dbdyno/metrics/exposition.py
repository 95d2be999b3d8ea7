"""A run in progress as OpenMetrics text. No other file imports prometheus_client (extra `metrics`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from dbdyno.stats.histogram import merge, percentile
from dbdyno.store import Run
from dbdyno.store.live import LiveRun, LiveTrial
from dbdyno.store.run import run_order

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
QUANTILES = (0.5, 0.95, 0.99)
_LABELS = ("variant", "workload", "point")

Family = CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily


def exposition(run: Run, live: LiveRun) -> bytes:
    """The values of a run at one moment.

    Values of trials are those of the running ones. Their gauges are of the last interval that has ended, and
    their counters of the trial so far; a counter begins again at 0 with each trial.
    """
    registry = CollectorRegistry()
    registry.register(_Collector(run, live))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


# The registry compares collectors by identity.
@dataclass(eq=False)
class _Collector:
    run: Run
    live: LiveRun

    def collect(self) -> Iterator[Family]:
        """The metric families, which the library asks for."""
        names = {"experiment": self.run.path.parent.name, "run": self.run.path.name}
        yield InfoMetricFamily(
            "dbdyno_run",
            "The run whose values these are",
            value={**names, "number": str(run_order(self.run.path)[0])},
        )
        yield GaugeMetricFamily(
            "dbdyno_running", "1 while a dbdyno writes to the run", int(self.live.is_running)
        )
        yield from _progress(self.live)
        yield from _trials(self.live.running)


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
    connections = GaugeMetricFamily("dbdyno_connections", "Connections of the load", labels=_LABELS)
    throughput = GaugeMetricFamily(
        "dbdyno_throughput_transactions_per_second",
        "Throughput in the last interval",
        labels=(*_LABELS, "phase"),
    )
    latency = GaugeMetricFamily(
        "dbdyno_latency_seconds",
        "Latency of the transactions that ended in the last interval",
        labels=(*_LABELS, "phase", "quantile"),
    )
    transactions = CounterMetricFamily(
        "dbdyno_transactions", "Transactions of the trial, with its warm-up", labels=_LABELS
    )
    errors = CounterMetricFamily(
        "dbdyno_errors", "Errors of the trial by their code, with its warm-up", labels=(*_LABELS, "code")
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
    ((unit, value),) = one.trial.point.as_dict().items()
    return one.trial.variant, one.trial.workload, f"{unit}={value:g}"
