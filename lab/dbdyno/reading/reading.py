"""All that was read from one document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.reading.attribution import Series, attribute
from dbdyno.reading.call import Call, find_calls
from dbdyno.reading.claim import Claim, find_claims
from dbdyno.reading.document import Document
from dbdyno.reading.formats.registry import find_results
from dbdyno.reading.judgement import Contrast, contrasts
from dbdyno.reading.loads import planned_loads
from dbdyno.reading.result import Result
from dbdyno.reading.setting import Settings, find_settings

# A sentence or a list about the load, and how far above a result it may stand.
_LOAD = re.compile(
    r"\b(\d{1,5}) (?:virtual users|clients|threads|connections|concurrent users)\b|"
    r"number of (?:clients|connections|virtual users)\W+(\d{1,5})\b",
    re.IGNORECASE,
)
_LINES_ABOVE = 40


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
    def folder(self) -> Path:
        """The folder to which paths in the document are relative."""
        return Path(self.document.name).parent

    @property
    def varied(self) -> str:
        """The names of the variants in one text."""
        return " ".join(one.label for one in self.series)


def read(document: Document) -> Reading:
    """Reads a document."""
    calls = list(find_calls(document))
    results = [_with_load(document, _with_call(one, calls)) for one in find_results(document)]
    settings = list(find_settings(document))
    parts: list[Result | Call | Settings] = [*results, *calls, *settings]
    occupied = frozenset(index for one in parts for index in range(one.first, one.last + 1))
    series = attribute(document, results, occupied, settings)
    loads = planned_loads(document, calls, occupied)
    claims = list(find_claims(document, occupied))
    return Reading(document, results, calls, settings, series, contrasts(series), claims, loads)


def _with_call(result: Result, calls: Sequence[Call]) -> Result:
    """The result with what its output does not say and the call above it does: connections and workload."""
    if result.table >= 0:
        return result
    above = [
        call
        for call in calls
        if call.first < result.first and call.phase == "run" and result.tool.startswith(call.tool)
    ]
    if not above:
        return result
    last = [call for call in above if call.first == above[-1].first]
    # The passes of a loop have several numbers.
    numbers = {call.connections for call in last}
    connections = numbers.pop() if result.connections is None and len(numbers) == 1 else result.connections
    return replace(result, connections=connections, workload=result.workload or last[-1].test)


def _with_load(document: Document, result: Result) -> Result:
    """The result with the connections that the lines above it name, if they name one number."""
    if result.connections is not None:
        return result
    numbers: set[int] = set()
    for text in document.texts[max(0, result.first - _LINES_ABOVE) : result.first]:
        numbers.update(int(match[1] or match[2]) for match in _LOAD.finditer(text))
    return replace(result, connections=numbers.pop()) if len(numbers) == 1 else result
