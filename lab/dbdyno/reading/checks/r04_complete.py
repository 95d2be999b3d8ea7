"""R04: a run that failed must not yield numbers."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.document import Document
from dbdyno.reading.formats.sysbench import INTERVAL
from dbdyno.reading.limits import LISTED_MAX, LOADS_MAX, VARIANTS_MAX
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import Result
from dbdyno.text import compose

_STATUS = linear(
    r"\bset -[a-z]*e|pipefail|\$\?|PIPESTATUS|\|\|\s*(?:exit|continue|return|\{)|\bif\s+!?\s*sysbench"
)
_LOOP = linear(r"\b(?:for\s+\w+\s+in\b|while\b.{0,300}?\bdo\b)")
_DONE = linear(r"done\b")
# How far from a call the begin and the end of its loop may be.
_SCRIPT_LINES = 300
# A variable that takes a word of an output.
_TAKEN = linear(r"(?<!\w)(\w++)=(?:\$\(|`).{0,300}?(?:cut|awk|sed|grep)")

# What tables write in place of a result.
_ABSENT = linear(r"\|\s*(?:-+|–|—|x|✗|n/?a|fail\w*|error)\s*(?:\||$)", re.IGNORECASE)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at loops that call a benchmark and take numbers from its output.

    Catches numbers of the run before. A published script prints the variables of the previous load when a run
    has failed, because it neither resets them nor looks at the exit status.
    """
    yield from _cut(reading)
    yield from _missing(reading)
    calls = {call.first: call for call in reading.calls if call.phase == "run"}
    if not calls:
        return
    lines = _Lines(reading.document)
    for call in calls.values():
        begin, end = lines.loop(call)
        taken = lines.in_range(lines.taken, begin, end)
        if taken and not lines.in_range(lines.statuses, max(0, begin - 60), end):
            yield finding(
                reading,
                "R04",
                "warn",
                compose(
                    "the loop takes numbers from the output without looking at the exit status: after a run "
                    "that failed it prints those of the run before"
                ),
                (call.first, taken[0]),
                fix=compose("Empty the variables before each run, and stop at an exit status that is not 0"),
            )
            return


class _Lines:
    """The indexes of the lines of scripts that matter here, in rising order."""

    def __init__(self, document: Document) -> None:
        lines = document.lines
        self.loops = [index for index, text in lines() if "do" in text or "for" in text if _LOOP.search(text)]
        self.ends = [index for index, text in lines() if text.startswith("done") and _DONE.match(text)]
        self.taken = [index for index, text in lines() if "=" in text and _TAKEN.search(text)]
        self.statuses = [index for index, text in lines() if _STATUS.search(text)]

    def loop(self, call: Call) -> tuple[int, int]:
        """The first and the last line of the loop around a call; (0, -1) without one."""
        above = bisect_right(self.loops, call.first) - 1
        below = bisect_left(self.ends, call.last)
        if above < 0 or below == len(self.ends):
            return 0, -1
        begin, end = self.loops[above], self.ends[below]
        is_near = call.first - begin < _SCRIPT_LINES and end - call.last < _SCRIPT_LINES
        return (begin, end) if is_near else (0, -1)

    @staticmethod
    def in_range(indexes: Sequence[int], first: int, last: int) -> Sequence[int]:
        """Those of the indexes from the first to the last line."""
        return indexes[bisect_left(indexes, first) : bisect_right(indexes, last)]


def _cut(reading: Reading) -> Iterator[Finding]:
    """Intervals of a run without the summary that ends it."""
    lines = [index for index, text in reading.document.lines() if INTERVAL.search(text)]
    ends = [one.first for one in reading.results if one.tool.startswith("sysbench")]
    is_ended = bool(lines) and any(
        "transactions:" in text for text in reading.document.texts[lines[-1] + 1 :]
    )
    if lines and not is_ended and not any(end > lines[-1] for end in ends):
        yield finding(
            reading,
            "R04",
            "warn",
            compose("the output ends with an interval, without the summary of the run"),
            [lines[-1]],
            fix=compose("Show the whole output: the run may have failed"),
        )


def _missing(reading: Reading) -> Iterator[Finding]:
    """Loads of a table that one variant has no result for."""
    tables: dict[int, list[Result]] = {}
    for one in reading.results:
        if one.table >= 0 and one.label:
            tables.setdefault(one.table, []).append(one)
    for in_table in tables.values():
        by_label: dict[str, list[Result]] = {}
        by_load: dict[int | None, list[Result]] = {}
        for one in in_table:
            by_label.setdefault(one.label, []).append(one)
            by_load.setdefault(one.connections, []).append(one)
        for label, own in itertools.islice(by_label.items(), VARIANTS_MAX):
            loads = by_load.keys() - {one.connections for one in own}
            missing = sorted(
                load
                for load in itertools.islice(loads, LOADS_MAX)
                if load is not None and _is_absent(reading, own, by_load[load])
            )
            if missing:
                yield finding(
                    reading,
                    "R04",
                    "note",
                    compose(
                        "no result of {label} at {loads} connections",
                        label=label,
                        loads=", ".join(map(str, missing[:LISTED_MAX])),
                    ),
                    (one.first for one in own),
                )


def _is_absent(reading: Reading, own: Sequence[Result], others: Sequence[Result]) -> bool:
    """Whether the row of a load, or that of a variant if each has one, has a cell without a result."""
    lines = {one.first for one in others}
    rows = lines if len(lines) == 1 else {one.first for one in own}
    return any(_ABSENT.search(reading.document.texts[index]) for index in rows)


CHECK = DocumentCheck("R04", find)
