"""The figures of a trial that runs or has just ended, for display. The judge computes the result from all
trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.experiment.metrics import LATENCY_MEAN, PERCENTILES, percentile_of
from dbdyno.measure.figures import MICROSECONDS, figures
from dbdyno.measure.recording import Recording, failure, read
from dbdyno.measure.window import windows
from dbdyno.stats.histogram import merge, percentile
from dbdyno.store import StoredTrial
from dbdyno.store.live import Part
from dbdyno.store.measured import Figures
from dbdyno.store.records import Span


@dataclass(frozen=True)
class Preview:
    """The figures of one trial over its whole measurement, without the warm-up cut that its block may get."""

    figures: Figures
    # The metric in every interval or slice of the measurement, in order.
    series: tuple[float, ...]


def preview(trial: StoredTrial, metric: str) -> Preview | None:
    """The figures of a trial, and the throughput or the latency `metric` over its time; None if it failed.

    Raises StoreProblem if the stored records cannot be read.
    """
    recording = read(trial.records(), trial.meta.get("slices"))
    if failure(trial, recording) is not None:
        return None
    percent = percentile_of(metric)
    further = {metric: percent} if percent is not None and metric not in PERCENTILES else None
    try:
        window = windows([recording], automatic=False)[0]
        return Preview(figures(recording, window, further), _series(recording, metric))
    except (KeyError, TypeError, ValueError, IndexError):
        # Incomplete records, which check R04 reports.
        return None


def _series(recording: Recording, metric: str) -> tuple[float, ...]:
    parts: Sequence[Span] = recording.counted or [
        one for one in recording.intervals if one["phase"] == "measure"
    ]
    return tuple(_value(part, metric) for part in parts)


def _value(part: Span, metric: str) -> float:
    """The metric of one interval; 0 for the latency of an interval in which no transaction ended."""
    if not part["events"]:
        return 0.0
    percent = percentile_of(metric)
    if percent is not None:
        low_us, high_us = part["latency_min_us"] or 0.0, part["latency_max_us"] or 0.0
        value = percentile(merge([part["latency_us"]]), percent, low_us, high_us)
        return value.value_us if value else 0.0
    if metric == LATENCY_MEAN:
        return part["latency_sum_us"] / part["events"]
    return part["events"] / ((part["end_us"] - part["start_us"]) / MICROSECONDS)


def live_percentile_us(part: Part, percent: float) -> float | None:
    """A percentile of a part's latencies in microseconds; None without transactions.

    The engine's own figure if the trial has ended; else that of the transactions that have ended, exact to
    half a bucket (0.05 %).
    """
    if (known := part.percentiles_us.get(f"p{percent:g}")) is not None:
        return known
    latencies = merge([part.latency_us])
    if not latencies:
        return None
    result = percentile(latencies, percent, float(min(latencies)), float("inf"))
    return None if result is None else result.value_us
