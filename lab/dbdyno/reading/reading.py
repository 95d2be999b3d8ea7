"""All that was read from one document, or from several that are compared."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.reading.attribution import Series, attribute
from dbdyno.reading.call import CONNECTIONS, Call, find_calls
from dbdyno.reading.claim import Claim, find_claims
from dbdyno.reading.document import Document
from dbdyno.reading.formats import find_results
from dbdyno.reading.judgement import Contrast, contrasts
from dbdyno.reading.limits import LOADS_MAX, linear, whole
from dbdyno.reading.result import Figure, Result
from dbdyno.reading.setting import Settings, find_settings
from dbdyno.text import compose


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
        return " ".join(entry.label for entry in self.series)


def read(document: Document) -> Reading:
    """Reads a document."""
    calls = list(find_calls(document))
    results = with_loads(document, find_results(document), calls)
    settings = list(find_settings(document))
    parts: list[Result | Call | Settings] = [*results, *calls, *settings]
    occupied = frozenset(index for part in parts for index in range(part.first, part.last + 1))
    series = attribute(document, results, occupied, settings)
    loads = planned_loads(document, calls, occupied)
    claims = list(find_claims(document, occupied))
    return Reading(document, results, calls, settings, series, contrasts(series), claims, loads)


def combine(readings: Sequence[Reading]) -> Reading | None:
    """The comparison of the documents that have results; None if fewer than two have."""
    measured = [entry for entry in readings if entry.series]
    if len(measured) < 2:
        return None
    names = _names([entry.document.name for entry in measured])
    has_one_series = all(len(entry.series) == 1 for entry in measured)
    workloads = {entry.series[0].workload for entry in measured}
    # An output does not name its workload; the command above another one does.
    is_unnamed = has_one_series and len(workloads - {""}) < 2
    texts: list[str] = []
    numbers: list[int] = []
    all_series: list[Series] = []
    for name, reading in zip(names, measured, strict=True):
        counts = Counter(entry.workload for entry in reading.series)
        for series in reading.series:
            variant = series.label if counts[series.workload] > 1 else ""
            workload = "" if is_unnamed else ", ".join(part for part in (variant, series.workload) if part)
            moved = [_move(result, len(texts)) for result in series.results]
            all_series.append(replace(series, label=name, workload=workload, results=moved))
        texts += reading.document.texts
        numbers += reading.document.numbers
    document = Document(", ".join(entry.document.name for entry in measured), texts, numbers)
    results = [result for entry in all_series for result in entry.results]
    return Reading(document, results, [], [], all_series, contrasts(all_series), [], {})


def _names(paths: Sequence[str]) -> list[str]:
    """The shortest names that differ."""
    for names in ([Path(path).stem for path in paths], [Path(path).name for path in paths]):
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _move(result: Result, lines: int) -> Result:
    """The result in a document that has so many lines before its own."""
    figures = {name: Figure(figure.value, figure.index + lines) for name, figure in result.figures.items()}
    table = result.table + lines if result.table >= 0 else -1
    return replace(result, first=result.first + lines, last=result.last + lines, figures=figures, table=table)


_WORD = linear(
    r"threads?|connections?|clients?|concurren\w+|스레드|쓰레드|클라이언트|线程|并发|スレッド|поток",
    re.IGNORECASE,
)
_LIST = linear(
    r"(?<!\d)\d{1,15}(?:,\d{3}\b)?(?:\s{0,9}+(?:개의?)?\s{0,9}+[,~–—/-]\s{0,9}+\d{1,15}+(?:,\d{3}\b)?){1,500}+|"
    r"\{\s{0,9}+\d{1,15}+\s{0,9}+[~,.\-]{1,9}+\s{0,9}+\d{1,15}+\s{0,9}+\}"
)
_DIGITS = re.compile(r"\d++")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
# Numbers in a list of threads that are none: years, sizes.
_MAX = 100_000


def planned_loads(document: Document, calls: Sequence[Call], occupied: frozenset[int]) -> dict[int, int]:
    """Number of connections -> index of the line that plans it."""
    loads: dict[int, int] = {}
    for number, index in _planned(document, calls, occupied):
        if number not in loads and len(loads) >= LOADS_MAX:
            text = compose("only the first {limit:,} planned loads are read", limit=LOADS_MAX)
            document.left_out.add("loads", document.numbers[index], text)
            break
        loads.setdefault(number, index)
    return loads


def _planned(
    document: Document, calls: Sequence[Call], occupied: frozenset[int]
) -> Iterator[tuple[int, int]]:
    """The planned numbers of connections, each with the index of its line."""
    for call in calls:
        if call.phase == "run" and not call.is_alternative:
            named = (call.options[name] for name in CONNECTIONS if name in call.options)
            yield from ((number, call.first) for number in _numbers(next(named, "")))
    for index, text in document.lines():
        if index in occupied or not _WORD.search(text):
            continue
        for match in _LIST.finditer(text):
            numbers = _numbers(_THOUSANDS.sub("", match[0]))
            if (
                len(numbers) > 1
                and all(0 < number < _MAX for number in numbers)
                and numbers == sorted(numbers)
            ):
                yield from ((number, index) for number in numbers)


def _numbers(text: str) -> list[int]:
    return [number for digits in _DIGITS.findall(text) if (number := whole(digits)) is not None]


# A sentence or a list about the load, and how far above a result it may stand.
_LOAD_OF_RESULT = linear(
    r"(?<![\d.,])(\d{1,3}(?:,\d{3})+|\d{1,5}) "
    r"(?:concurrent )?(?:virtual users|clients|threads|connections|users)\b|"
    r"number of (?:clients|connections|virtual users)\W+(\d{1,5})\b",
    re.IGNORECASE,
)
_LINES_ABOVE = 40
_CAPTION_LINES = 6


def with_loads(document: Document, results: Sequence[Result], calls: Sequence[Call]) -> list[Result]:
    """The results with what their output does not say, and the call or the lines above them do: connections
    and workloads.
    """
    calls_above = _CallsAbove(calls)
    named: dict[int, frozenset[int]] = {}
    return [_with_load(document, calls_above.complete(result), named) for result in results]


class _CallsAbove:
    """Gives results what their output does not say and the call above them does."""

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
        last = max((entry for entry in above if entry), key=lambda passes: passes[0].first, default=None)
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
            matches = _LOAD_OF_RESULT.finditer(document.texts[index])
            named[index] = frozenset(int((match[1] or match[2]).replace(",", "")) for match in matches)
        numbers |= named[index]
        if numbers and result.first - index <= _CAPTION_LINES:
            # The lines right above a result are about it.
            break
    return replace(result, connections=numbers.pop()) if len(numbers) == 1 else result
