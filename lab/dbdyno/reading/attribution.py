"""Which results belong to one variant: the same server under several loads, or several times.

A table names its variants itself. Otherwise results follow each other in the document, and a variant ends where a
load comes again under another heading. Its name is the setting that differs, if the document shows one for every
variant, because headings are typed and settings are printed; else the heading above its first result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dbdyno.reading.document import Document
from dbdyno.reading.result import Result
from dbdyno.reading.setting import Settings

# More settings than this differ between versions or servers, so none of them names the variant.
_NAMES_MAX = 2
_HEADING_MAX = 120
# What a heading says of a load or a repetition, in the languages in which sysbench's outputs are published.
_LOAD_WORDS = re.compile(
    r"threads?|thread|thds?|connections?|clients?|concurrency|users?|queries|runs?|test|bench(?:mark)?|result\w*|for|"
    r"with|and|of|the|using|in|at|running|stats?|statistics|output|num(?:ber)?|스레드|쓰레드|개|회|차|회차|테스트|결과|클라이언트|线程|"
    r"并发|并发数|个|测试|结果|次|第|スレッド|並列|回目|結果|поток\w*|клиент\w*|соединени\w*|thread-?\w*|x|n|=",
    re.IGNORECASE,
)
# What tools print around their results.
_OUTPUT = re.compile(
    r"Running the test with|Initializing|Threads started|sysbench \d|Number of threads|Prewarming|Report intermediate|"
    r"^\[ *\d+s? *\]|rows? in set|^\s*mysql>|^\s*\+[-+]+\+|starting vacuum|pgbench \(|transaction type:|scaling factor:|"
    r"query mode:|number of (?:clients|threads|transactions)|duration:|Running benchmark for engine|^progress:|"
    r"^WARNING|^\s*Benchmark\s*$|^```|^\s*[-=*_]{3,}\s*$|Done\.\s*$|^Query OK|^!\[|^\s*\|",
)
# What headings begin with.
_MARKED = re.compile(r"\s*(?:#{1,6}\s|\(?\d{1,2}[.)]\s|\(?[a-zA-Z][.)]\s|[①-⑳]|\[)")
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
    # The settings shown before its first result: value and index of the line by name.
    settings: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    # The heading above its first result, and the index of its line; "" and -1 without one.
    heading: str = ""
    heading_index: int = -1

    @property
    def workload(self) -> str:
        """The workload of its results."""
        return self.results[0].workload

    @property
    def is_named(self) -> bool:
        """Whether the document names the variant."""
        return bool(self.label)


def attribute(
    document: Document, results: Sequence[Result], occupied: frozenset[int], settings: Sequence[Settings]
) -> list[Series]:
    """The series of a document, in the order of their first results. `occupied` are the indexes of lines that are
    no headings.
    """
    occupied |= {one.table for one in results}
    found: list[Series] = []
    previous = -1
    for result in results:
        headings = [] if result.label else list(_headings(document, occupied, previous + 1, result.first))
        heading_index, heading = headings[-1] if headings else (-1, "")
        known = _series_of(found, result, heading)
        if known is None:
            shown = _settings_before(settings, result.first)
            known = Series(result.label, settings=shown, heading=heading, heading_index=heading_index)
            found.append(known)
        known.results.append(result)
        previous = max(previous, result.last)
    _name(found)
    return found


def baseline_first(series: Sequence[Series]) -> list[Series]:
    """The series with the one that others are compared with in front: the first, unless another one's name or
    heading says that something is off or as before.
    """
    marked = [one for one in series if _BASELINE.search(one.label) or _BASELINE.search(one.heading)]
    first = marked[0] if len(marked) == 1 else series[0]
    return [first, *(one for one in series if one is not first)]


def _series_of(found: Sequence[Series], result: Result, heading: str) -> Series | None:
    """The series to which a result belongs; None if it begins a new one."""
    if result.label:
        same = [one for one in found if (one.label, one.workload) == (result.label, result.workload)]
        return same[-1] if same else None
    open_series = found[-1] if found and not found[-1].label else None
    if open_series is None or open_series.workload != result.workload:
        return None
    if result.table >= 0 and open_series.results[-1].table == result.table:
        return open_series
    again = any(one.connections == result.connections for one in open_series.results)
    if heading and again:
        # A heading that came before continues its variant: outputs may alternate.
        same = [one for one in found if one.heading == heading]
        return same[-1] if same else None
    return open_series


def _headings(
    document: Document, occupied: frozenset[int], start: int, end: int
) -> Iterator[tuple[int, str]]:
    """The lines between two results that can name a variant: short, and about more than the load."""
    for index in range(start, end):
        text = document.texts[index].strip(" \t#*->=:·•`")
        if index in occupied or not 1 < len(text) <= _HEADING_MAX or _OUTPUT.search(document.texts[index]):
            continue
        if _says_more_than_load(text) and not _is_sentence(document.texts[index]):
            yield index, text


def _says_more_than_load(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+|=", _LOAD_WORDS.sub(" ", text))
    return any(len(word) > 1 for word in words)


def _is_sentence(text: str) -> bool:
    """Whether a line is prose: long, or with the end of a sentence and more than a few words."""
    words = text.split()
    if _MARKED.match(text) and not text.rstrip().endswith((".", "다.")):
        return False
    return len(words) > 14 or (text.rstrip().endswith((".", "。", "다.")) and len(words) > 5) or text.startswith("=>")


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
    """Gives the series without a name one."""
    open_series = [one for one in series if not one.label]
    names = differing_settings(open_series) if len(open_series) > 1 else []
    for one in open_series:
        if 0 < len(names) <= _NAMES_MAX:
            one.label = ", ".join(f"{name} = {one.settings[name][0]}" for name in names)
        else:
            one.label = one.heading
