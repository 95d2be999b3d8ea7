"""endings.json: when each call of `compare` on a run began and how it ended, in order.

The judge's sentence says why a run stopped, and the report how much of the time was measured.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dbdyno.store.document import Document, DocumentPart, Why
from dbdyno.store.run import Run

FILE = "endings.json"


class Ending(DocumentPart):
    """One call of `compare`."""

    began_unix_us: int
    """When it began."""
    ended_unix_us: int
    """When it ended."""
    why: Why
    """Why it ended."""


class EndingsFile(Document):
    """The content of endings.json."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """The version of this file's schema."""
    calls: list[Ending] = Field(default_factory=list)
    """The calls, oldest first. A call that was killed is missing."""


def read_endings(run: Run) -> list[Ending]:
    """The calls of `compare` on a run, oldest first; none in runs of older versions. Raises StoreProblem."""
    file = EndingsFile.read(run.path / FILE)
    return file.calls if file else []


def add_ending(run: Run, ending: Ending) -> None:
    """Store how a call has ended. Raises StoreProblem."""
    EndingsFile(calls=[*read_endings(run), ending]).write(run.path / FILE)
