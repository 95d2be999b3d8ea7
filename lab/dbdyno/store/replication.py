"""What `dbdyno diff` and `dbdyno replicate` say of two runs: whether the effects of the first are in the
second.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dbdyno.store.document import Document, DocumentPart, IntervalEnds, Metric, Optional, PointDict
from dbdyno.store.verdict import Change, Effect

Word = Literal["replicates", "does-not-replicate", "cannot-tell"]


class RepeatedEffect(DocumentPart):
    """One effect in two runs. `difference` is the change from the first effect to the second, as a ratio of
    the two ratios in percent.
    """

    word: Word
    """Whether the first effect is in the second run."""
    reason: str
    """Why, as a clause."""
    first: Effect
    """The effect in the first run."""
    second: Effect
    """The effect in the second run."""
    difference_percent: float | None
    """The difference; null if one of the effects is unknown or only a bound."""
    difference_interval_percent: IntervalEnds | None
    """Its interval; null as above, and if a run has no interval."""
    confidence: float
    """Confidence level of this interval."""
    half_percent: tuple[float, float] | None
    """The differences that are half of the first effect; null as above."""


class RepeatedPoint(RepeatedEffect):
    """One load."""

    at: PointDict
    """The load: {"connections": n} or {"rate": n}, transactions per second."""


class RepeatedSentence(RepeatedEffect):
    """An effect with a sentence."""

    sentence: str
    """Word, effects and difference as a sentence."""


class RepeatedComparison(DocumentPart):
    """One variant against the baseline on one workload, by one metric."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    metric: Metric
    """The metric."""
    points: list[RepeatedPoint]
    """The loads that both runs have."""
    curve: RepeatedSentence | None
    """All loads combined; null if the runs have different loads."""


class RepeatedFactor(RepeatedSentence):
    """A main effect of a factor's level, or the interaction of two factors, on one workload."""

    factors: list[str]
    """One name for a main effect, two for an interaction."""
    levels: list[str]
    """The compared levels, one per factor."""
    against: list[str]
    """The reference levels, one per factor."""
    workload: str
    """Title of the workload."""


class UnpairedEffect(Change):
    """One load, or all loads, of two runs of one variant each: the second run against the first."""

    at: Optional[PointDict] = None
    """The load; absent for all loads combined."""
    first: float | None
    """Median of the first run over the blocks; null for all loads combined, and if it is infinite."""
    second: float | None
    """The same of the second run."""
    confidence: float
    """Confidence level of the interval."""
    blocks: tuple[int, int]
    """Number of blocks of each run."""
    verdict: Literal["faster", "slower", "undecided", "too-few-blocks", "not-comparable"]
    """The second run against the first."""


class UnpairedComparison(DocumentPart):
    """One workload and metric of two runs of one variant each."""

    workload: str
    """Title of the workload."""
    metric: Metric
    """The metric."""
    points: list[UnpairedEffect]
    """The loads that both runs have."""
    curve: UnpairedEffect
    """All these loads combined."""
    sentence: str
    """The result as a sentence."""


class Replication(Document):
    """The answer of `dbdyno diff` and `dbdyno replicate`."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """Version of the format."""
    first: str
    """The first run, or the report that was replicated."""
    second: str
    """The second run."""
    baseline: str
    """Name of the baseline; of unpaired runs the variant of the first."""
    notes: list[str]
    """Differences between the runs that weaken the conclusion."""
    comparisons: list[RepeatedComparison] = Field(default_factory=list)
    """One per comparison and metric that both runs have."""
    factors: list[RepeatedFactor] = Field(default_factory=list)
    """The effects of factors that both runs have."""
    unpaired: list[UnpairedComparison] = Field(default_factory=list)
    """Two runs of one variant each: one per workload."""

    @property
    def has_word(self) -> bool:
        """Whether anything is said that may be wrong."""
        effects = [
            *self.factors,
            *(one.curve for one in self.comparisons if one.curve),
            *(point for one in self.comparisons for point in one.points),
        ]
        return any(one.word != "cannot-tell" for one in effects)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the answer, in the order of the experiment file."""
        curves = [one.curve for one in self.comparisons if one.curve]
        repeated: list[RepeatedSentence] = [*curves, *self.factors]
        return [*(one.sentence for one in repeated), *(one.sentence for one in self.unpaired)]
