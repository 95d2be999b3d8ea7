"""The interface of a check of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dbdyno.finding import Finding, Level
from dbdyno.reading.limits import LINES_LISTED_MAX
from dbdyno.reading.reading import Reading


@dataclass(frozen=True)
class DocumentCheck:
    """One check; without findings the document has passed."""

    code: str
    find: Callable[[Reading], Iterator[Finding]]


def finding(
    reading: Reading,
    code: str,
    level: Level,
    text: str,
    indexes: Iterable[int],
    *,
    fix: str = "",
    subject: str = "",
) -> Finding:
    """A finding that rests on the lines with these indexes."""
    lines = sorted({reading.document.numbers[index] for index in indexes if index >= 0})[:LINES_LISTED_MAX]
    return Finding(code, level, text, evidence={"lines": lines}, subject=subject, fix=fix)
