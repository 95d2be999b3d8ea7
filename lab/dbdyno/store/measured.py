"""measured.json: figures of every trial, effects of every block; schema/measured.schema.json is generated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from dbdyno.store.document import Document, DocumentPart, PointDict

# "server": the failure is a result, with throughput 0. "harness": the trial is left out. "not-run".
FailedBy = Literal["server", "harness", "not-run"]

_DESCRIBED = ConfigDict(use_attribute_docstrings=True, populate_by_name=True, serialize_by_alias=True)


class Point(NamedTuple):
    """A load: a number of connections, or a rate in transactions per second."""

    unit: str
    value: float


@dataclass(frozen=True, config=_DESCRIBED)
class ScheduleEntry:
    """What schedule.json plans for one trial."""

    index: int
    """Index in schedule.json, from 0, and number of its folder."""
    block: int
    """Number of its block, from 0."""
    variant: str
    """Name of its variant."""
    workload: str
    """Title of its workload."""
    at: PointDict
    """Its load."""

    @property
    def point(self) -> Point:
        """The load as a key for sorting and grouping."""
        return Point(*next(iter(self.at.items())))


@dataclass(frozen=True, config=_DESCRIBED)
class Window:
    """The part of a trial that counts: a half-open interval in microseconds since the start of its run."""

    start_us: int
    """Its start."""
    end_us: int
    """Its end."""
    cut_us: int | None
    """End of the warm-up by MSER-5; null where it was declared, or the trial is too short for MSER-5."""

    @property
    def length_us(self) -> int:
        """Its length."""
        return self.end_us - self.start_us


class Drift(NamedTuple):
    """Log ratios of throughput between parts of a trial; null where a part has no transactions."""

    # Second half of the window over its first half.
    within: float | None
    # The window over the second half of the warm-up phase.
    late: float | None
    # The window over the first half of the warm-up phase.
    early: float | None = None


@dataclass(frozen=True, config=_DESCRIBED)
class Figures:
    """The figures of a window. Latencies are microseconds from the intended start to the end.

    In an open loop the percentiles are over all scheduled transactions, and those in `censored` are lower
    bounds.
    """

    events: int
    """Transactions that completed without error."""
    throughput: float
    """The same per second."""
    latency_mean_us: float
    """Mean."""
    latency_min_us: float
    """Minimum."""
    latency_p50_us: float
    """50th percentile."""
    latency_p90_us: float
    """90th percentile."""
    latency_p95_us: float
    """95th percentile."""
    latency_p99_us: float
    """99th percentile."""
    latency_p999_us: float
    """99.9th percentile."""
    latency_max_us: float
    """Maximum."""
    censored: tuple[str, ...]
    """Names of the latencies above that are only lower bounds."""
    errors: dict[str, int]
    """Number by server error number or SQLSTATE, retried ones included."""
    errors_per_1000: float
    """Errors per 1,000 transactions."""
    dropped: int
    """Scheduled transactions that were dropped."""
    backlog: int
    """Scheduled transactions that had not started at the end of the window."""
    error_classes: dict[str, str] = Field(default_factory=dict)
    """Error class of each code; empty in records of older engines."""
    row_count_mismatches: int = 0
    """Statements that returned or changed an unexpected number of rows."""
    statements: int = 0
    """Statements."""
    generator_cpu: float = 0.0
    """CPU time over wall time of each thread of the load generator."""
    generator_lag_us: float = 0.0
    """99th percentile of the load generator's delay in its worst interval."""
    generator_steal: float = 0.0
    """Share of CPU time that the hypervisor gave to other machines."""

    def metric(self, name: str) -> float:
        """The compared figure: "throughput" or "latency_p95_us"."""
        return float(getattr(self, name))

    def bounds(self, name: str) -> tuple[float, float]:
        """Lower and upper bound of a figure, equal unless it is censored."""
        value = self.metric(name)
        return value, math.inf if name in self.censored else value


@dataclass(frozen=True, config=_DESCRIBED)
class MeasuredTrial:
    """One planned trial: its figures, or the reason why it has none."""

    planned: Annotated[ScheduleEntry, Field(alias="place")]
    """What was planned: block, variant, workload and load."""
    failure: str | None
    """Why there are no figures; null if there are."""
    failed_by: FailedBy | None = None
    """server: the failure is a result, with throughput 0; harness: the trial is left out; or not-run."""
    figures: Figures | None = None
    """What was measured."""
    window: Window | None = None
    """The part that counts."""
    warmup_end_us: int = 0
    """End of the warm-up phase since the start of the run."""
    seconds: Sequence[tuple[int, int, int]] = ()
    """Start, end (microseconds since the start of the run) and transactions of every interval."""
    drift: Drift | None = None
    """How throughput changed from part to part of the trial: within, late, early."""
    foreign: float | None = None
    """Share of the CPUs of server and client that other processes used; null where it was not measured."""

    @property
    def index(self) -> int:
        """Index in schedule.json, from 0."""
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
        """The load, in the form of the files."""
        return self.planned.at

    @property
    def point(self) -> Point:
        """The load."""
        return self.planned.point

    @property
    def is_result(self) -> bool:
        """Whether the trial counts for its variant."""
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


class BlockEffects(DocumentPart):
    """The effect of every block, all loads combined."""

    p_value: float | None
    """Of "no difference"; null for an unfinished run."""
    percent: Mapping[str, float | None]
    """Block -> change in percent, or its finite bound; null without one."""


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
    """One per load, in the order of the file."""
    curve: BlockEffects
    """All loads combined."""


class MeasuredFile(Document):
    """The content of measured.json."""

    schema_version: Annotated[Literal[2], Field(alias="schema")] = 2
    """As in verdict.json."""
    trials: list[MeasuredTrial]
    """Every planned trial, in planned order."""
    comparisons: list[ComparisonBlockEffects]
    """In the order of verdict.json."""
