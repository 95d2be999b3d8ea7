"""Q07: a claim must not go beyond what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for claims about other machines, longer runs and hearsay."""
    indexes = [claim.index for claim in reading.claims if claim.is_beyond]
    if indexes:
        yield finding(
            reading, "Q07", "note", compose("the sentence speaks of what was not measured here"), indexes
        )


CHECK = DocumentCheck("Q07", find)
