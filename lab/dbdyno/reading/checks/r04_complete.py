"""R04: a run that failed must not yield numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.formats.sysbench import INTERVAL
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import Result
from dbdyno.text import compose

_STATUS = re.compile(
    r"\bset -[a-z]*e|pipefail|\$\?|PIPESTATUS|\|\|\s*(?:exit|continue|return|\{)|\bif\s+!?\s*sysbench"
)
_LOOP = re.compile(r"\b(?:for\s+\w+\s+in\b|while\b.*;?\s*do\b)")
_DONE = re.compile(r"done\b")
# How far from a call the begin and the end of its loop may be.
_SCRIPT_LINES = 300
# A variable that takes a word of an output.
_TAKEN = re.compile(r"(\w+)=(?:\$\(|`).*(?:cut|awk|sed|grep)")

# What tables write in place of a result.
_ABSENT = re.compile(r"\|\s*(?:-+|–|—|x|✗|n/?a|fail\w*|error)\s*(?:\||$)", re.IGNORECASE)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at loops that call a benchmark and take numbers from its output.

    Catches numbers of the run before. A published script prints the variables of the previous load when a run
    has failed, because it neither resets them nor looks at the exit status.
    """
    yield from _cut(reading)
    yield from _missing(reading)
    texts = reading.document.texts
    for call in reading.calls:
        above = range(call.first, max(-1, call.first - _SCRIPT_LINES), -1)
        below = range(call.last, min(len(texts), call.last + _SCRIPT_LINES))
        begin = next((index for index in above if _LOOP.search(texts[index])), None)
        end = next((index for index in below if _DONE.match(texts[index])), None)
        if begin is None or end is None or call.phase != "run":
            continue
        inside = texts[begin : end + 1]
        taken = [begin + at for at, text in enumerate(inside) if _TAKEN.search(text)]
        script = texts[max(0, begin - 60) : end + 1]
        if taken and not any(_STATUS.search(text) for text in script):
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


def _cut(reading: Reading) -> Iterator[Finding]:
    """Intervals of a run without the summary that ends it."""
    lines = [index for index, text in reading.document.lines() if INTERVAL.search(text)]
    ends = [one.first for one in reading.results if one.tool.startswith("sysbench")]
    if lines and not any(end > lines[-1] for end in ends):
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
    tables = {one.table for one in reading.results if one.table >= 0}
    for table in tables:
        in_table = [one for one in reading.results if one.table == table and one.label]
        loads = {one.connections for one in in_table}
        for label in dict.fromkeys(one.label for one in in_table):
            own = [one for one in in_table if one.label == label]
            missing = sorted(
                load
                for load in loads - {one.connections for one in own}
                if load is not None
                and _is_absent(reading, own, [one for one in in_table if one.connections == load])
            )
            if missing:
                yield finding(
                    reading,
                    "R04",
                    "note",
                    compose(
                        "no result of {label} at {loads} connections",
                        label=label,
                        loads=", ".join(map(str, missing)),
                    ),
                    (one.first for one in own),
                )


def _is_absent(reading: Reading, own: Sequence[Result], others: Sequence[Result]) -> bool:
    """Whether the row of a load, or that of a variant if each has one, has a cell without a result."""
    lines = {one.first for one in others}
    rows = lines if len(lines) == 1 else {one.first for one in own}
    return any(_ABSENT.search(reading.document.texts[index]) for index in rows)


CHECK = DocumentCheck("R04", find)
