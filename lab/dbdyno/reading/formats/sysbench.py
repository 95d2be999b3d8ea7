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

A run with --report-checkpoints prints a summary at each of them, of the time since the one before, and the
last one at its end: all of them are parts of one result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dbdyno.reading.document import Document
from dbdyno.reading.limits import decimal, linear, whole
from dbdyno.reading.result import Figure, Result, keep

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
# A line without it has no figure of a summary.
_FIGURE = linear(r":\s*+\d")
_PERCENTILE = linear(rf"(?<!\d)(\d{{2,3}})(?:th|st|nd|rd)? percentile:{_NUMBER}")
_RATE = linear(r"\(\s*([\d.,]+) per sec\.\)")
_RATES = {"transactions": "tps", "queries": "qps"}
# The last lines of a summary: what follows belongs to something else.
_END = linear(r"execution time \(avg/stddev\)")
# A summary has about 35 lines; more without one of its lines end it.
_LINES_MAX = 12


_BEGIN = linear(r"Running the test with following options")
_RATE_LIMIT = linear(r"(?:Target transaction rate|rate limit): *[1-9]")
_CHECKPOINTS = linear(r"Report checkpoint\(s\) at")
_CHECKPOINT = linear(r"\[ *\d+s ?\] Checkpoint report")
# Figures of the parts of a run whose sums are those of the run.
_SUMS = ("reads", "writes", "others", "queries", "transactions", "errors", "reconnects", "sum_ms")


@dataclass
class _Run:
    """What was printed of one run so far."""

    threads: int | None = None
    intervals: list[float] = field(default_factory=list)
    is_rate_limited: bool = False
    # Whether it announced checkpoints, whether the next summary is that of one, and whether one was.
    has_checkpoints: bool = False
    is_checkpoint: bool = False
    has_marks: bool = False
    parts: list[dict[str, Figure]] = field(default_factory=list)
    first: int = -1
    last: int = -1

    def note(self, text: str) -> None:
        """Keeps what a line that is no summary says of the run."""
        # Most lines have none of these words.
        if "[" in text and (match := INTERVAL.search(text)):
            self.threads = whole(match[1])
            self.intervals.append(decimal(match[2]) or 0.0)
        elif "threads:" in text and (match := _THREADS.search(text)):
            self.threads, self.intervals = whole(match[1]), []
        elif "rate" in text and _RATE_LIMIT.search(text):
            self.is_rate_limited = True
        elif "heckpoint" in text:
            self.has_checkpoints = self.has_checkpoints or _CHECKPOINTS.search(text) is not None
            self.is_checkpoint = self.is_checkpoint or _CHECKPOINT.search(text) is not None

    def continues_with(self, figures: dict[str, Figure]) -> bool:
        """Whether a summary is of the same run as the parts before it: its time is counted from the start."""
        before, after = (entry.get("elapsed_s") for entry in (self.parts[-1], figures))
        return before is None or after is None or after.value > before.value

    def add(self, figures: dict[str, Figure], first: int, last: int) -> None:
        """Adds a summary."""
        self.first = first if self.first < 0 else self.first
        self.last = last
        self.parts.append(figures)
        self.has_marks = self.has_marks or self.is_checkpoint
        self.is_checkpoint = False

    def result(self, version: str) -> Iterator[Result]:
        """The result of the run, if it has one."""
        figures = self.parts[0] if len(self.parts) == 1 else _sum(self.parts)
        if figures.keys() & {"tps", "transactions", "mean_ms"}:
            intervals = self.intervals
            if not intervals and len(self.parts) > 1:
                intervals = [part["tps"].value for part in self.parts if "tps" in part]
            yield Result(
                f"sysbench {version}".strip(),
                self.first,
                self.last,
                self.threads,
                figures,
                intervals=tuple(intervals),
                is_rate_limited=self.is_rate_limited,
            )


def find(document: Document) -> Iterator[Result]:
    """The runs in a document."""
    run = _Run()
    version = ""
    index = 0
    while index < len(document.texts):
        text = document.texts[index]
        if ("statistics" not in text and "performed" not in text) or not _START.search(text):
            if run.parts and "unning" in text and _BEGIN.search(text):
                # The run before ended without a last summary.
                yield from run.result(version)
                run = _Run()
            if "sysbench" in text and (match := _VERSION.search(text)):
                version = match[1]
            run.note(text)
            index += 1
            continue
        figures, last = _summary(document, index)
        if run.parts and not run.continues_with(figures):
            yield from run.result(version)
            run = _Run(threads=run.threads, has_checkpoints=run.has_checkpoints)
        is_marked = run.is_checkpoint
        run.add(figures, index, last)
        # Without their own lines, announced checkpoints end where the next run begins.
        if not is_marked and (run.has_marks or not run.has_checkpoints):
            yield from run.result(version)
            run = _Run()
        index = last + 1
    if run.parts:
        yield from run.result(version)


def _sum(parts: Sequence[dict[str, Figure]]) -> dict[str, Figure]:
    """The figures of a run of several parts. A percentile of the whole is known only if all parts have the
    same.
    """
    names = [name for name in parts[-1] if all(name in part for part in parts)]
    values = {name: [part[name].value for part in parts] for name in names}
    whole_run: dict[str, float] = {}
    for name, of_parts in values.items():
        if name in _SUMS:
            whole_run[name] = sum(of_parts)
        elif name in ("elapsed_s", "max_ms"):
            whole_run[name] = max(of_parts)
        elif name == "min_ms":
            whole_run[name] = min(of_parts)
        elif len(set(of_parts)) == 1:
            whole_run[name] = of_parts[0]
    elapsed_s = whole_run.get("elapsed_s", 0.0)
    for count, rate in _RATES.items():
        if rate in values:
            is_counted = count in whole_run and elapsed_s > 0
            whole_run[rate] = (
                whole_run[count] / elapsed_s if is_counted else sum(values[rate]) / len(values[rate])
            )
    if "mean_ms" in values and whole_run.get("transactions") and "sum_ms" in whole_run:
        whole_run["mean_ms"] = whole_run["sum_ms"] / whole_run["transactions"]
    return {name: Figure(value, parts[-1][name].index) for name, value in whole_run.items()}


def _summary(document: Document, start: int) -> tuple[dict[str, Figure], int]:
    """The figures of the summary that begins at an index, and the index of its last line."""
    figures: dict[str, Figure] = {}
    last = start
    for index, text in document.lines(start):
        begins_again = index > start and "transactions" in figures and _START.search(text)
        if index - last > _LINES_MAX or begins_again:
            break
        if _THREADS.search(text) or _CHECKPOINT.search(text):
            break
        if _take(text, index, figures):
            last = index
        if _END.search(text):
            last = index
            break
    return figures, last


def _take(text: str, index: int, figures: dict[str, Figure]) -> bool:
    """Adds the figures of a line; whether it has any. The first of a name counts."""
    if not _FIGURE.search(text):
        return False
    if match := _PERCENTILE.search(text):
        keep(figures, f"p{match[1]}_ms", match[2], index)
        return True
    for name, pattern in _LINES:
        if match := pattern.search(text):
            keep(figures, name, match[1], index)
            if name in _RATES and (rate := _RATE.search(text)):
                keep(figures, _RATES[name], rate[1], index)
            return True
    return False
