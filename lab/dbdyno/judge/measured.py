"""The figures of one trial: throughput, latency, errors, over its window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dbdyno.judge.recording import Recording
from dbdyno.judge.window import Window
from dbdyno.stats.histogram import merge, percentile

MICROSECONDS = 1_000_000.0


@dataclass(frozen=True)
class Place:
    """Where a trial stands in the experiment."""

    index: int
    block: int
    variant: str
    workload: str
    # {"connections": n} or {"rate": r}.
    at: Mapping[str, float]

    @property
    def level(self) -> tuple[str, float]:
        """`at` as a key."""
        return next(iter(self.at.items()))


@dataclass(frozen=True)
class Figures:
    """What was measured in the window. Latencies are microseconds from the due time to the end."""

    # Transactions that ended well, and per second.
    events: int
    throughput: float
    latency_mean_us: float
    latency_min_us: float
    latency_p50_us: float
    latency_p95_us: float
    latency_p99_us: float
    latency_max_us: float
    # By server error number, retried ones included.
    errors: dict[str, int]
    errors_per_1000: float
    dropped: int
    off_contract: int
    statements: int
    # CPU time of the generator's threads over wall time, each.
    generator_cpu: float

    def metric(self, name: str) -> float:
        """The figure a comparison is about: "throughput" or "latency_p95_us"."""
        return float(getattr(self, name))


@dataclass(frozen=True)
class Measured:
    """One planned trial: its figures, or the reason why it has none."""

    place: Place
    # None exactly where `figures` stand.
    failure: str | None
    figures: Figures | None = None
    window: Window | None = None
    # End of the engine's warm-up phase.
    warmup_end_us: int = 0
    # Start, end and transactions of every interval, warm-up included.
    seconds: Sequence[tuple[int, int, int]] = field(default_factory=tuple)

    def as_json(self) -> dict[str, Any]:
        """The trial as measured.json keeps it."""
        return asdict(self)


def figures(recording: Recording, window: Window) -> Figures:
    """Add up the window. Raises KeyError, TypeError or ValueError where the records lack something."""
    parts = _parts(recording, window)
    events = sum(int(part["events"]) for part in parts)
    errors: Counter[str] = Counter()
    for part in parts:
        errors.update(part["errors"])
    low_us = min(float(part["latency_min_us"]) for part in parts if part["latency_min_us"] is not None)
    high_us = max(float(part["latency_max_us"]) for part in parts if part["latency_max_us"] is not None)
    histogram = merge(part["latency_us"] for part in parts)
    p50, p95, p99 = (percentile(histogram, percent, low_us, high_us) for percent in (50, 95, 99))
    if p50 is None or p95 is None or p99 is None:
        raise ValueError("the latency histogram is empty")
    return Figures(
        events=events,
        throughput=events / (window.length_us / MICROSECONDS),
        latency_mean_us=sum(float(part["latency_sum_us"]) for part in parts) / events,
        latency_min_us=low_us,
        latency_p50_us=p50,
        latency_p95_us=p95,
        latency_p99_us=p99,
        latency_max_us=high_us,
        errors=dict(sorted(errors.items())),
        errors_per_1000=sum(errors.values()) / events * 1000.0,
        dropped=sum(int(part["dropped"]) for part in parts),
        off_contract=sum(int(part["off_contract"]) for part in parts),
        statements=sum(int(part[kind]) for part in parts for kind in ("reads", "writes", "other")),
        generator_cpu=_generator_cpu(recording, window),
    )


def _parts(recording: Recording, window: Window) -> list[Mapping[str, Any]]:
    """What adds up to the window: the phase's totals where it is the whole phase, else its intervals."""
    measure = recording.measure
    if (window.start_us, window.end_us) == (measure["start_us"], measure["end_us"]):
        return [measure]
    return _intervals(recording, window)


def _intervals(recording: Recording, window: Window) -> list[Mapping[str, Any]]:
    return [
        i for i in recording.intervals if i["start_us"] >= window.start_us and i["end_us"] <= window.end_us
    ]


def _generator_cpu(recording: Recording, window: Window) -> float:
    """Mean over the window's intervals, weighed by their length."""
    weighed = [
        (i["end_us"] - i["start_us"], float(i["generator"]["cpu"])) for i in _intervals(recording, window)
    ]
    length = sum(us for us, _ in weighed)
    return sum(us * cpu for us, cpu in weighed) / length if length else 0.0


def seconds(recording: Recording) -> tuple[tuple[int, int, int], ...]:
    """Start, end and transactions of every interval."""
    return tuple((int(i["start_us"]), int(i["end_us"]), int(i["events"])) for i in recording.intervals)
