"""What a comparison tells while it runs. Plain values; the command that listens decides how they look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding


@dataclass(frozen=True)
class Began:
    """The run is about to begin."""

    path: Path
    trials: int
    # Trials an earlier attempt has finished.
    kept: int
    groups: int
    estimate_s: float


@dataclass(frozen=True)
class Step:
    """Something other than a trial is being done, such as restoring the data."""

    text: str
    left_s: float


@dataclass(frozen=True)
class Trouble:
    """Something that went wrong beside what is being done, and leaves the user something to do."""

    text: str


@dataclass(frozen=True)
class Loading:
    """Rows go in."""

    rows: int
    rows_planned: int


@dataclass(frozen=True)
class TrialBegan:
    """A trial begins; it is planned to take `planned_s`."""

    trial: Trial
    planned_s: float
    left_s: float


@dataclass(frozen=True)
class TrialEnded:
    """A trial is over."""

    trial: Trial
    done: bool
    # Why it failed; empty when it is done.
    reason: str
    # Events per second of the measured phase, for people who watch; the judge computes its own.
    events_per_s: float | None
    left_s: float


@dataclass(frozen=True)
class Extended:
    """Trials were added to the run, and why."""

    text: str
    trials: int
    left_s: float


@dataclass(frozen=True)
class Found:
    """The checks have found something that was not told yet."""

    findings: tuple[Finding, ...]


Progress = Began | Step | Trouble | Loading | TrialBegan | TrialEnded | Extended | Found
