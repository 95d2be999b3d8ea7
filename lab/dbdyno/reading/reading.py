"""All that was read from one document."""

from __future__ import annotations

import re
from bisect import bisect_left
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
from dbdyno.reading.patterns import linear
from dbdyno.reading.result import Result
from dbdyno.reading.setting import Settings, find_settings

# A sentence or a list about the load, and how far above a result it may stand.
_LOAD = linear(
    r"(?<![\d.,])(\d{1,3}(?:,\d{3})+|\d{1,5}) "
    r"(?:concurrent )?(?:virtual users|clients|threads|connections|users)\b|"
    r"number of (?:clients|connections|virtual users)\W+(\d{1,5})\b",
    re.IGNORECASE,
)
_LINES_ABOVE = 40
_CAPTION_LINES = 6


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
    calls_above = _CallsAbove(calls)
    named: dict[int, frozenset[int]] = {}
    results = [_with_load(document, calls_above.complete(one), named) for one in find_results(document)]
    settings = list(find_settings(document))
    parts: list[Result | Call | Settings] = [*results, *calls, *settings]
    occupied = frozenset(index for one in parts for index in range(one.first, one.last + 1))
    series = attribute(document, results, occupied, settings)
    loads = planned_loads(document, calls, occupied)
    claims = list(find_claims(document, occupied))
    return Reading(document, results, calls, settings, series, contrasts(series), claims, loads)


class _CallsAbove:
    """Gives results what their output does not say and the call above them does: connections and workload."""

    def __init__(self, calls: Sequence[Call]) -> None:
        # The passes of the calls by their first lines, for each tool.
        self._passes: dict[str, dict[int, list[Call]]] = {}
        for call in calls:
            if call.phase == "run":
                self._passes.setdefault(call.tool, {}).setdefault(call.first, []).append(call)
        self._lines = {tool: list(passes) for tool, passes in self._passes.items()}

    def complete(self, result: Result) -> Result:
        """The result with what the call above it says."""
        if result.table >= 0:
            return result
        above = (self._above(tool, result.first) for tool in self._passes if result.tool.startswith(tool))
        last = max((one for one in above if one), key=lambda passes: passes[0].first, default=None)
        if last is None:
            return result
        # The passes of a loop have several numbers.
        numbers = {call.connections for call in last}
        connections = result.connections
        if connections is None and len(numbers) == 1:
            connections = numbers.pop()
        return replace(result, connections=connections, workload=result.workload or last[-1].test)

    def _above(self, tool: str, index: int) -> list[Call]:
        place = bisect_left(self._lines[tool], index) - 1
        return self._passes[tool][self._lines[tool][place]] if place >= 0 else []


def _with_load(document: Document, result: Result, named: dict[int, frozenset[int]]) -> Result:
    """The result with the connections that the lines above it name, if the nearest ones or all of them name
    one number; `named` are the numbers of lines that were read.
    """
    if result.connections is not None:
        return result
    numbers: set[int] = set()
    for index in range(result.first - 1, max(0, result.first - _LINES_ABOVE) - 1, -1):
        if index not in named:
            matches = _LOAD.finditer(document.texts[index])
            named[index] = frozenset(int((match[1] or match[2]).replace(",", "")) for match in matches)
        numbers |= named[index]
        if numbers and result.first - index <= _CAPTION_LINES:
            # The lines right above a result are about it.
            break
    return replace(result, connections=numbers.pop()) if len(numbers) == 1 else result
