"""measured.json: figures of each trial, effects of each block; schema/measured.schema.json is generated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from dbdyno.experiment.metrics import FEW_PERCENTILES, PERCENTILES
from dbdyno.store.document import Document, DocumentPart, NotEmpty, Optional, PointDict
from dbdyno.text import Composed

# "server": the failure counts as throughput 0. "harness": dbdyno failed, so the trial does not count.
# "not-run": the trial did not run.
FailedBy = Literal["server", "harness", "not-run"]

# A server kept up with a rate if no more transactions are queued at the end than this share of those that
# ended (R07).
BACKLOG_SHARE = 0.01

_DESCRIBED = ConfigDict(use_attribute_docstrings=True, populate_by_name=True, serialize_by_alias=True)

# The percentiles of every trial that tables and files for other programs have.
SHOWN_PERCENTILES = {**FEW_PERCENTILES, "latency_p999_us": PERCENTILES["latency_p999_us"]}
# The percentiles of `MeasuredTrial.distribution_us`.
DISTRIBUTION_PERCENTS = (
    1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999,
)  # fmt: skip


class Point(NamedTuple):
    """A load: a number of connections, or a rate in transactions per second."""

    unit: str
    value: float

    @classmethod
    def of(cls, at: PointDict) -> Point:
        """The load that files store as {"connections": n} or {"rate": r}."""
        return cls(*next(iter(at.items())))

    @property
    def label(self) -> str:
        """The load in labels and names of other programs: connections=16."""
        return f"{self.unit}={self.value:g}"


@dataclass(frozen=True, config=_DESCRIBED)
class ScheduleEntry:
    """A planned trial, from schedule.json."""

    index: int
    """Position in schedule.json, from 0; also the number of the trial's folder."""
    block: int
    """Number of the block, from 0."""
    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    at: PointDict
    """The point: the number of connections, or the rate in transactions per second."""

    @property
    def point(self) -> Point:
        """The same as a tuple, to sort and group by."""
        return Point.of(self.at)


@dataclass(frozen=True, config=_DESCRIBED)
class Window:
    """The part of a trial whose transactions count. Times are microseconds since the start of the run."""

    start_us: int
    """Start of the window, included."""
    end_us: int
    """End of the window, excluded."""
    cut_us: int | None
    """End of the warm-up as MSER-5 determined it; null if the experiment sets the warm-up, or if the trial is
    too short for MSER-5."""
    counted_us: Optional[int] = None
    """Duration of the slices that count; only in trials in slices."""

    @property
    def length_us(self) -> int:
        """Duration that counts, in microseconds."""
        return self.end_us - self.start_us if self.counted_us is None else self.counted_us


class Drift(NamedTuple):
    """Logarithms of throughput ratios between parts of a trial; null if a part has no transactions."""

    # Second half of the window / first half of the window.
    within: float | None
    # The window / second half of the warm-up phase.
    late: float | None
    # The window / first half of the warm-up phase.
    early: float | None = None


