"""Whether the results of a document are complete, without errors, steady, and agree with each other."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.reading.call import Call
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.document import Document
from dbdyno.reading.formats.sysbench import INTERVAL
from dbdyno.reading.limits import LISTED_MAX, LOADS_MAX, VARIANTS_MAX, linear
from dbdyno.reading.result import Result
from dbdyno.result_text import connections_count
from dbdyno.text import compose

_PER_1000_MAX = 1.0
# What sysbench, pgbench and HammerDB print of failed transactions, and the rate of errors in an interval.
_ERROR_LINES = linear(
    r"^\s*(?:\S*/)?(?:mysqlslap|mariadb-slap|pgbench|sysbench): .*(?:[Ee]rror|FATAL|fatal)|"
    r"^\s*(?:FATAL|ALERT|ERROR|Error)\b.*|\berr/s:? [1-9]|could not serialize access|Deadlock found"
)


@check("D03")
def errors(document: Document, results: Sequence[Result], calls: Sequence[Call]) -> Iterator[Mistake]:
    """Divides errors by transactions, and looks for errors that the tool printed.

    Catches throughput of which a part was lost, such as deadlocks that sysbench retries silently.

    Rule: errors are work that was not done.
    """
    for result in results:
        errors, transactions = result.value("errors"), result.value("transactions")
        if errors and transactions and 1000 * errors / transactions > _PER_1000_MAX:
            yield Mistake(
                "warn",
                compose(
                    "{errors:,.0f} errors in {transactions:,.0f} transactions: {share:.1f} of 1000",
                    errors=errors,
                    transactions=transactions,
                    share=1000 * errors / transactions,
                ),
                [result.figures["errors"].index],
                fix=compose("Name the errors, and compare their number between the variants"),
            )
    occupied = {index for call in calls for index in range(call.first, call.last + 1)}
    printed = [
        index for index, text in document.lines() if index not in occupied and _ERROR_LINES.search(text)
    ]
    if printed:
        yield Mistake("warn", compose("the tool printed errors"), printed[:20])


_INTERVALS_MIN = 6
# Means of the first and the last third that differ by more than this.
_CHANGE = 0.2


@check("R01")
def steady(results: Sequence[Result]) -> Iterator[Mistake]:
    """Compares the first with the last third of the intervals that the tool printed.

    Catches runs that were still warming up, or whose disk or cache was exhausted on the way.

    Rule: the mean of a run that goes on changing is not the server's throughput.
    """
    for result in results:
        values = result.intervals
        third = len(values) // 3
        if len(values) < _INTERVALS_MIN or not sum(values[:third]):
            continue
        change = (sum(values[-third:]) / third) / (sum(values[:third]) / third) - 1
        if abs(change) > _CHANGE:
            yield Mistake(
                "warn",
                compose(
                    "throughput of the last third of the run differs from the first third by {change:+.0f} %",
                    change=100 * change,
                ),
                [result.first],
                fix=compose("Warm up longer, and measure until the intervals no longer change"),
            )


# sysbench 1.0 and later end after 10 s if the command names no time; 0.4 and 0.5 end after 10,000 events.
_DEFAULT_S = 10
# Runs end late by less than this, except with very slow transactions.
_LATE_S = 5.0
# Connections that Little's law gives, as a share of those that the output names: threads wait a little
# between events.
_LITTLE = (0.85, 1.03)
_COUNT_PERCENT = 2.0
# The law holds for runs that are much longer than a transaction.
_MEAN_SHARE = 0.1
# Sums of few transactions are rounded.
_COUNT_MIN = 100


@check("R03")
def arithmetic(
    results: Sequence[Result], calls: Sequence[Call], loads: Mapping[int, int]
) -> Iterator[Mistake]:
    """Checks transactions = rate x time, connections = rate x latency (Little's law), and the time with the
    command's.

    Catches outputs of other commands than the ones shown, and figures of different runs in one row. A
    published benchmark shows a command without a time, which would end after 10 s; all outputs have 30 s.

    Rule: the numbers of a result must agree with each other and with the command.
    """
    yield from _times(results, calls)
    yield from _connections(results, calls, loads)
    is_closed = not any({"rate", "tx-rate"} & call.options.keys() for call in calls)
    for result in results:
        yield from _counts(result)
        if is_closed and not result.is_rate_limited:
            yield from _little(result)


def _times(results: Sequence[Result], calls: Sequence[Call]) -> Iterator[Mistake]:
    """Results that took another time than any of the commands would."""
    runs = [call for call in calls if call.tool == "sysbench" and call.phase == "run"]
    timed = [
        result
        for result in results
        if result.value("elapsed_s") and result.tool.startswith(("sysbench", "table"))
    ]
    if not runs or not timed or any("config-file" in call.options for call in runs):
        return
    is_old = any(entry.tool.startswith("sysbench 0") for entry in timed) or any(
        "max-time" in call.options for call in runs
    )
    planned = {_planned_s(call, is_old=is_old) for call in runs}
    if None in planned:
        return
    times = sorted(time or 0 for time in planned)
    # A limit of events ends a run before its time.
    is_counted = any(call.number("events", "max-requests") for call in runs)
    wrong = [entry for entry in timed if not _is_planned(entry, times, is_counted=is_counted)]
    if wrong:
        yield Mistake(
            "stop",
            compose(
                "the outputs have {elapsed:.0f} s, and the command would run {planned} s: it is not the "
                "command of these results",
                elapsed=_elapsed(wrong[0]),
                planned=" or ".join(map(str, sorted(map(str, planned))[:LISTED_MAX])),
            ),
            (runs[0].first, *(entry.figures["elapsed_s"].index for entry in wrong)),
        )


def _is_planned(result: Result, times: Sequence[int], *, is_counted: bool) -> bool:
    """Whether a run that was planned for one of these times would have taken the seconds of a result: its
    last transactions end after the time.
    """
    seconds = _elapsed(result)
    slowest_s = max(result.value(name) or 0.0 for name in ("max_ms", "p99_ms", "p95_ms", "mean_ms")) / 1000
    place = bisect_left(times, seconds - max(_LATE_S, slowest_s))
    return place < len(times) and (is_counted or times[place] <= seconds + 0.5)


def _planned_s(call: Call, *, is_old: bool) -> int | None:
    """The seconds that a call runs; None if the document does not tell."""
    if {"time", "max-time"} & call.options.keys():
        return call.number("time", "max-time")
    return None if is_old else _DEFAULT_S


def _connections(
    results: Sequence[Result], calls: Sequence[Call], loads: Mapping[int, int]
) -> Iterator[Mistake]:
    """Results with another number of connections than any of the commands and sentences."""
    further_loads = [
        result
        for result in results
        if result.connections and result.table < 0 and result.connections not in loads
    ]
    runs = [call for call in calls if call.phase == "run"]
    if further_loads and runs and all(call.connections for call in runs):
        yield Mistake(
            "warn",
            compose(
                "the output has {connections}, and the command {planned}",
                connections=connections_count(further_loads[0].connections or 0),
                planned=", ".join(map(str, sorted({call.connections or 0 for call in runs})[:LISTED_MAX])),
            ),
            (runs[0].first, *(entry.first for entry in further_loads)),
        )


def _rounding(value: float) -> float:
    """How far a printed figure may be from what was measured: half a unit of its last digit."""
    digits = f"{value:.6f}".rstrip("0").partition(".")[2]
    return 0.5 * 10.0 ** -len(digits)


def _elapsed(result: Result) -> float:
    """The seconds of a result that has them."""
    value = result.value("elapsed_s")
    assert value is not None, "the caller looked"
    return value


def _counts(result: Result) -> Iterator[Mistake]:
    transactions, tps, time = (result.value(name) for name in ("transactions", "tps", "elapsed_s"))
    # pgbench leaves out the time for connecting, which its duration includes.
    if not (transactions and tps and time) or transactions < _COUNT_MIN or result.tool.startswith("pgbench"):
        return
    expected = tps * time
    rounded = _rounding(tps) / tps + _rounding(time) / time
    if abs(transactions / expected - 1) > _COUNT_PERCENT / 100 + rounded:
        yield Mistake(
            "stop",
            compose(
                "{tps:g} transactions/s over {time:g} s are {expected:,.0f} transactions, and "
                "{transactions:,.0f} are shown",
                tps=tps,
                time=time,
                expected=expected,
                transactions=transactions,
            ),
            (result.figures["transactions"].index, result.figures["tps"].index),
        )


def _little(result: Result) -> Iterator[Mistake]:
    tps, mean = result.value("tps"), result.value("mean_ms")
    if not (tps and mean and result.connections) or result.tool.startswith("pgbench"):
        return
    if mean > _MEAN_SHARE * 1000 * (result.value("elapsed_s") or mean):
        # A few transactions for each connection: most of the time some of them have ended.
        return
    share = tps * mean / 1000 / result.connections
    # A latency of 0.03 ms may be one of 0.025 ms.
    rounded = _rounding(mean) / mean + _rounding(tps) / tps
    low, high = _LITTLE[0] - rounded, _LITTLE[1] + rounded
    if low <= share <= high or (mean < 1 and share < high):
        return
    yield Mistake(
        "warn" if share < low else "stop",
        compose(
            "{tps:g} transactions/s of {mean:g} ms keep {busy:.1f} connections busy, and there are "
            "{connections}",
            tps=tps,
            mean=mean,
            busy=tps * mean / 1000,
            connections=result.connections,
        ),
        (result.figures["tps"].index, result.figures["mean_ms"].index),
    )


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


@check("R04")
def complete(document: Document, results: Sequence[Result], calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks at loops that call a benchmark and take numbers from its output.

    Catches numbers of the run before. A published script prints the variables of the previous load when a run
    has failed, because it neither resets them nor looks at the exit status.

    Rule: a run that failed must not yield numbers.
    """
    yield from _cut(document, results)
    yield from _missing(document, results)
    runs = {call.first: call for call in calls if call.phase == "run"}
    if not runs:
        return
    lines = _Lines(document)
    for call in runs.values():
        begin, end = lines.loop(call)
        taken = lines.in_range(lines.taken, begin, end)
        if taken and not lines.in_range(lines.statuses, max(0, begin - 60), end):
            yield Mistake(
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


def _cut(document: Document, results: Sequence[Result]) -> Iterator[Mistake]:
    """Intervals of a run without the summary that ends it."""
    lines = [index for index, text in document.lines() if INTERVAL.search(text)]
    ends = [result.first for result in results if result.tool.startswith("sysbench")]
    is_ended = bool(lines) and any("transactions:" in text for text in document.texts[lines[-1] + 1 :])
    if lines and not is_ended and not any(end > lines[-1] for end in ends):
        yield Mistake(
            "warn",
            compose("the output ends with an interval, without the summary of the run"),
            [lines[-1]],
            fix=compose("Show the whole output: the run may have failed"),
        )


def _missing(document: Document, results: Sequence[Result]) -> Iterator[Mistake]:
    """Loads of a table that one variant has no result for."""
    tables: dict[int, list[Result]] = {}
    for result in results:
        if result.table >= 0 and result.label:
            tables.setdefault(result.table, []).append(result)
    for in_table in tables.values():
        by_label: dict[str, list[Result]] = {}
        by_load: dict[int | None, list[Result]] = {}
        for result in in_table:
            by_label.setdefault(result.label, []).append(result)
            by_load.setdefault(result.connections, []).append(result)
        for label, of_label in itertools.islice(by_label.items(), VARIANTS_MAX):
            loads = by_load.keys() - {entry.connections for entry in of_label}
            missing = sorted(
                load
                for load in itertools.islice(loads, LOADS_MAX)
                if load is not None and _is_absent(document, of_label, by_load[load])
            )
            if missing:
                yield Mistake(
                    "note",
                    compose(
                        "no result of {label} at connections = {loads}",
                        label=label,
                        loads=", ".join(map(str, missing[:LISTED_MAX])),
                    ),
                    (entry.first for entry in of_label),
                )


def _is_absent(document: Document, results: Sequence[Result], others: Sequence[Result]) -> bool:
    """Whether the row of a load, or that of a variant if each has one, has a cell without a result."""
    lines = {entry.first for entry in others}
    rows = lines if len(lines) == 1 else {entry.first for entry in results}
    return any(_ABSENT.search(document.texts[index]) for index in rows)
