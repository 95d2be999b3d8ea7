"""Which results belong to one variant: the same server under several loads, or several times.

A table names its variants itself. Otherwise results follow each other in the document, and a variant ends
where a load comes again under another heading. Its name is the setting that differs, if the document shows
one for every variant, because headings are typed and settings are printed; else the heading above its first
result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.reading.document import Document
from dbdyno.reading.result import Result
from dbdyno.reading.sections import NO_HEADING, Heading, Headings
from dbdyno.reading.setting import Settings

# More settings than this differ between versions or servers, so none of them names the variant.
_NAMES_MAX = 2
# A variant whose name has one of these is what others are compared with.
_BASELINE = re.compile(
    r"\b(?:off|none|without|default|before|baseline|old|disabled|stock|vanilla|one-thread-per-connection)\b|"
    r"미사용|이전|기존|기본|未使用|默认|之前|旧|無効|デフォルト|なし|без|до\b",
    re.IGNORECASE,
)


@dataclass
class Series:
    """The results of one variant."""

    label: str
    results: list[Result] = field(default_factory=list)
    # Its numbers of connections.
    loads: set[int | None] = field(default_factory=set)
    # The settings shown before its first result: value and index of the line by name.
    settings: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    # The heading above its first result.
    heading: Heading = NO_HEADING
    workload: str = ""


def attribute(
    document: Document, results: Sequence[Result], occupied: frozenset[int], settings: Sequence[Settings]
) -> list[Series]:
    """The series of a document, in the order of their first results. `occupied` are the indexes of lines that
    are no headings.
    """
    headings = Headings(document, occupied | {one.table for one in results})
    all_series: list[Series] = []
    previous = -1
    for result in results:
        heading = NO_HEADING if result.label else headings.between(previous + 1, result.first)
        shown = _settings_before(settings, result.first)
        known = _series_of(all_series, result, heading, shown)
        if known is None:
            known = Series(result.label, settings=shown, heading=heading, workload=result.workload)
            all_series.append(known)
        # A table below an output, of its repetitions.
        is_repetition = result.connections is None and len(known.loads) == 1
        added = replace(result, connections=next(iter(known.loads))) if is_repetition else result
        known.results.append(added)
        known.loads.add(added.connections)
        previous = max(previous, result.last)
    _name(all_series)
    return all_series


def baseline_first(series: Sequence[Series]) -> list[Series]:
    """The series with the one that others are compared with in front: the first, unless another one's name or
    heading says that something is off or as before.
    """
    marked = [one for one in series if _BASELINE.search(one.label) or _BASELINE.search(one.heading.text)]
    first = marked[0] if len(marked) == 1 else series[0]
    return [first, *(one for one in series if one is not first)]


def _series_of(
    all_series: Sequence[Series], result: Result, heading: Heading, shown: Mapping[str, tuple[str, int]]
) -> Series | None:
    """The series to which a result belongs; None if it begins a new one."""
    if result.label:
        same = [one for one in all_series if (one.label, one.workload) == (result.label, result.workload)]
        return same[-1] if same else None
    last = all_series[-1] if all_series and not all_series[-1].label else None
    if last is None or (result.workload and last.workload != result.workload):
        return None
    if result.table >= 0 and last.results[-1].table == result.table:
        return last
    if result.connections is None and heading.section and heading.section == last.heading.section:
        return last
    again = result.connections in last.loads
    if again and {name: value for name, (value, _) in shown.items()} != {
        name: value for name, (value, _) in last.settings.items()
    }:
        return None
    if heading.text and again:
        # A heading that came before continues its variant: outputs may alternate.
        same = [
            one
            for one in all_series
            if (one.heading.text, one.heading.section) == (heading.text, heading.section)
        ]
        return same[-1] if same else None
    return last


def _settings_before(settings: Sequence[Settings], index: int) -> Mapping[str, tuple[str, int]]:
    """The settings that hold at a line: of a file the last one, and all that a server has printed since."""
    values: dict[str, tuple[str, int]] = {}
    for block in settings:
        if block.first > index:
            break
        values = values | dict(block.values) if block.is_shown else dict(block.values)
    return values


def differing_settings(series: Sequence[Series]) -> list[str]:
    """Names of the settings that all series show, with different values."""
    shared = set.intersection(*(set(one.settings) for one in series)) if series else set()
    return sorted(name for name in shared if len({one.settings[name][0] for one in series}) > 1)


def _name(series: Sequence[Series]) -> None:
    """Gives the series without a name one. Headings that come again under other ones name the workload, and
    those above them the variant.
    """
    unnamed = [one for one in series if not one.label]
    names = differing_settings(unnamed) if len(unnamed) > 1 else []
    counts = Counter(one.heading.text for one in unnamed)
    for one in unnamed:
        if 0 < len(names) <= _NAMES_MAX:
            one.label = ", ".join(f"{name} = {one.settings[name][0]}" for name in names)
        elif counts[one.heading.text] > 1 and one.heading.section:
            one.label, one.workload = one.heading.section, one.heading.text
        else:
            one.label = one.heading.text
