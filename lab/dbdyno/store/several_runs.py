"""What commands say of several stored runs: `dbdyno history` of those of one experiment, `dbdyno diff` and
`dbdyno replicate` of two (whether the effects of the first are in the second), and `dbdyno bisect`.

A bisection is stored as `bisect-<UTC time>.json` in the folder of its runs. It is written before and after
each step, so that an interrupted bisection can be continued.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.store import files
from dbdyno.store.document import Document, DocumentPart, IntervalEnds, Metric, Optional, PointDict
from dbdyno.store.verdict import Change, Effect
from dbdyno.text import Composed

ChangeState = Literal["candidate", "confirmed", "not-confirmed"]
Word = Literal["replicates", "does-not-replicate", "cannot-tell"]
Over = Literal["variants", "versions", "commits"]


class ExcludedRun(DocumentPart):
    """A run that has no value in at least one series."""

    run: int
    """Its number."""
    reason: Composed
    """Why it has none: it has no result there, or cannot be compared with the newest run that has one."""


class HistoryPoint(Change):
    """The variant against the baseline in one run, over all loads."""

    run: int
    """Number of the run."""
    path: str
    """Its folder."""
    began: str
    """When it began, in ISO 8601 and UTC; empty if that is unknown."""
    server: str
    """Product and version of the variant's server; empty if they are unknown."""


class Confirmation(Change):
    """A comparison of the variant as it was in two runs, in several runs of its own; the change is from the
    earlier to the later one. Its interval contains the differences between these runs.
    """

    run: int
    """Number of the last run that compares them."""
    runs: list[int]
    """Numbers of all of them."""
    path: str
    """Folder of the last one."""
    before: int
    """Number of the earlier run, whose server is the baseline."""
    after: int
    """Number of the later run."""
    confidence: float
    """Confidence level of the interval; a change is confirmed if it excludes zero."""


class HistoryChange(DocumentPart):
    """A change of the level of a series."""

    before: int
    """Number of the last run before the change."""
    after: int
    """Number of the first run after it."""
    last_before: int
    """Number of the last run that is before the change wherever in this range it is."""
    first_after: int
    """Number of the first run that is after it in any case."""
    change_percent: float
    """Difference of the levels after and before, as a ratio."""
    interval_percent: tuple[float, float]
    """Its 95 % interval, for a place that is known."""
    state: ChangeState
    """candidate: a confirmation is missing; confirmed and not-confirmed: the answer of the last one."""
    is_alert: bool
    """Whether the change is confirmed, and no run has begun since it was."""
    confirmation: Confirmation | None
    """The last comparison of two runs on either side; null without one."""
    confirming_runs: list[int]
    """Runs of a comparison of these two runs that needs more runs."""
    also: list[Composed]
    """Circumstances other than the variant's server that differ between the two runs that are or would be
    compared."""
    sentence: Composed
    """The change as a sentence."""


class HistorySeries(DocumentPart):
    """One variant on one workload."""

    variant: str
    """Name of the variant."""
    workload: str
    """Title of the workload."""
    metric: Metric
    """The metric."""
    points: list[HistoryPoint]
    """One per run that has a value, the oldest first."""
    changes: list[HistoryChange]
    """The changes of the level, the oldest first."""


