"""The progress of an experiment, as plain values that the listener receives in order.

Commands display them, and `times.Estimate` computes the remaining time from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbdyno.decide.stopping import Progress as Look
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.store.document import Why


class Progress:
    """Base class of the progress values."""


@dataclass(frozen=True)
class Began(Progress):
    """The run is about to begin."""

    path: Path
    # Trials that have not run, in order, and the number of trials that an earlier attempt completed.
    todo: tuple[Trial, ...]
    kept: int
    # Rows to load before the first trial, and rows that each group restores.
    rows: int = 0
    group_rows: int = 0
    # Server starts that belong to no group.
    test_starts: int = 0
    # Warm-up trials that determine the warm-up, each its own group, and the seconds that one takes.
    warmup_trials: int = 0
    warmup_trial_s: float = 0.0
    # Pilots that determine the number of event loops, each its own group.
    pilots: int = 0
    # The warm-up that an earlier attempt determined; None means the warm-up of the experiment.
    warmup_s: float | None = None
    # With `design.stop`, the time after which no block begins that is expected to end later.
    max_time_s: float | None = None


@dataclass(frozen=True)
class Step(Progress):
    """A step other than a trial begins, such as restoring the data."""

    text: str


@dataclass(frozen=True)
class ProblemOccurred(Progress):
    """A failure that does not end the run, but leaves work for the user, such as tables to drop."""

    text: str


@dataclass(frozen=True)
class Loading(Progress):
    """Rows loaded so far."""

    rows: int
    rows_planned: int

    @property
    def text(self) -> str:
        """How many rows are loaded."""
        return f"{self.rows:,} of {self.rows_planned:,} rows"


class LoadingLines:
    """Lines of text about a load in progress: one for each tenth of the rows."""

    def __init__(self) -> None:
        self._tenths = 0

    def next(self, value: Loading) -> str:
        """The next line, or an empty text."""
        before, self._tenths = self._tenths, 10 * value.rows // max(1, value.rows_planned)
        return value.text if self._tenths > before else ""


@dataclass(frozen=True)
class Loaded(Progress):
    """All data of the experiment are loaded."""


@dataclass(frozen=True)
class TestStartEnded(Progress):
    """A server was started and checked once, like a group without trials."""

    seconds: float


@dataclass(frozen=True)
class PilotEnded(Progress):
    """The pilot of one variant and workload is over."""


@dataclass(frozen=True)
class WarmupTrialEnded(Progress):
    """A warm-up trial, which determines the warm-up, is over."""


@dataclass(frozen=True)
class WarmupChosen(Progress):
    """The warm-up of all trials, in seconds."""

    warmup_s: float


@dataclass(frozen=True)
class TrialBegan(Progress):
    """A trial begins."""

    trial: Trial


@dataclass(frozen=True)
class TrialEnded(Progress):
    """A trial is over."""

    trial: Trial
    # The reason of a failure; empty if the trial completed.
    reason: str
    # Events per second of the measured phase, for display; the package `judge` computes the result.
    events_per_s: float | None


@dataclass(frozen=True)
class GroupEnded(Progress):
    """All trials of one server start are over."""

    trials: tuple[Trial, ...]
    seconds: float


@dataclass(frozen=True)
class BlockEnded(Progress):
    """A block of a comparison with `design.stop` is over, and the judge was asked."""

    # Finished blocks, and the largest number that the run may have.
    blocks: int
    at_most: int
    look: Look
    # Seconds until max_time.
    left_s: float
    # Why the call ends here; None if it goes on.
    why: Why | None

    @property
    def blocks_expected(self) -> int | None:
        """How many more blocks the judge expects until every comparison is decided; None if it cannot say."""
        counts = [comparison.blocks_still_expected for comparison in self.look.comparisons]
        counted = [count for count in counts if count is not None]
        return max(counted) if counted and len(counted) == len(counts) else None


@dataclass(frozen=True)
class Extended(Progress):
    """Trials were added to the run, for the reason in `text`."""

    text: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class NewFindings(Progress):
    """New findings of the checks."""

    findings: tuple[Finding, ...]


Listener = Callable[[Progress], None]
