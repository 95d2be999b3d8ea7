"""What `dbdyno history` says of the stored runs of one experiment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dbdyno.store.document import Document, DocumentPart, Metric
from dbdyno.store.verdict import Change
from dbdyno.text import Composed

ChangeState = Literal["candidate", "confirmed", "not-confirmed"]


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
    surely_before: int
    """Number of the last run that is before the change wherever in this range it is."""
    surely_after: int
    """Number of the first run that is surely after it."""
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
        return any(change.is_alert for one in self.series for change in one.changes)
