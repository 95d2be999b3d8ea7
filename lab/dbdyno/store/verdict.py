"""verdict.json: the sentences of a run and their numbers; schema/verdict.schema.json is generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.finding import Finding
from dbdyno.store.document import Document, DocumentPart, IntervalEnds, Metric, Optional, PointDict

VerdictCode = Literal[
    "not-comparable", "unfinished", "too-few-blocks", "mixed", "equivalent", "faster", "slower", "undecided"
]  # fmt: skip


class Family(DocumentPart):
    """The sentences that share the family-wise error rate."""

    sentences: int
    """How many sentences."""
    alpha: float
    """The family-wise error rate: the chance that any of them is false."""
    text: str
    """The same as a sentence for readers."""


class Change(DocumentPart):
    """A change of the variant against the baseline, in percent of the baseline."""

    effect_percent: float | None
    """The estimate; null where it is unknown or infinite."""
    interval_percent: IntervalEnds | None
    """Both ends, null for an open one; null where the blocks are too few or the run is unfinished."""
    bound: Optional[Literal["at-least", "at-most"]] = None
    """Absent where the estimate is exact."""


class Effect(Change):
    """A change with a verdict."""

    metric: Metric
    """Throughput, or the p95 latency where the load is a rate."""
    confidence: float
    """Of the interval; 1 - confidence is its share of the family-wise error rate."""
    blocks: int
    """Blocks with a result of both variants."""
    verdict: VerdictCode | None
    """null where a factor's entry has the verdict."""


class JudgedEffect(Effect):
    """An effect with the limits on which its verdict depends."""

    noise_floor_percent: float | None
    """The largest difference between identical variants; null without such variants."""
    delta_percent: float | None
    """The declared zone of equivalence; null without one."""


class TrialIndices(DocumentPart):
    """Indices of the trials behind a point."""

    baseline: list[int]
    """Of the baseline."""
    variant: list[int]
    """Of the variant."""


class CensoredMedians(DocumentPart):
    """Which of the two medians of a point are lower bounds."""

    baseline: bool
    """The baseline's."""
    variant: bool
    """The variant's."""


class Point(JudgedEffect):
    """One load of a comparison. The intervals of all loads are simultaneous."""

    at: PointDict
    """The load."""
    baseline: float | None
    """Median of the metric over the blocks; null where most trials failed by their server."""
    variant: float | None
    """The same of the variant."""
    trials: TrialIndices
    """The trials that were compared."""
    censored: Optional[CensoredMedians] = None
    """Present where one of the medians is only a lower bound."""


class CombinedEffect(JudgedEffect):
    """All loads of a comparison combined: the mean of the log ratios of a block."""

    p_value: float | None
    """Of "no difference", by the signed rank test; null for an unfinished run."""
    sentence: str
    """The verdict as a sentence, with its caveats."""


class OrderEffect(DocumentPart):
    """What running later in a block does to the metric, and the effect without it, in percent."""

    effect_percent: float
    """Change of the variant that ran later against the one that ran earlier."""
    interval_percent: tuple[float, float]
    """Its 95 % interval."""
    blocks: tuple[int, int]
    """Blocks in which the baseline ran first, and in which the variant did."""
    crossover_percent: float
    """The variant's effect without the order effect."""
    crossover_interval_percent: tuple[float, float]
    """Its 95 % interval."""

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the order effect excludes zero."""
        return not self.interval_percent[0] <= 0.0 <= self.interval_percent[1]


class Comparison(DocumentPart):
    """One variant against the baseline on one workload."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    identical: Optional[Literal[True]] = None
    """Present where the two variants differ in nothing but their names."""
    points: list[Point]
    """One per load, in the order of the file."""
    curve: CombinedEffect
    """All loads combined."""
    order: Optional[OrderEffect] = None
    """The order effect; absent where it cannot be estimated."""


class FactorEffect(Effect):
    """A main effect of a factor's level, or the interaction of two factors, on one workload."""

    factors: list[str]
    """One name for a main effect, two for an interaction."""
    levels: list[str]
    """The levels, one per factor."""
    against: list[str]
    """The levels that they are compared with."""
    workload: str
    """Title of the workload."""
    p_value: float | None
    """Of "no effect"; null for an unfinished run."""
    sentence: str
    """The verdict as a sentence, with its caveats."""


class HighestMedian(DocumentPart):
    """The load with the highest median throughput."""

    connections: float
    """Connections."""
    throughput: float
    """Transactions per second."""


class Scaling(DocumentPart):
    """How one variant scales with connections on one workload."""

    workload: str
    """Title of the workload."""
    variant: str
    """Name of the variant."""
    levels: tuple[float, float]
    """Minimum and maximum number of connections measured."""
    highest: HighestMedian
    """The highest median."""
    blocks: int
    """Blocks with results."""
    model: Literal["usl"] | None = None
    """The universal scalability law, where it fits the medians."""
    rate: Annotated[float | None, Field(alias="lambda")] = None
    """Throughput of one connection according to the law."""
    sigma: float | None = None
    """Contention."""
    kappa: float | None = None
    """Coherency."""
    fit_error_percent: float | None = None
    """The largest relative residual of the law; null where the server failed in a trial."""
    plateau: tuple[float, float] | None = None
    """Minimum and maximum connections whose throughput may be within 2 % of the highest median."""
    knee: Literal["below", "inside", "above"] | None = None
    """Whether the law's maximum is below, inside or above the measured loads."""
    knee_connections: float | None = None
    """The knee, where it is inside."""
    knee_interval: IntervalEnds | None = None
    """Its 95 % interval; null for an end outside the measured loads."""
    knee_throughput: float | None = None
    """Throughput there, at most the highest median."""
    curve: Sequence[tuple[float, float]] = ()
    """Connections and throughput along the law, to draw it."""


class VerdictFile(Document):
    """The content of verdict.json."""

    schema_version: Annotated[Literal[2], Field(alias="schema")] = 2
    """2 since `mixed`, `unfinished` and `too-few-blocks` exist."""
    experiment: str
    """Name of the experiment."""
    baseline: str
    """Name of the first variant."""
    order_seed: int | None
    """Seed of the order of the trials; null in runs of versions without balanced orders."""
    family: Family
    """The family-wise error rate, and how many sentences share it."""
    comparisons: list[Comparison]
    """Every variant but the first against the first, on each workload."""
    scaling: Optional[list[Scaling]] = None
    """Present for closed loops with at least four loads."""
    factors: Optional[list[FactorEffect]] = None
    """Present for factorial experiments: main effects, then interactions."""
    checks: list[Finding]
    """All findings: first those of the run, then those of the judge."""

    @property
    def sentences(self) -> Sequence[tuple[CombinedEffect | FactorEffect, Comparison | FactorEffect]]:
        """Every entry with a sentence, and the entry that names its variants. In a factorial run the factors
        have the verdicts.
        """
        comparisons = [(one.curve, one) for one in self.comparisons if one.curve.verdict or not self.factors]
        return [*comparisons, *((row, row) for row in self.factors or ())]
