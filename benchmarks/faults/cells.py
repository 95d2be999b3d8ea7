"""A cell is one fault in one phase, for one kind of server and one product; its result is a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

# In the order of a run. `rehearse` is the start with empty tables that verifies the settings.
PHASES = ("rehearse", "prepare", "restore", "warm-up", "measure", "judge", "report")
KINDS = ("local", "remote", "command", "docker")
PRODUCTS = ("mariadb", "mysql", "postgresql")


class Outcome(StrEnum):
    """What became of a run. The last three are forbidden."""

    ENDS = "ends with a clear message"
    WENT_ON = "went on"
    RESUMED = "ended; --resume finished it"
    LOST = "lost"
    HANGS = "hangs"
    FAULT = "fault of dbdyno"

    @property
    def is_forbidden(self) -> bool:
        """Whether dbdyno must never behave so."""
        return self in (Outcome.LOST, Outcome.HANGS, Outcome.FAULT)


@dataclass(frozen=True)
class Result:
    """What was observed in a cell."""

    outcome: Outcome
    # Why the outcome is forbidden; empty if it is not.
    why: str
    # The last lines on standard error after the fault.
    sees: Sequence[str]
    # None if the run was killed by the benchmark because it did not end.
    exit_code: int | None
    # Finished trials before the fault, those of them that are still there, all at the end, and the plan.
    before: int
    kept: int
    finished: int
    planned: int
    has_report: bool
    # Processes that survived dbdyno, and tables on a server that it did not start.
    left: Sequence[str] = field(default_factory=list)
    # Seconds from the fault to the first line that reports it, and to the end of dbdyno.
    reported_s: float | None = None
    ended_s: float | None = None
    # Seconds of the whole cell.
    took_s: float = 0.0


@dataclass(frozen=True)
class Cell:
    """One run to do."""

    fault: str
    phase: str
    kind: str
    product: str

    @property
    def name(self) -> str:
        """Name of the file and on the command line."""
        return f"{self.fault}.{self.phase}.{self.kind}.{self.product}"

    def load(self, folder: Path) -> Result | None:
        """The stored result; None if the cell is not done."""
        path = folder / f"{self.name}.json"
        if not path.exists():
            return None
        stored = json.loads(path.read_text())
        return Result(**{**stored, "outcome": Outcome(stored["outcome"])})

    def store(self, folder: Path, result: Result) -> None:
        """Write the result in one step: an interrupted command leaves no half a file."""
        path = folder / f"{self.name}.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(result), indent=1))
        unfinished.rename(path)