@dataclass(frozen=True, config=_DESCRIBED)
class Figures:
    """Throughput, latencies and errors in a window. Latencies are in microseconds, from the intended start.

    In an open loop the percentiles are over all scheduled transactions, and those in `censored` are lower
    bounds.
    """

    events: int
    """Transactions that completed without error."""
    throughput: float
    """Transactions per second."""
    latency_mean_us: float
    """Mean latency."""
    latency_min_us: float
    """Minimum latency."""
    latency_p50_us: float
    """50th percentile of latency, the median."""
    latency_p90_us: float
    """90th percentile of latency."""
    latency_p95_us: float
    """95th percentile of latency."""
    latency_p99_us: float
    """99th percentile of latency."""
    latency_p999_us: float
    """99.9th percentile of latency."""
    latency_max_us: float
    """Maximum latency."""
    censored: tuple[str, ...]
    """Keys of the latencies that are only lower bounds."""
    errors: dict[str, int]
    """Number of errors by MySQL error number or SQLSTATE, including retried ones."""
    errors_per_1000: float
    """Errors per 1,000 transactions."""
    dropped: int
    """Scheduled transactions that were dropped."""
    backlog: int
    """Scheduled transactions that had not started at the end of the window."""
    percentiles: NotEmpty[dict[str, float]] = Field(default_factory=dict)
    """Percentiles of latency that design.metrics names and that are not among those above."""
    at_most: NotEmpty[dict[str, float]] = Field(default_factory=dict)
    """Upper bounds of percentiles in `censored`, where more transactions are beyond them than are unknown."""
    cpu_us_per_transaction: Optional[float] = None
    """CPU time of the server's processes per transaction; absent if it was not read."""
    error_classes: dict[str, str] = Field(default_factory=dict)
    """Class of each error code, such as "deadlock"; empty in records of older engines."""
    row_count_mismatches: int = 0
    """Statements that returned or changed an unexpected number of rows."""
    rate_limit_wait: NotEmpty[float] = 0.0
    """Share of the connections' time in which they waited because of load.max_rate."""
    statements: int = 0
    """Number of statements executed."""
    longest_gap_us: Optional[int] = None
    """Longest time in which no transaction completed, on any connection; 0 if it is shorter than 1 ms. In
    slices the longest within a slice. Absent in records of older engines."""
    longest_gap_start_us: Optional[int] = None
    """When the longest gap began; absent if it is shorter than 1 ms."""
    generator_cpu: float = 0.0
    """CPU time of the load generator over wall-clock time, per thread: 1 is one busy CPU per thread."""
    generator_lag_us: float = 0.0
    """99th percentile of the load generator's delay in the worst interval, in microseconds."""
    generator_delay_us: NotEmpty[float] = 0.0
    """99th percentile of the time between the arrival of a reply and its reading, in microseconds."""
    generator_steal: float = 0.0
    """Share of CPU time that the hypervisor gave to other machines."""

    def metric(self, name: str) -> float:
        """The figure with this name, such as "throughput" or "latency_p95_us"; NaN if it is unknown."""
        figure = self.percentiles[name] if name in self.percentiles else getattr(self, name, None)
        return math.nan if figure is None else float(figure)

    def bounds(self, name: str) -> tuple[float, float]:
        """Lower and upper bound of a figure, which are equal if it is known."""
        value = self.metric(name)
        return value, self.at_most.get(name, math.inf) if name in self.censored else value

    @property
    def keeps_up(self) -> bool:
        """Whether the server kept up with an open loop: nearly all scheduled transactions started."""
        return not self.dropped and self.backlog <= BACKLOG_SHARE * self.events


@dataclass(frozen=True, config=_DESCRIBED)
class BackgroundFigures:
    """A background load within the window of its trial; it is no part of the trial's own figures."""

    rate: float | None
    """Demanded transactions per second; null in a closed loop."""
    connections: int
    """Number of connections; with a rate the maximum of busy connections."""
    counted_us: int
    """Duration that counts: the load's intervals within the window of the trial."""
    throughput: float
    """Transactions per second."""
    figures: Figures | None
    """All figures, of which `throughput` is one; null if no transaction ended."""


@dataclass(frozen=True, config=_DESCRIBED)
class StatementFigures:
    """One kind of statement of a trial. Latencies are from sending it to the end of its result."""

    per_transaction: float
    """Statements of this kind for each transaction."""
    latency_p50_us: float
    """50th percentile of latency, the median."""
    latency_p95_us: float
    """95th percentile of latency."""
    latency_p99_us: float
    """99th percentile of latency."""


@dataclass(frozen=True, config=_DESCRIBED)
class Ticks:
    """Transactions in short spans of equal length, at most 300, which show stalls."""

    start_us: int
    """Begin of the first span, which is that of the window, in microseconds since the start of the run."""
    width_us: int
    """Length of each span: 100 ms, or a multiple in a long trial."""
    events: tuple[int, ...]
    """Transactions that ended in each span."""


