"""The engine's records, as far as the lab reads them.

schema/events.schema.json defines them; a test compares these types with it. Times are microseconds since the
start of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

# Pairs of a bucket's lower edge and the number of values in it.
Buckets = Sequence[Sequence[int]]


class Generator(TypedDict):
    """CPU use and delays of the load generator."""

    cpu: float
    lag_us_p99: int
    steal: float
    client_delay_us_p99: NotRequired[int | None]


class Gaps(TypedDict):
    """Times in which no transaction completed."""

    longest_us: int
    longest_start_us: int
    leading_us: int
    trailing_us: int


class Counts(TypedDict):
    """Counts of an interval or a phase. The counts of a phase are the sums over its intervals."""

    events: int
    reads: int
    writes: int
    other: int
    rows: int
    bytes: int
    retries: int
    reconnects: int
    late: int
    dropped: int
    row_count_mismatches: int


class Span(Counts):
    """The fields that intervals and phases have in common."""

    start_us: int
    end_us: int
    errors: Mapping[str, int]
    error_classes: NotRequired[Mapping[str, str]]
    rate_limit_wait_us: NotRequired[int]
    latency_us: Buckets
    latency_sum_us: float
    latency_min_us: NotRequired[float | None]
    latency_max_us: NotRequired[float | None]
    gaps: NotRequired[Gaps]


class Interval(Span):
    """One interval of a phase."""

    phase: str
    backlog: int
    generator: Generator


class Slice(Span):
    """One slice of a load that pauses and resumes on command, without its guard time."""

    slice: int
    resumed_us: int
    paused_us: int
    guard_events: int
    in_flight: int
    in_flight_latency_us: NotRequired[Buckets]
    generator: Generator


class StatementStats(TypedDict):
    """One kind of statement in a `Statements` record."""

    count: int
    rows: int
    rows_expected: int
    row_count_mismatches: int
    latency_us: Buckets


class Statements(TypedDict):
    """The kinds of statements over some seconds of a phase, by name."""

    phase: str
    start_us: int
    end_us: int
    kinds: Mapping[str, StatementStats]


class PhaseTotals(Span):
    """The totals of a phase."""

    accounting: Mapping[str, int]
    drained_us: Buckets
    censored_us: Buckets
    generator: NotRequired[Generator]
    percentiles_us: NotRequired[Mapping[str, Mapping[str, float]] | None]


class End(TypedDict):
    """The last record of a run."""

    reason: str
    failure: NotRequired[Mapping[str, object] | None]
    phases: Mapping[str, PhaseTotals]


class EngineWarning(TypedDict):
    """A problem that does not end the run."""

    code: str
    text: str
    hint: str
