"""The loads that a document plans: in commands, in loops, and in sentences about threads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbdyno.reading.call import Call
from dbdyno.reading.document import Document

_WORD = re.compile(
    r"threads?|connections?|clients?|concurren\w+|스레드|쓰레드|클라이언트|线程|并发|スレッド|поток",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\d+(?:,\d{3}\b)?(?:\s*(?:개의?)?\s*[,~–—/-]\s*\d+(?:,\d{3}\b)?)+|\{\s*\d+\s*[~,.\-]+\s*\d+\s*\}"
)
# Numbers in a list of threads that are none: years, sizes.
_MAX = 100_000


def planned_loads(document: Document, calls: Sequence[Call], occupied: frozenset[int]) -> dict[int, int]:
    """Number of connections -> index of the line that plans it."""
    loads: dict[int, int] = {}
    for call in calls:
        if call.phase != "run":
            continue
        text = next(
            (
                call.options[name]
                for name in ("threads", "num-threads", "client", "concurrency")
                if name in call.options
            ),
            "",
        )
        for number in re.findall(r"\d+", text):
            loads.setdefault(int(number), call.first)
    for index, text in document.lines():
        if index not in occupied and _WORD.search(text):
            for match in _LIST.finditer(text):
                numbers = [
                    int(number) for number in re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d{3}\b)", "", match[0]))
                ]
                if (
                    len(numbers) > 1
                    and all(0 < number < _MAX for number in numbers)
                    and numbers == sorted(numbers)
                ):
                    for number in numbers:
                        loads.setdefault(number, index)
    return loads
