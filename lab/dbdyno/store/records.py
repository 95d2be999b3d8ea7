"""The engine's records, as far as the lab reads them: lines, of which each is one record.

schema/events.schema.json defines them; a test compares these types with it. Times are microseconds since the
start of the run.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from dbdyno.store import files
from dbdyno.store.files import StoreProblem

# Maximum bytes of a record: an interval with a million distinct latencies has about 20 MB.
LINE_BYTES_MAX = 64 << 20


class Record(TypedDict):
    """One line of the engine."""

    type: str
    # As defined for this type.
    data: Any


def parse(line: bytes) -> Record:
    """The record in a line. Raises ValueError if it is none."""
    record = json.loads(line)
    if not isinstance(record, dict) or not isinstance(record.get("type"), str) or "data" not in record:
        raise ValueError("it is not a record")
    return {"type": record["type"], "data": record["data"]}


def read_lines(path: Path, *, keeps_damaged: bool = False) -> Iterator[bytes]:
    """The lines of a file of records, compressed or not; none if it does not exist.

    Raises StoreProblem if the compressed file is damaged; with `keeps_damaged` the lines before the damage
    are all.
    """
    compressed = path.with_name(f"{path.name}.gz")
    if compressed.exists():
        with files.open_regular(compressed) as file, gzip.open(file) as unpacked:
            try:
                while line := unpacked.readline(LINE_BYTES_MAX):
                    yield line
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                if not keeps_damaged:
                    raise StoreProblem(f"{compressed} is damaged: {error}", files.RESTORE) from error
    elif path.exists():
        with files.open_regular(path) as file:
            yield from file


# Pairs of a bucket's lower edge and the number of values in it.
Buckets = Sequence[Sequence[int]]


# Limits of the load generator (D01), `x-limit` in schema/events.schema.json: CPU time per wall time of a
# thread; delay of wake-ups; delay of reading replies, as a share of the median latency.
GENERATOR_CPU = 0.8
GENERATOR_LAG_US = 1000
CLIENT_DELAY = 0.1


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
