"""The metrics that verdicts compare: their names in `design.metrics`, in stored files and in sentences."""

from __future__ import annotations

import re
from typing import Final

from dbdyno.text import compose

THROUGHPUT: Final = "throughput"
# The highest rate at which a variant meets the latency objective of the experiment; never in
# `design.metrics`.
CAPACITY: Final = "capacity"
LATENCY_MEAN: Final = "latency_mean_us"
LATENCY_P95: Final = "latency_p95_us"
CPU: Final = "cpu_us_per_transaction"
# The percentiles of latency of every trial, and those of single statements, intervals and background loads.
PERCENTILES: Final = {
    "latency_p50_us": 50.0,
    "latency_p90_us": 90.0,
    LATENCY_P95: 95.0,
    "latency_p99_us": 99.0,
    "latency_p999_us": 99.9,
}
FEW_PERCENTILES: Final = {key: PERCENTILES[key] for key in ("latency_p50_us", LATENCY_P95, "latency_p99_us")}
# The metrics of which more is better.
HIGHER_IS_BETTER = frozenset({THROUGHPUT, CAPACITY})
# By how much other processes change the logarithm of a metric at most, per share of the CPU time. Half of the
# CPUs of a busy server cost it half of its throughput, which is 1.4 per share; latencies grow faster, because
# transactions queue. The limits are about twice that.
HARM_MAX_THROUGHPUT, HARM_MAX_CPU, HARM_MAX_LATENCY = -3.0, 3.0, 15.0
# Name in the file -> key in stored files, of every metric that is not a percentile.
_KEYS = {THROUGHPUT: THROUGHPUT, "mean": LATENCY_MEAN, "cpu_per_transaction": CPU}
_TEXTS = {
    THROUGHPUT: compose("throughput"),
    CAPACITY: compose("capacity"),
    LATENCY_MEAN: compose("mean latency"),
    CPU: compose("CPU time per transaction"),
}
# p10 to p99.999. Two digits before the point, so that the point can be left out of the key.
_PERCENTILE = r"p\d\d(?:\.\d{0,2}[1-9])?"
NAME_PATTERN = rf"^(?:{'|'.join(_KEYS)}|{_PERCENTILE.replace('p', 'p(?!0)', 1)})$"
KEY_PATTERN = rf"^(?:{'|'.join(_TEXTS)}|latency_p[1-9]\d{{1,4}}_us)$"
_PERCENTILE_KEY = re.compile(r"latency_p(\d\d)(\d*)_us")


def metric_name(name: str) -> str:
    """The name, if it is that of a metric. Raises ValueError."""
    if re.match(NAME_PATTERN, name) is None:
        raise ValueError(
            f"there is no metric {name!r}: write {', '.join(_KEYS)}, or a percentile such as p99 or p99.9"
        )
    return name


def metric_key(name: str) -> str:
    """The key in stored files: latency_p999_us for p99.9."""
    return _KEYS.get(name) or f"latency_{name.replace('.', '')}_us"


def percentile_of(key: str) -> float | None:
    """The percentage of a percentile's key; None for other metrics."""
    match = _PERCENTILE_KEY.fullmatch(key)
    return float(f"{match[1]}.{match[2] or 0}") if match else None


def is_latency(key: str) -> bool:
    """Whether the metric is a latency."""
    return key == LATENCY_MEAN or percentile_of(key) is not None


def harm_max(key: str) -> float:
    """By how much other processes change the logarithm of a metric at most, per share of the CPU time."""
    if key in HIGHER_IS_BETTER:
        return HARM_MAX_THROUGHPUT
    return HARM_MAX_CPU if key == CPU else HARM_MAX_LATENCY


def change_of_loss(metric: str, loss_percent: float) -> float:
    """A loss as a change of the metric: less throughput, or more latency or CPU time."""
    return -loss_percent if metric in HIGHER_IS_BETTER else loss_percent


def metric_text(key: str) -> str:
    """The metric in a sentence: p99.9 latency."""
    percent = percentile_of(key)
    return _TEXTS[key] if percent is None else compose("p{percent:g} latency", percent=percent)
