"""The loads that a document plans, in commands, in loops, and in sentences about threads; and those of the
results whose output does not say them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dbdyno.reading.call import CONNECTIONS, Call
from dbdyno.reading.document import Document
from dbdyno.reading.limits import LOADS_MAX, linear, whole
from dbdyno.reading.result import Result
from dbdyno.text import compose

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
    return [_with_load(document, calls_above.complete(one), named) for one in results]


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
            matches = _LOAD_OF_RESULT.finditer(document.texts[index])
            named[index] = frozenset(int((match[1] or match[2]).replace(",", "")) for match in matches)
        numbers |= named[index]
        if numbers and result.first - index <= _CAPTION_LINES:
            # The lines right above a result are about it.
            break
    return replace(result, connections=numbers.pop()) if len(numbers) == 1 else result
