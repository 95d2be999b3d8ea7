"""The loads that a document plans: in commands, in loops, and in sentences about threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dbdyno.reading.call import Call
from dbdyno.reading.document import Document
from dbdyno.reading.limits import LOADS_MAX
from dbdyno.reading.patterns import linear, whole
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
_OPTIONS = ("threads", "num-threads", "client", "concurrency")
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
            named = (call.options[name] for name in _OPTIONS if name in call.options)
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
