"""The report that pgbench prints after a run, of version 8.4 to 18.

::

    transaction type: <builtin: TPC-B (sort of)>
    scaling factor: 100
    number of clients: 32
    number of threads: 8
    duration: 60 s
    number of transactions actually processed: 123456
    number of failed transactions: 0 (0.000%)
    latency average = 15.844 ms                               before 9.6: only with --rate
    latency stddev = 2.715 ms
    tps = 618.764555 (without initial connection time)        before 14: one line including and one excluding
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.reading.document import Document
from dbdyno.reading.limits import decimal, linear, whole
from dbdyno.reading.result import Figure, Result, keep

_VERSION = linear(r"pgbench \((?:PostgreSQL\) )?(\d[\d.]*\w*)")
_TYPE = linear(r"transaction type:(.{0,200})")
_CLIENTS = linear(r"number of clients:\s*(\d+)")
_LINES = tuple(
    (name, linear(pattern, re.IGNORECASE))
    for name, pattern in (
        ("elapsed_s", r"duration:\s*([\d.]+) s"),
        ("transactions", r"transactions (?:actually )?processed:\**\s*(\d[\d,]*)"),
        ("errors", r"number of failed transactions:\s*(\d+)"),
        ("mean_ms", r"latency average[ :=*]+([\d.,]+) ms"),
        ("stddev_ms", r"latency stddev[ :=*]+([\d.,]+) ms"),
        # With and without the time for connecting: the first agrees with transactions and duration.
        ("tps_without_connecting", r"tps(?: = ([\d.,]+) \(excluding| \(excluding[^)]*\):\**\s*([\d.,]+))"),
        ("tps", r"tps(?: \(including[^)]*\):\**\s*| ?[=:]\**\s*)([\d.,]+)"),
    )
)
_HINT = re.compile(r"tps|pgbench|progress:|transaction|number of clients:|latency", re.IGNORECASE)
_OTHER = linear(
    r"(?:scaling factor|query mode|number of threads|number of transactions (?:per "
    r"client|above|skipped)|maximum number of tries|"
    r"initial connection time|partition|rate limit|number of .*retried|statement latencies)"
)
_PROGRESS = linear(r"progress: [\d.]+ s, ([\d.]+) tps")
# What a report begins with if its first lines were left out.
_FIRST = linear(
    r"(?<![\s*\->`])[\s*\->`]*+(?:tps ?[=:(]|latency average|transactions processed|"
    r"number of transactions actually)",
    re.IGNORECASE,
)
# Where the figures of each script begin, which are parts of the run's.
_SCRIPT = linear(r"(?<!\s)\s*+SQL script \d+:")
_OF_SCRIPT = linear(r"(?<!\s)\s*+(?:-\s|\d+\.\d+\s|statement latencies|$)")
_RATE_LIMIT = linear(r"rate limit schedule lag|number of transactions skipped")
# Lines without anything of a report, after which it has ended.
_GAP_MAX = 4


def find(document: Document) -> Iterator[Result]:
    """The reports in a document."""
    version = ""
    intervals: list[float] = []
    index = 0
    is_of_script = False
    while index < len(document.texts):
        text = document.texts[index]
        is_of_script = bool(_SCRIPT.match(text)) or (is_of_script and bool(_OF_SCRIPT.match(text)))
        if is_of_script:
            index += 1
            continue
        # Most lines have none of the words of a report.
        if not _HINT.search(text):
            index += 1
            continue
        if match := _VERSION.search(text):
            version = match[1]
        elif match := _PROGRESS.search(text):
            intervals.append(decimal(match[1]) or 0.0)
        elif _TYPE.search(text) or "number of clients:" in text or _FIRST.match(text):
            result = _report(document, index, version, tuple(intervals))
            if result is not None:
                yield result
                index = result.last
            intervals = []
        index += 1


def _report(document: Document, first: int, version: str, intervals: tuple[float, ...]) -> Result | None:
    figures: dict[str, Figure] = {}
    clients: int | None = None
    workload = ""
    last = first
    is_limited = False
    for index, text in document.lines(first):
        is_limited = is_limited or _RATE_LIMIT.search(text) is not None
        if (
            index - last > _GAP_MAX
            or _SCRIPT.match(text)
            or (index > first and (_TYPE.search(text) or _is_next(text, figures)))
        ):
            break
        if match := _TYPE.search(text):
            workload = _workload(match[1].strip())
        elif match := _CLIENTS.search(text):
            clients = whole(match[1])
        elif not _take(text, index, figures) and not _OTHER.search(text):
            continue
        last = index
    if "tps" not in figures and "tps_without_connecting" in figures:
        figures["tps"] = figures["tps_without_connecting"]
    if "tps" not in figures and "mean_ms" not in figures:
        return None
    return Result(
        f"pgbench {version}".strip(),
        first,
        last,
        clients,
        figures,
        workload,
        intervals=intervals,
        is_rate_limited=is_limited,
    )


def _is_next(text: str, figures: dict[str, Figure]) -> bool:
    """Whether a line has a figure that the report has already: it begins the next one."""
    names = [name for name, pattern in _LINES if pattern.search(text)]
    return bool(names) and names[0] in figures


def _take(text: str, index: int, figures: dict[str, Figure]) -> bool:
    """Adds the figure of a line; whether it has one."""
    for name, pattern in _LINES:
        if match := pattern.search(text):
            keep(figures, name, next(group for group in match.groups() if group), index)
            return True
    return False


def _workload(text: str) -> str:
    """The name of a transaction type: "TPC-B (sort of)" of "<builtin: TPC-B (sort of)>"."""
    is_builtin = text.startswith("<builtin: ") and text.endswith(">")
    return text.removeprefix("<builtin: ")[:-1] if is_builtin else text