class History(Document):
    """The answer of `dbdyno history`."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """Version of the format."""
    experiment: str
    """Name of the experiment."""
    baseline: str
    """Name of the baseline, the pinned reference version."""
    reference: str
    """Product and version of its server; empty if they are unknown."""
    excluded: list[ExcludedRun]
    """Runs that have no value in at least one series."""
    series: list[HistorySeries]
    """One per variant and workload."""

    @property
    def is_alert(self) -> bool:
        """Whether any change is an alert."""
        return any(change.is_alert for entry in self.series for change in entry.changes)


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


class IndependentEffect(Change):
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


class IndependentComparison(DocumentPart):
    """One workload and metric of two runs of one variant each."""

    workload: str
    """Title of the workload."""
    metric: Metric
    """The metric."""
    points: list[IndependentEffect]
    """The loads that both runs have."""
    curve: IndependentEffect
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
    """Name of the baseline; of independent runs the variant of the first."""
    notes: list[str]
    """Differences between the runs that weaken the conclusion."""
    comparisons: list[RepeatedComparison] = Field(default_factory=list)
    """One per comparison and metric that both runs have."""
    factors: list[RepeatedFactor] = Field(default_factory=list)
    """The effects of factors that both runs have."""
    independent: list[IndependentComparison] = Field(default_factory=list)
    """Two runs of one variant each: one per workload."""

    @property
    def has_word(self) -> bool:
        """Whether a sentence claims anything that may be wrong."""
        effects = [
            *self.factors,
            *(comparison.curve for comparison in self.comparisons if comparison.curve),
            *(point for comparison in self.comparisons for point in comparison.points),
        ]
        return any(effect.word != "cannot-tell" for effect in effects)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the answer, in the order of the experiment file."""
        curves = [comparison.curve for comparison in self.comparisons if comparison.curve]
        repeated: list[RepeatedSentence] = [*curves, *self.factors]
        return [*(entry.sentence for entry in repeated), *(entry.sentence for entry in self.independent)]


class PairEffect(DocumentPart):
    """The effect of one version against another one over all loads."""

    version: str
    """The version."""
    against: str
    """The version that it is compared with."""
    effect_percent: float | None
    """The estimated change in percent; null if it is infinite."""
    interval_percent: IntervalEnds | None
    """Its confidence interval, which allows for a look after every block; null with too few blocks."""
    confidence: float
    """Confidence level of the interval."""
    p_value: float
    """The smallest significance level at which the looks exclude zero; 1 if there is none."""
    blocks: int
    """Number of blocks in which both versions have a result."""


class StepRecord(DocumentPart):
    """One step."""

    good: str
    """The last version that was known as good when the step began."""
    candidate: str | None
    """The version in question; null in the first step, which asks whether good and bad differ."""
    bad: str
    """The first version that was known as bad."""
    run: str | None
    """The folder of the step's run; null if there is none."""
    outcome: Literal["like-good", "like-bad", "between", "cannot-tell", "skipped"] | None
    """What the candidate is like; null while the step runs. In the first step like-bad: they differ."""
    blocks: int = 0
    """Number of finished blocks."""
    effects: list[PairEffect] = Field(default_factory=list)
    """The candidate against both ends; in the first step bad against good."""
    reason: Optional[str] = None
    """Why the step could not tell, or why the candidate was skipped; absent if blocks were too few."""


class BisectionRecord(Document):
    """A bisection."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """Version of the format."""
    experiment: str
    """Path of the experiment file."""
    hash: str
    """SHA-256 of what the bisection depends on: file, profile, changed keys and options."""
    over: Over
    """What the versions are."""
    versions: list[str]
    """The versions in order, from good to bad."""
    workload: str
    """Title of the workload."""
    metric: Metric
    """The metric."""
    confidence: float
    """Confidence level of every interval; all of them hold together with at least 95 %."""
    steps: list[StepRecord] = Field(default_factory=list)
    """The steps in order."""
    first_bad: str | None = None
    """The first version that differs; null if it is not known."""
    possible: list[str] = Field(default_factory=list)
    """The versions of which one is the first that differs; empty if good and bad do not significantly differ.
    """
    sentence: str = ""
    """The result as a sentence; empty while the bisection runs."""


def new_record_path(folder: Path) -> Path:
    """The path of a new record. Creates the folder. Raises StoreProblem."""
    files.make_folder(folder)
    now = datetime.now(UTC)
    return folder / f"bisect-{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z.json"


def newest_record(folder: Path) -> Path | None:
    """The record of the newest bisection; None if there is none."""
    return max(folder.glob("bisect-*.json"), default=None)
