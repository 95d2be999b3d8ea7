"""Percentiles of latencies that a run in progress has stored so far."""

from __future__ import annotations

from dbdyno.stats.histogram import merge, percentile
from dbdyno.store.live import Part


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
