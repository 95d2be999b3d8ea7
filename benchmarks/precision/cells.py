"""A cell is one question answered by one design; its result is one JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dbdyno.stats.signed_rank import percent

from .questions import Question


@dataclass(frozen=True)
class Answer:
    """What a design says after some minutes; in percent of the baseline."""

    minutes: float
    # Blocks, pairs of runs, or seconds of both servers.
    count: int
    # None if there is no interval yet.
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval, as a ratio in percent; None if there is none."""
        if self.low is None or self.high is None or self.low <= -100.0 or not math.isfinite(self.high):
            return None
        return percent((math.log1p(self.high / 100.0) - math.log1p(self.low / 100.0)) / 2.0)

    def holds(self, truth: float) -> bool | None:
        """Whether the interval contains the true change in percent."""
        return None if self.low is None or self.high is None else self.low <= truth <= self.high


@dataclass(frozen=True)
class Result:
    """A finished cell."""

    question: str
    design: str
    repeat: int
    version: str
    # When it began, in seconds since 1970, and how long it took.
    began: float
    wall_s: float
    # Part of the time in which a server was measured.
    measuring: float
    answers: Sequence[Answer]
    # The log ratios of all blocks or pairs, for the size of the difference.
    ratios: Sequence[float] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """One measurement to do."""

    question: Question
    design: str
    repeat: int
    # The times of the answers; a stored result with other times does not count.
    minutes: tuple[float, ...]

    @property
    def name(self) -> str:
        """Name of the file and on the command line."""
        return f"{self.question.name}.{self.design}.{self.repeat}"

    def load(self, folder: Path) -> Result | None:
        """The stored result; None if the cell is not done."""
        path = folder / f"{self.name}.json"
        if not path.exists():
            return None
        stored = json.loads(path.read_text())
        result = Result(**{**stored, "answers": [Answer(**one) for one in stored["answers"]]})
        return result if [one.minutes for one in result.answers] == list(self.minutes) else None

    def store(self, folder: Path, result: Result) -> None:
        """Write the result at once: an interrupted command leaves no half a file."""
        path = folder / f"{self.name}.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(result), indent=1))
        unfinished.rename(path)
