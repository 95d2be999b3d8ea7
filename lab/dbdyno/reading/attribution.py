"""Which results belong to one variant: the same server under several loads, or several times.

A table names its variants itself. Otherwise results follow each other in the document, and a variant ends
where a load comes again under another heading. Its name is the setting that differs, if the document shows
one for every variant, because headings are typed and settings are printed; else the heading above its first
result.

Results of one name that come again under another heading were measured under another condition, which counts
as a workload: they are no repetitions. Where neither a heading nor the table says whether results repeat each
other, the series has a doubt, and no interval is computed from it.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.reading.document import Document
from dbdyno.reading.limits import SETTINGS_MAX, VARIANTS_MAX, linear
from dbdyno.reading.names import NO_HEADING, SENTENCE, Heading, Headings, is_workload
from dbdyno.reading.result import Result
from dbdyno.reading.setting import Settings
from dbdyno.text import compose

# More settings than this differ between versions or servers, so none of them names the variant.
_NAMES_MAX = 2
# A variant whose name has one of these is what others are compared with.
_BASELINE = linear(
    r"\b(?:off|none|without|default|before|baseline|old|master|trunk|upstream|original|disabled|stock|vanilla|one-thread-per-connection)\b|"
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
    # What was taken for what, without certainty.
    doubt: str = ""


@dataclass
class _Group:
    """Results that belong together: rows of a table with the same name, or outputs without a heading between
    them.
    """

    results: list[Result]
    heading: Heading
    settings: Mapping[str, tuple[str, int]]
    # Whether the number of a repetition is written above it.
    has_run_number: bool = False
    doubt: str = ""

    @property
    def first(self) -> Result:
        return self.results[0]

    def continues_with(self, result: Result, settings: Mapping[str, tuple[str, int]]) -> bool:
        """Whether an output without a heading of its own is one more of this group."""
        same = (self.first.workload, self.first.label) == (result.workload, result.label)
        return same and self.first.table < 0 and settings is self.settings

    @property
    def key(self) -> tuple[str, ...]:
        """What the groups of one series have in common: the name in the table, or else the heading."""
        if self.first.label:
            return ("label", self.first.label, self.first.workload)
        return ("heading", self.heading.text, self.heading.section, self.first.workload)


def attribute(
    document: Document, results: Sequence[Result], occupied: frozenset[int], settings: Sequence[Settings]
) -> list[Series]:
    """The series of a document, in the order of their first results. `occupied` are the indexes of lines that
    are no headings.
    """
    headings = Headings(document, occupied | {result.table for result in results})
    groups = _groups(results, headings, _SettingsByLine(document, settings))
    _separate_conditions(groups)
    all_series: list[Series] = []
    index: dict[tuple[str, ...], Series] = {}
    for group in groups:
        series = _series_of(all_series, index, group)
        if series is None:
            if len(all_series) >= VARIANTS_MAX:
                text = compose(
                    "only the first {limit:,} variants are read; their names are those of headings and cells",
                    limit=VARIANTS_MAX,
                )
                document.left_out.add("variants", document.numbers[group.first.first], text)
                continue
            series = Series(
                group.first.label,
                settings=group.settings,
                heading=group.heading,
                workload=group.first.workload,
            )
            all_series.append(series)
            index.setdefault(group.key, series)
        index["last", group.first.workload] = series
        _add(series, group)
    _name(all_series)
    return all_series


def _groups(results: Sequence[Result], headings: Headings, settings: _SettingsByLine) -> list[_Group]:
    """The results in groups, in the order of their first results."""
    groups: list[_Group] = []
    of_table: dict[tuple[int, str, str], _Group] = {}
    above: dict[int, tuple[Heading, str]] = {}
    previous = -1
    for result in results:
        is_row = result.table >= 0
        settings_there = settings.at(result.first)
        name = (result.table, result.label, result.workload)
        if is_row and name in of_table:
            of_table[name].results.append(result)
            previous = max(previous, result.last)
            continue
        begin = result.table if is_row else result.first
        if not is_row or result.table not in above:
            above[result.table] = headings.between(previous + 1, begin)
        heading, workload = above[result.table]
        last = groups[-1] if groups else None
        if workload and not heading.text and last is not None:
            heading = last.heading
        has_workload = bool(result.workload or result.label or not workload)
        completed = result if has_workload else replace(result, workload=workload)
        if (
            last is not None
            and heading is NO_HEADING
            and not is_row
            and last.continues_with(completed, settings_there)
        ):
            last.results.append(completed)
        else:
            groups.append(
                _Group([completed], heading, settings_there, headings.has_run_number(previous + 1, begin))
            )
            if is_row:
                of_table[name] = groups[-1]
        previous = max(previous, result.last)
    return groups


def _separate_conditions(groups: Sequence[_Group]) -> None:
    """Gives results of one name in several tables the headings of these tables as workloads, if the tables
    have figures of the same loads; with equal headings they may be repetitions.
    """
    named: dict[tuple[str, ...], list[_Group]] = {}
    for group in groups:
        if group.first.label:
            named.setdefault(group.key, []).append(group)
    separated: dict[int, str] = {}
    for same in named.values():
        if len(same) < 2 or not _have_figures_in_common(same):
            continue
        for texts in ([entry.heading.text for entry in same], [entry.heading.section for entry in same]):
            if len(set(texts)) > 1:
                separated.update((entry.first.table, text) for entry, text in zip(same, texts, strict=True))
                break
        else:
            if not all(entry.has_run_number for entry in same[1:]):
                for group in same:
                    group.doubt = compose(
                        "tables without different headings are taken for repetitions of each other"
                    )
    for group in groups:
        condition = separated.get(group.first.table) if group.first.label else None
        if condition:
            group.results = [
                replace(result, workload=", ".join(part for part in (condition, result.workload) if part))
                for result in group.results
            ]


def _have_figures_in_common(groups: Sequence[_Group]) -> bool:
    seen: set[tuple[int | None, str]] = set()
    for group in groups:
        places = {(result.connections, name) for result in group.results for name in result.figures}
        if places & seen:
            return True
        seen |= places
    return False


def _add(series: Series, group: _Group) -> None:
    """Adds the results of a group to their series."""
    for result in group.results:
        # A table below an output, of its repetitions.
        is_below = bool(series.results) and series.results[0].table < 0
        is_repetition = result.connections is None and len(series.loads) == 1 and is_below
        added = replace(result, connections=next(iter(series.loads))) if is_repetition else result
        series.results.append(added)
        series.loads.add(added.connections)
    series.doubt = series.doubt or group.first.doubt or group.doubt


def baseline_first(series: Sequence[Series]) -> list[Series]:
    """The series with the one that others are compared with in front: the first, unless another one's name or
    heading says that something is off or as before.
    """
    marked = [
        entry
        for entry in series
        if entry.heading.rank < SENTENCE and _BASELINE.search(f"{entry.label} {entry.heading.text}")
    ]
    first = marked[0] if len(marked) == 1 and series[0].label else series[0]
    return [first, *(entry for entry in series if entry is not first)]


def _series_of(
    all_series: Sequence[Series], index: Mapping[tuple[str, ...], Series], group: _Group
) -> Series | None:
    """The series to which a group belongs; None if it begins a new one."""
    first, heading = group.first, group.heading
    position = index.get(group.key)
    if first.label:
        return position
    last = all_series[-1] if all_series else None
    if last is not None and first.workload and last.workload != first.workload:
        # Workloads may alternate.
        last = index.get(("last", first.workload))
    if last is None or last.label:
        return position if heading.text else None
    loads = {result.connections for result in group.results}
    is_again = bool(loads & last.loads)
    if is_again and not _have_equal_values(group.settings, last.settings):
        is_known = position is not None and _have_equal_values(group.settings, position.settings)
        return position if is_known else None
    if heading.text and heading.rank < SENTENCE and position is not None:
        # A heading that came before continues its variant: outputs may alternate.
        return position
    if is_again and not heading.text and first.table >= 0 and not group.has_run_number:
        group.doubt = compose("tables without different headings are taken for repetitions of each other")
    if is_again and heading.text and heading.rank == SENTENCE:
        group.doubt = compose("the sentence above a result is taken for the name of a variant")
    return None if is_again and heading.text else last


def _have_equal_values(first: Mapping[str, tuple[str, int]], second: Mapping[str, tuple[str, int]]) -> bool:
    return len(first) == len(second) and all(
        name in second and second[name][0] == value for name, (value, _) in first.items()
    )


class _SettingsByLine:
    """The settings that hold at a line: of a file the last one, and all that the document has named since."""

    def __init__(self, document: Document, settings: Sequence[Settings]) -> None:
        self._document = document
        self._left = deque(settings)
        self._values: dict[str, tuple[str, int]] = {}

    def at(self, index: int) -> Mapping[str, tuple[str, int]]:
        """The settings at a line; each call names a later line than the one before."""
        changed: dict[str, tuple[str, int]] | None = None
        while self._left and self._left[0].first <= index:
            block = self._left.popleft()
            if not block.is_shown and not (block.is_inline and block.product == "mysql"):
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
    shared = set.intersection(*(set(entry.settings) for entry in series)) if series else set()
    return sorted(name for name in shared if len({entry.settings[name][0] for entry in series}) > 1)


def _name(series: Sequence[Series]) -> None:
    """Gives the series without a name one. Headings that come again under other ones name the workload, and
    those above them the variant, unless one of them says that something is off or as before.
    """
    unnamed = [entry for entry in series if not entry.label]
    names = differing_settings(unnamed) if len(unnamed) > 1 else []
    sections: dict[str, set[str]] = {}
    for nameless in unnamed:
        sections.setdefault(nameless.heading.text, set()).add(nameless.heading.section)
    again = {text: above for text, above in sections.items() if text and len(above) > 1 and "" not in above}
    is_inner = any(_BASELINE.search(text) for text in again) and not any(
        _BASELINE.search(entry) for above in again.values() for entry in above
    )
    is_clear = is_inner or all(is_workload(text) for text in again)
    for nameless in unnamed:
        if 0 < len(names) <= _NAMES_MAX:
            nameless.label = ", ".join(f"{name} = {nameless.settings[name][0]}" for name in names)
        elif nameless.heading.text in again:
            both = (nameless.heading.text, nameless.heading.section)
            nameless.label, workload = both if is_inner else both[::-1]
            nameless.workload = ", ".join(part for part in (workload, nameless.workload) if part)
            if not is_clear:
                nameless.doubt = nameless.doubt or compose(
                    "the headings above those that come again are taken for variants"
                )
        else:
            nameless.label = nameless.heading.text
