"""All that was read from one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.reading.attribution import Series, attribute
from dbdyno.reading.call import Call, find_calls
from dbdyno.reading.claim import Claim, find_claims
from dbdyno.reading.document import Document
from dbdyno.reading.formats.registry import find_results
from dbdyno.reading.loads import planned_loads
from dbdyno.reading.judgement import Contrast, contrasts
from dbdyno.reading.result import Result
from dbdyno.reading.setting import Settings, find_settings


@dataclass(frozen=True)
class Reading:
    """What a document has: results by variant, calls, settings, and what the results show."""

    document: Document
    results: Sequence[Result]
    calls: Sequence[Call]
    settings: Sequence[Settings]
    series: Sequence[Series]
    contrasts: Sequence[Contrast]
    claims: Sequence[Claim]
    # Planned numbers of connections, each with the index of the line that plans it.
    loads: Mapping[int, int]

    @property
    def varied(self) -> str:
        """The names of the variants in one text."""
        return " ".join(one.label for one in self.series)


def read(document: Document) -> Reading:
    """Reads a document."""
    results = find_results(document)
    calls = list(find_calls(document))
    settings = list(find_settings(document))
    parts = (*results, *calls, *settings)
    occupied = frozenset(index for one in parts for index in range(one.first, one.last + 1))
    series = attribute(document, results, occupied, settings)
    loads = planned_loads(document, calls, occupied)
    claims = list(find_claims(document, occupied))
    return Reading(document, results, calls, settings, series, contrasts(series), claims, loads)
