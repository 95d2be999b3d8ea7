"""Which results belong to one variant: the same server under several loads, or several times.

A table names its variants itself. Otherwise results follow each other in the document, and a variant ends
where a load comes again under another heading. Its name is the setting that differs, if the document shows
one for every variant, because headings are typed and settings are printed; else the heading above its first
result.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.reading.document import Document
from dbdyno.reading.limits import SETTINGS_MAX, VARIANTS_MAX
from dbdyno.reading.patterns import linear
from dbdyno.reading.result import Result
from dbdyno.reading.sections import NO_HEADING, Heading, Headings
from dbdyno.reading.setting import Settings
from dbdyno.text import compose

# More settings than this differ between versions or servers, so none of them names the variant.
_NAMES_MAX = 2
# A variant whose name has one of these is what others are compared with.
_BASELINE = linear(
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
    known_settings = _SettingsByLine(document, settings)
    all_series: list[Series] = []
    index: dict[tuple[str, ...], Series] = {}
    previous = -1
    for result in results:
        heading = NO_HEADING if result.label else headings.between(previous + 1, result.first)
        shown = known_settings.at(result.first)
        known = _series_of(all_series, index, result, heading, shown)
        if known is None:
            if len(all_series) >= VARIANTS_MAX:
                text = compose(
                    "only the first {limit:,} variants are read; their names are those of headings and cells",
                    limit=VARIANTS_MAX,
                )
                document.left_out.add("variants", document.numbers[result.first], text)
                continue
            known = Series(result.label, settings=shown, heading=heading, workload=result.workload)
            all_series.append(known)
            index[_key(result, heading)] = known
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
    all_series: Sequence[Series],
    index: Mapping[tuple[str, ...], Series],
    result: Result,
    heading: Heading,
    shown: Mapping[str, tuple[str, int]],
) -> Series | None:
    """The series to which a result belongs; None if it begins a new one."""
    if result.label:
        return index.get(_key(result, heading))
    last = all_series[-1] if all_series and not all_series[-1].label else None
    if last is None or (result.workload and last.workload != result.workload):
        return None
    if result.table >= 0 and last.results[-1].table == result.table:
        return last
    if result.connections is None and heading.section and heading.section == last.heading.section:
        return last
    again = result.connections in last.loads
    if again and shown is not last.settings and not _have_equal_values(shown, last.settings):
        return None
    if heading.text and again:
        # A heading that came before continues its variant: outputs may alternate.
        return index.get(_key(result, heading))
    return last


def _have_equal_values(one: Mapping[str, tuple[str, int]], other: Mapping[str, tuple[str, int]]) -> bool:
    return len(one) == len(other) and all(
        name in other and other[name][0] == value for name, (value, _) in one.items()
    )


def _key(result: Result, heading: Heading) -> tuple[str, ...]:
    """What two results of one series have in common: the name in the output, or else the heading."""
    if result.label:
        return ("label", result.label, result.workload)
    return ("heading", heading.text, heading.section)


class _SettingsByLine:
    """The settings that hold at a line: of a file the last one, and all that a server has printed since."""

    def __init__(self, document: Document, settings: Sequence[Settings]) -> None:
        self._document = document
        self._left = deque(settings)
        self._values: dict[str, tuple[str, int]] = {}

    def at(self, index: int) -> Mapping[str, tuple[str, int]]:
        """The settings at a line; each call names a later line than the one before."""
        changed: dict[str, tuple[str, int]] | None = None
        while self._left and self._left[0].first <= index:
            block = self._left.popleft()
            if not block.is_shown:
                changed = dict(block.values)
                continue
            changed = dict(self._values) if changed is None else changed
            left = {name: value for name, value in block.values.items() if name not in changed}
            changed.update((name, value) for name, value in block.values.items() if name in changed)
            changed.update(itertools.islice(left.items(), max(0, SETTINGS_MAX - len(changed))))
            if left.keys() - changed.keys():
                text = compose(
                    "more than {limit:,} variables are shown; the first ones are read", limit=SETTINGS_MAX
                )
                self._document.left_out.add("settings", self._document.numbers[block.first], text)
        # Equal settings are one object, which is compared quickly.
        if changed is not None and changed != self._values:
            self._values = changed
        return self._values


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
