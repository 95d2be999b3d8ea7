"""The figures of one trial: throughput, latency, errors, over its window."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dbdyno.judge.recording import Recording
from dbdyno.judge.window import Drift, Window
from dbdyno.stats.histogram import Percentile, merge, percentile

MICROSECONDS = 1_000_000.0
# The metrics that comparisons are about.
THROUGHPUT, LATENCY_P95 = "throughput", "latency_p95_us"
FailedBy = Literal["server", "harness", "not-run"]
PERCENTILES = {
    "latency_p50_us": 50.0,
    "latency_p90_us": 90.0,
    "latency_p95_us": 95.0,
    "latency_p99_us": 99.0,
    "latency_p999_us": 99.9,
}


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
    """What was measured in the window. Latencies are microseconds from the due time to the end.

    In an open loop the percentiles are over all transactions that were due, and those named in `censored` are
    lower bounds (`percentile` says when).
    """

    # Transactions that ended well, and per second.
    events: int
    throughput: float
    latency_mean_us: float
    latency_min_us: float
    latency_p50_us: float
    latency_p90_us: float
    latency_p95_us: float
    latency_p99_us: float
    latency_p999_us: float
    latency_max_us: float
    # Names of the figures above that are more than what stands there.
    censored: tuple[str, ...]
    # By server error number or SQLSTATE, retried ones included.
    errors: dict[str, int]
    # The class of each of these codes; empty in records of older engines.
    error_classes: dict[str, str]
    errors_per_1000: float
    dropped: int
    # Transactions due and not started at the end of the window.
    backlog: int
    row_count_mismatches: int
    statements: int
    # CPU time of the generator's threads over wall time, each.
    generator_cpu: float
    # 99th percentile of the generator's own lateness in its worst interval; share of CPU time stolen from it.
    generator_lag_us: float
    generator_steal: float

    def metric(self, name: str) -> float:
        """The figure a comparison is about: "throughput" or "latency_p95_us"."""
        return float(getattr(self, name))

    def bounds(self, name: str) -> tuple[float, float]:
        """What is certain of a figure: twice itself, or a lower bound and infinity where it is censored."""
        value = self.metric(name)
        return value, math.inf if name in self.censored else value


@dataclass(frozen=True)
class Measured:
    """One planned trial: its figures, or the reason why it has none."""

    place: Place
    # None exactly where there are `figures`.
    failure: str | None
    # "server": the failure is a result, with throughput 0. "harness": the trial is left out. "not-run".
    failed_by: FailedBy | None = None
    figures: Figures | None = None
    window: Window | None = None
    # End of the engine's warm-up phase.
    warmup_end_us: int = 0
    # Start, end and transactions of every interval, warm-up included.
    seconds: Sequence[tuple[int, int, int]] = field(default_factory=tuple)
    # How throughput changed from part to part of the trial.
    drift: Drift | None = None
    # Share of the CPUs of server and client that other processes used; None where nobody measured it.
    foreign: float | None = None

    @property
    def is_result(self) -> bool:
        """Whether the trial says something about its variant."""
        return self.figures is not None or self.failed_by == "server"

    def value(self, metric: str) -> float:
        """The metric; 0 transactions per second, or an infinite latency, where the server failed."""
        if self.figures is not None:
            return self.figures.metric(metric)
        return 0.0 if metric == "throughput" else math.inf

    def log_bounds(self, metric: str) -> tuple[float, float]:
        """Lower and upper bound of the metric's logarithm; infinite where the server failed."""
        if self.figures is not None:
            low, high = self.figures.bounds(metric)
            return math.log(low), math.log(high)
        failed = -math.inf if metric == "throughput" else math.inf
        return failed, failed

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
    latencies = _latencies(recording, parts, low_us, high_us)
    spans = _intervals(recording, window)
    return Figures(
        events=events,
        throughput=events / (window.length_us / MICROSECONDS),
        latency_mean_us=sum(float(part["latency_sum_us"]) for part in parts) / events,
        latency_min_us=low_us,
        **{name: found.value_us for name, found in latencies.items()},
        censored=tuple(name for name, found in latencies.items() if found.censored),
        errors=dict(sorted(errors.items())),
        error_classes=merge_classes(part.get("error_classes", {}) for part in parts),
        errors_per_1000=sum(errors.values()) / events * 1000.0,
        dropped=sum(int(part["dropped"]) for part in parts),
        backlog=int(spans[-1].get("backlog", 0)) if spans else 0,
        row_count_mismatches=sum(int(part["row_count_mismatches"]) for part in parts),
        statements=sum(int(part[kind]) for part in parts for kind in ("reads", "writes", "other")),
        generator_cpu=_generator_mean(spans, "cpu"),
        generator_lag_us=max((float(i["generator"].get("lag_us_p99", 0)) for i in spans), default=0.0),
        generator_steal=_generator_mean(spans, "steal"),
    )


def merge_classes(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The class of each error code. A code that ended a connection once is "lost", whatever else it did."""
    classes: dict[str, str] = {}
    for part in parts:
        for code, error_class in part.items():
            if classes.get(code) != "lost":
                classes[code] = error_class
    return dict(sorted(classes.items()))


def _latencies(
    recording: Recording, parts: Sequence[Mapping[str, Any]], low_us: float, high_us: float
) -> dict[str, Percentile]:
    """The percentiles and the maximum of what `parts` hold, by the names of the figures.

    In an open loop what the end of the measurement found under way or waiting counts too.
    """
    known = merge(part["latency_us"] for part in parts)
    if not known:
        raise ValueError("the latency histogram is empty")
    drained = merge([recording.measure.get("drained_us", ())])
    if drained:
        # Only their buckets are known.
        high_us = max(high_us, float(max(drained)))
    known = merge([list(known.items()), list(drained.items())])
    censored = _censored(recording, parts)
    found = {
        name: percentile(known, percent, low_us, high_us, censored) for name, percent in PERCENTILES.items()
    }
    latencies = {name: value for name, value in found.items() if value is not None}
    longest_us = max(censored, default=0)
    latencies["latency_max_us"] = Percentile(max(high_us, float(longest_us)), censored=bool(censored))
    return latencies


def _censored(recording: Recording, parts: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """The latencies that were cut off, as far as they bear on `parts`.

    The records hold them per phase. Where a part of it is looked at, those dropped before are too many: as
    many of the longest are left out, so that what stays is never more than what was.
    """
    censored = merge([recording.measure.get("censored_us", ())])
    surplus = int(recording.measure["dropped"]) - sum(int(part["dropped"]) for part in parts)
    for lower_us in sorted(censored, reverse=True):
        taken = min(surplus, censored[lower_us])
        censored[lower_us] -= taken
        surplus -= taken
    return {lower_us: count for lower_us, count in censored.items() if count}


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


def _generator_mean(spans: Sequence[Mapping[str, Any]], name: str) -> float:
    """Mean of one of the generator's shares over intervals, weighed by their length."""
    weighed = [(i["end_us"] - i["start_us"], float(i["generator"].get(name, 0.0))) for i in spans]
    length = sum(us for us, _ in weighed)
    return sum(us * share for us, share in weighed) / length if length else 0.0


def seconds(recording: Recording) -> tuple[tuple[int, int, int], ...]:
    """Start, end and transactions of every interval."""
    return tuple((int(i["start_us"]), int(i["end_us"]), int(i["events"])) for i in recording.intervals)