@dataclass(frozen=True, config=_DESCRIBED)
class MeasuredTrial:
    """One planned trial: its figures, or the reason why it has none."""

    planned: Annotated[ScheduleEntry, Field(alias="place")]
    """The trial as planned: block, variant, workload and load."""
    failure: Composed | None
    """Why there are no figures; null if there are figures."""
    failed_by: FailedBy | None = None
    """server: the failure counts as throughput 0; harness: dbdyno failed, so the trial does not count;
    not-run: the trial did not run."""
    figures: Figures | None = None
    """The measured figures; null if there are none."""
    window: Window | None = None
    """The part of the trial whose transactions count."""
    warmup_end_us: int = 0
    """End of the warm-up phase since the start of the run."""
    seconds: Sequence[tuple[int, int, int]] = ()
    """Start, end (microseconds since the start of the run) and transactions of every interval."""
    drift: Drift | None = None
    """Logarithms of three throughput ratios: second half of the window / first half; window / second half of
    the warm-up; window / first half of the warm-up."""
    foreign: float | None = None
    """Share of the CPUs of server and client that other processes used; null if it was not measured."""
    foreign_stays: NotEmpty[bool] = False
    """Whether an override of D06 leaves what that cost in the effects."""
    slices: Optional[Mapping[int, float]] = None
    """Number of each slice that counts -> transactions per second; only in trials in slices."""
    distribution_us: NotEmpty[tuple[float, ...]] = ()
    """Latency at 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.995 and 99.999 % of the
    transactions; without those beyond which fewer than 10 transactions are."""
    statements: NotEmpty[dict[str, StatementFigures]] = Field(default_factory=dict)
    """The kinds of statements by name; empty in slices."""
    background: NotEmpty[dict[str, BackgroundFigures]] = Field(default_factory=dict)
    """The background loads by name."""
    ticks: Optional[Ticks] = None
    """Transactions in spans of 100 ms or a multiple of it; absent in slices."""

    @property
    def foreign_to_remove(self) -> float | None:
        """The share whose cost is taken out of the effects, if it was measured."""
        return None if self.foreign_stays else self.foreign

    @property
    def index(self) -> int:
        """Position in schedule.json, from 0."""
        return self.planned.index

    @property
    def block(self) -> int:
        """Number of the block, from 0."""
        return self.planned.block

    @property
    def variant(self) -> str:
        """Name of the variant."""
        return self.planned.variant

    @property
    def workload(self) -> str:
        """Title of the workload."""
        return self.planned.workload

    @property
    def at(self) -> PointDict:
        """The point as files store it."""
        return self.planned.at

    @property
    def point(self) -> Point:
        """The point as a tuple, to sort and group by."""
        return self.planned.point

    @property
    def status(self) -> str:
        """done, failed or not-run."""
        if self.failure is None:
            return "done"
        return "not-run" if self.failed_by == "not-run" else "failed"

    @property
    def is_result(self) -> bool:
        """Whether the trial counts: it has figures, or its server failed."""
        return self.figures is not None or self.failed_by == "server"

    def has(self, metric: str) -> bool:
        """Whether the trial counts and the metric is known."""
        return self.is_result and not math.isnan(self.value(metric))

    def value(self, metric: str) -> float:
        """The metric; if the server failed, 0 transactions per second or an infinite latency."""
        if self.figures is not None:
            return self.figures.metric(metric)
        return 0.0 if metric == "throughput" else math.inf

    def log_bounds(self, metric: str) -> tuple[float, float]:
        """Lower and upper bound of the metric's logarithm; infinite if the server failed."""
        if self.figures is not None:
            low, high = self.figures.bounds(metric)
            return math.log(low), math.log(high)
        failed = -math.inf if metric == "throughput" else math.inf
        return failed, failed


class BlockEffects(DocumentPart):
    """The effect of every block, all loads combined."""

    p_value: float | None
    """p-value of the hypothesis "no difference"; null if the run is unfinished."""
    percent: Mapping[str, float | None]
    """Block -> change in percent, or its finite bound; null if it has neither."""


class PointBlockEffects(BlockEffects):
    """The effect of every block at one load."""

    at: PointDict
    """The load."""


class ComparisonBlockEffects(DocumentPart):
    """The blocks of one variant against the baseline on one workload."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    points: list[PointBlockEffects]
    """One per load, in the order of the experiment file."""
    curve: BlockEffects
    """All loads combined."""


class MeasuredFile(Document):
    """The content of measured.json."""

    schema_version: Annotated[Literal[2], Field(alias="schema")] = 2
    """Version of the format, raised together with that of verdict.json."""
    trials: list[MeasuredTrial]
    """All planned trials, in planned order."""
    comparisons: list[ComparisonBlockEffects]
    """One per comparison, in the order of verdict.json."""
