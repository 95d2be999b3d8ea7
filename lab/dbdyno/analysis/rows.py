"""The rows of the frames, as plain values. `Results` describes their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.experiment.metrics import LATENCY_MEAN
from dbdyno.stats.histogram import merge, percentile
from dbdyno.store import Run
from dbdyno.store.document import PointDict
from dbdyno.store.measured import MeasuredFile, MeasuredTrial
from dbdyno.store.records import Interval, Slice
from dbdyno.store.verdict import Effect, VerdictFile

Row = dict[str, Any]
_LATENCIES = (
    LATENCY_MEAN, "latency_p50_us", "latency_p90_us", "latency_p95_us", "latency_p99_us", "latency_p999_us",
    "latency_max_us",
)  # fmt: skip
_PERCENTILES = {"latency_p50_us": 50.0, "latency_p95_us": 95.0, "latency_p99_us": 99.0}
# Columns that are not floating-point numbers.
TEXTS = frozenset(
    {"variant", "baseline", "workload", "status", "failure", "failed_by", "lower_bound_of", "phase",
     "statement", "metric", "verdict", "sentence"}
)  # fmt: skip
INTEGERS = frozenset(
    {"trial", "block", "connections", "transactions", "statements", "dropped", "backlog", "errors", "reads",
     "writes", "other", "reconnects", "blocks"}
)  # fmt: skip
_COUNTS = ("reads", "writes", "other", "reconnects", "dropped")


def trial_rows(run: Run, measured: MeasuredFile) -> Iterator[Row]:
    """A row per planned trial."""
    for trial in measured.trials:
        figures = trial.figures
        yield {
            **_place_of(run, trial),
            "status": trial.status,
            "failure": trial.failure,
            "failed_by": None if trial.failed_by == "not-run" else trial.failed_by,
            "throughput": trial.value("throughput") if trial.is_result else None,
            **{name: figures.metric(name) if figures else None for name in _LATENCIES},
            **(figures.percentiles if figures else {}),
            "lower_bound_of": " ".join(figures.censored) if figures else None,
            "transactions": figures.events if figures else None,
            "statements": figures.statements if figures else None,
            "errors_per_1000": figures.errors_per_1000 if figures else None,
            "longest_gap_us": figures.longest_gap_us if figures else None,
            "dropped": figures.dropped if figures else None,
            "backlog": figures.backlog if figures else None,
            "start_s": trial.window.start_us / 1e6 if trial.window else None,
            "end_s": trial.window.end_us / 1e6 if trial.window else None,
        }


def interval_rows(run: Run) -> Iterator[Row]:
    """A row per interval or slice of every trial, from the engine's records. Raises StoreProblem."""
    for trial in run.trials():
        meta = trial.meta
        names = {"variant": meta["variant"], "workload": meta["workload"]}
        place = _place(trial.index, meta["block"], names) | _load(run, meta["at"])
        warmup_slices = (meta.get("slices") or {}).get("warmup", 0)
        for record in trial.records():
            if record["type"] == "interval":
                yield {**place, "phase": record["data"]["phase"], **_span(record["data"])}
            elif record["type"] == "slice":
                phase = "measure" if record["data"]["slice"] >= warmup_slices else "warmup"
                yield {**place, "phase": phase, **_span(record["data"])}


def _span(part: Interval | Slice) -> Row:
    start_s, end_s = part["start_us"] / 1e6, part["end_us"] / 1e6
    events = part["events"]
    known = merge([part["latency_us"]])
    low_us, high_us = part.get("latency_min_us"), part.get("latency_max_us")
    latencies: Row = dict.fromkeys((LATENCY_MEAN, *_PERCENTILES, "latency_max_us"))
    if events and low_us is not None and high_us is not None:
        latencies[LATENCY_MEAN] = part["latency_sum_us"] / events
        for name, percent in _PERCENTILES.items():
            value = percentile(known, percent, low_us, high_us)
            latencies[name] = value.value_us if value else None
        latencies["latency_max_us"] = high_us
    counts: Mapping[str, Any] = part
    return {
        "start_s": start_s,
        "end_s": end_s,
        "throughput": events / (end_s - start_s) if end_s > start_s else None,
        "transactions": events,
        "errors": sum(part["errors"].values()),
        **{name: counts[name] for name in _COUNTS},
        **latencies,
        "longest_gap_us": part["gaps"]["longest_us"] if "gaps" in part else None,
    }


def statement_rows(run: Run, measured: MeasuredFile) -> Iterator[Row]:
    """A row per kind of statement of every trial."""
    for trial in measured.trials:
        for name, figures in trial.statements.items():
            yield {
                **_place_of(run, trial),
                "statement": name,
                "per_transaction": figures.per_transaction,
                "latency_p50_us": figures.latency_p50_us,
                "latency_p95_us": figures.latency_p95_us,
                "latency_p99_us": figures.latency_p99_us,
            }


def comparison_rows(run: Run, verdict: VerdictFile) -> Iterator[Row]:
    """A row per comparison, metric and load, and one for all loads combined."""
    is_open = run.experiment().load.is_open
    for comparison in verdict.comparisons:
        names = {"variant": comparison.variant, "baseline": verdict.baseline, "workload": comparison.workload}
        for entry in (comparison, *(comparison.metrics or ())):
            for point in entry.points:
                yield {**names, **_load(run, point.at), **_effect(point), "sentence": None}
            nowhere: Row = {"connections": None, **({"rate": None} if is_open else {})}
            yield {**names, **nowhere, **_effect(entry.curve), "sentence": entry.curve.sentence}


def _effect(effect: Effect) -> Row:
    low, high = effect.interval_percent or (None, None)
    return {
        "metric": effect.metric,
        "effect_percent": effect.effect_percent,
        "interval_low_percent": low,
        "interval_high_percent": high,
        "confidence": effect.confidence,
        "blocks": effect.blocks,
        "verdict": effect.verdict,
    }


def _place_of(run: Run, trial: MeasuredTrial) -> Row:
    names = {"variant": trial.variant, "workload": trial.workload}
    return _place(trial.index, trial.block, names) | _load(run, trial.at)


def _place(index: int, block: int, names: Row) -> Row:
    """The place of a trial in the design, without its load."""
    return {"trial": index + 1, "block": block + 1, **names}


def _load(run: Run, at: PointDict) -> Row:
    """Connections, and in an open loop the rate."""
    load = run.experiment().load
    if "rate" in at:
        return {"connections": load.connections[0], "rate": at["rate"]}
    return {"connections": at["connections"]}
