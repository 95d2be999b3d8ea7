"""The summary that sysbench prints after a run, of versions 0.4 to 1.1, and of scripts that use it, such as
tpcc.lua.

::

    Number of threads: 10                     before the run
    SQL statistics:                           0.4: OLTP test statistics:
        queries performed:
            read:                   79170
        transactions:               5655   (188.17 per sec.)
        ignored errors:             0      (0.00 per sec.)     0.4: deadlocks:
    Throughput:                               1.0: General statistics:
        time elapsed:               30.0527s  1.0: total time:
    Latency (ms):                             0.4: per-request statistics:
             avg:                   53.10     0.4: avg:  53.10ms
             95th percentile:       71.83     0.4: approx.  95 percentile:  71.83ms
"""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.reading.document import Document
from dbdyno.reading.formats.format import Format
from dbdyno.reading.patterns import decimal, linear, whole
from dbdyno.reading.result import Figure, Result

_THREADS = linear(r"Number of threads:\s*(\d+)")
_VERSION = linear(r"sysbench (\d[\w.\-]*)(?: \(|:|$)")
_START = linear(r"(?:SQL statistics|OLTP test statistics):?\s*$|queries performed:\s*$")
_NUMBER = r"\s*+(\d[\d,]{0,24}+(?:\.\d{1,24}+)?)"
# Name, pattern: the first group is the count or the value, the second a rate per second.
_LINES = tuple(
    (name, linear(pattern))
    for name, pattern in (
        ("reads", rf"\bread:{_NUMBER}"),
        ("writes", rf"\bwrite:{_NUMBER}"),
        ("others", rf"\bother:{_NUMBER}"),
        ("queries", rf"\b(?:read/write requests|queries):{_NUMBER}"),
        ("transactions", rf"\btransactions:{_NUMBER}"),
        ("errors", rf"\b(?:ignored errors|deadlocks):{_NUMBER}"),
        ("reconnects", rf"\breconnects:{_NUMBER}"),
        ("elapsed_s", rf"\b(?:total time|time elapsed):{_NUMBER}\s*s"),
        ("min_ms", rf"\bmin:{_NUMBER}"),
        ("mean_ms", rf"\bavg:{_NUMBER}"),
        ("max_ms", rf"\bmax:{_NUMBER}"),
        ("sum_ms", rf"\bsum:{_NUMBER}"),
    )
)
# What is printed during the run, of 0.5 ("[  10s] threads: 64, tps: 123.00, …") and 1.0 ("[ 10s ] thds: 64
# tps: …").
INTERVAL = linear(r"\[ *\d+s ?\] (?:thds|threads): (\d+),? (?:tps|eps): ([\d.]+)")
_PERCENTILE = linear(rf"(?<!\d)(\d{{2,3}})(?:th|st|nd|rd)? percentile:{_NUMBER}")
_RATE = linear(r"\(\s*([\d.,]+) per sec\.\)")
_RATES = {"transactions": "tps", "queries": "qps"}
# The last lines of a summary: what follows belongs to something else.
_END = linear(r"execution time \(avg/stddev\)")
# A summary has about 35 lines; more without one of its lines end it.
_LINES_MAX = 12


def find(document: Document) -> Iterator[Result]:
    """The summaries in a document."""
    threads: int | None = None
    version = ""
    intervals: list[float] = []
    index = 0
    while index < len(document.texts):
        text = document.texts[index]
        # Most lines have none of these words.
        if "[" in text and (match := INTERVAL.search(text)):
            threads = whole(match[1])
            intervals.append(decimal(match[2]) or 0.0)
        elif "threads:" in text and (match := _THREADS.search(text)):
            threads, intervals = whole(match[1]), []
        elif "sysbench" in text and (match := _VERSION.search(text)):
            version = match[1]
        elif ("statistics" in text or "performed" in text) and _START.search(text):
            figures, last = _summary(document, index)
            if figures.keys() & {"tps", "transactions", "mean_ms"}:
                tool = f"sysbench {version}".strip()
                yield Result(tool, index, last, threads, figures, intervals=tuple(intervals))
            threads, intervals, index = None, [], last
        index += 1


def _summary(document: Document, start: int) -> tuple[dict[str, Figure], int]:
    """The figures of the summary that begins at an index, and the index of its last line."""
    figures: dict[str, Figure] = {}
    last = start
    for index, text in document.lines(start):
        if index - last > _LINES_MAX or (index > start and _begins_again(text, figures)):
            break
        if _THREADS.search(text):
            break
        if _take(text, index, figures):
            last = index
        if _END.search(text):
            last = index
            break
    return figures, last


def _begins_again(text: str, figures: dict[str, Figure]) -> bool:
    """Whether a line begins the next summary."""
    return _START.search(text) is not None and "transactions" in figures


def _take(text: str, index: int, figures: dict[str, Figure]) -> bool:
    """Adds the figures of a line; whether it has any. The first of a name counts."""
    if match := _PERCENTILE.search(text):
        _keep(figures, f"p{match[1]}_ms", match[2], index)
        return True
    for name, pattern in _LINES:
        if match := pattern.search(text):
            _keep(figures, name, match[1], index)
            if name in _RATES and (rate := _RATE.search(text)):
                _keep(figures, _RATES[name], rate[1], index)
            return True
    return False


def _keep(figures: dict[str, Figure], name: str, number: str, index: int) -> None:
    """Adds a figure, unless it is no number or the summary has it already."""
    if (value := decimal(number)) is not None:
        figures.setdefault(name, Figure(value, index))


FORMAT = Format("sysbench", find)
