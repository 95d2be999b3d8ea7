"""The record of a bisection: `bisect-<UTC time>.json` in the folder of its runs.

It is written before and after each step, so that an interrupted bisection can be continued.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dbdyno.store import files
from dbdyno.store.document import Document, DocumentPart, IntervalEnds, Metric, Optional

Over = Literal["variants", "versions", "commits"]


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
    """The versions of which one is the first that differs; empty if good and bad do not surely differ."""
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
