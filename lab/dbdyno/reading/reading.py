"""All that was read from one document, or from several that are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.reading.attribution import Series, attribute
from dbdyno.reading.call import Call, find_calls
from dbdyno.reading.claim import Claim, find_claims
from dbdyno.reading.document import Document
from dbdyno.reading.formats import find_results
from dbdyno.reading.judgement import Contrast, contrasts
from dbdyno.reading.loads import planned_loads, with_loads
from dbdyno.reading.result import Figure, Result
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
    results = with_loads(document, find_results(document), calls)
    settings = list(find_settings(document))
    parts: list[Result | Call | Settings] = [*results, *calls, *settings]
    occupied = frozenset(index for one in parts for index in range(one.first, one.last + 1))
    series = attribute(document, results, occupied, settings)
    loads = planned_loads(document, calls, occupied)
    claims = list(find_claims(document, occupied))
    return Reading(document, results, calls, settings, series, contrasts(series), claims, loads)


def combine(readings: Sequence[Reading]) -> Reading | None:
    """The comparison of the documents that have results; None if fewer than two have."""
    measured = [one for one in readings if one.series]
    if len(measured) < 2:
        return None
    names = _names([one.document.name for one in measured])
    has_one_series = all(len(one.series) == 1 for one in measured)
    workloads = {one.series[0].workload for one in measured}
    # An output does not name its workload; the command above another one does.
    is_unnamed = has_one_series and len(workloads - {""}) < 2
    texts: list[str] = []
    numbers: list[int] = []
    all_series: list[Series] = []
    for name, reading in zip(names, measured, strict=True):
        counts = Counter(one.workload for one in reading.series)
        for one in reading.series:
            variant = one.label if counts[one.workload] > 1 else ""
            workload = "" if is_unnamed else ", ".join(part for part in (variant, one.workload) if part)
            moved = [_move(result, len(texts)) for result in one.results]
            all_series.append(replace(one, label=name, workload=workload, results=moved))
        texts += reading.document.texts
        numbers += reading.document.numbers
    document = Document(", ".join(one.document.name for one in measured), texts, numbers)
    results = [result for one in all_series for result in one.results]
    return Reading(document, results, [], [], all_series, contrasts(all_series), [], {})


def _names(paths: Sequence[str]) -> list[str]:
    """The shortest names that differ."""
    for names in ([Path(one).stem for one in paths], [Path(one).name for one in paths]):
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _move(result: Result, lines: int) -> Result:
    """The result in a document that has so many lines before its own."""
    figures = {name: Figure(one.value, one.index + lines) for name, one in result.figures.items()}
    table = result.table + lines if result.table >= 0 else -1
    return replace(result, first=result.first + lines, last=result.last + lines, figures=figures, table=table)
