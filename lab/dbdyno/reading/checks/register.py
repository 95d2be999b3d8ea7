"""The register of the checks of documents.

A check is a function with the decorator `check`, which yields the mistakes that it finds. Its parameters are
the names of what it needs: attributes of `Reading`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from dbdyno.finding import LEVELS, Finding, Level
from dbdyno.reading.limits import FINDINGS_MAX, LINES_LISTED_MAX
from dbdyno.reading.reading import Reading
from dbdyno.text import compose


@dataclass(frozen=True)
class Mistake:
    """A mistake in a document, and the indexes of the lines that show it."""

    level: Level
    text: str
    indexes: Iterable[int]
    fix: str = ""
    subject: str = ""


Find = Callable[..., Iterator[Mistake]]
AnyFind = TypeVar("AnyFind", bound=Find)


@dataclass(frozen=True)
class DocumentCheck:
    """One check; without findings the document has passed."""

    code: str
    find: Find
    # The names of what it needs.
    needs: tuple[str, ...]
    # Whether it also looks at a comparison of several documents. The others look at the lines of one.
    compares_documents: bool

    def findings(self, reading: Reading) -> Iterator[Finding]:
        """The findings about a document, in the order in which the check yields them."""
        numbers = reading.document.numbers
        for each in self.find(**{name: getattr(reading, name) for name in self.needs}):
            lines = sorted({numbers[index] for index in each.indexes if index >= 0})[:LINES_LISTED_MAX]
            yield Finding(
                self.code,
                each.level,
                each.text,
                evidence={"lines": lines},
                subject=each.subject,
                fix=each.fix,
            )


_CHECKS: dict[str, DocumentCheck] = {}


def check(code: str, *, compares_documents: bool = False) -> Callable[[AnyFind], AnyFind]:
    """Register a function that yields the mistakes with this code; see `DocumentCheck.compares_documents`."""

    def register(find: AnyFind) -> AnyFind:
        assert code not in _CHECKS, f"{code} has two checks"
        needs = tuple(inspect.signature(find).parameters)
        _CHECKS[code] = DocumentCheck(code, find, needs, compares_documents)
        return find

    return register


def all_checks() -> list[DocumentCheck]:
    """All checks in the order of their codes, in which they look at a document."""
    return [_CHECKS[code] for code in sorted(_CHECKS)]


def examine(reading: Reading) -> list[Finding]:
    """The findings about a document, the most severe first, those of a level by their lines."""
    findings: list[Finding] = []
    for each in all_checks():
        iterator = each.findings(reading)
        findings += itertools.islice(iterator, FINDINGS_MAX)
        if (more := next(iterator, None)) is not None:
            text = compose(
                "only the first {limit} findings of {code} are listed", limit=FINDINGS_MAX, code=each.code
            )
            reading.document.left_out.add(each.code, (more.evidence["lines"] or [1])[0], text)
    return sorted(
        findings,
        key=lambda finding: (LEVELS.index(finding.level), finding.evidence["lines"][:1], finding.code),
    )


def examine_comparison(reading: Reading) -> list[Finding]:
    """The findings about documents that are compared with each other, in the order of the documents."""
    return [
        finding
        for each in all_checks()
        if each.compares_documents
        for finding in itertools.islice(each.findings(reading), FINDINGS_MAX)
    ]
