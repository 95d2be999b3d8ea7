"""R03: the numbers of a result must agree with each other and with the command."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.limits import LISTED_MAX
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import Result
from dbdyno.text import compose

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


def find(reading: Reading) -> Iterator[Finding]:
    """Checks transactions = rate x time, connections = rate x latency (Little's law), and the time with the
    command's.

    Catches outputs of other commands than the ones shown, and figures of different runs in one row. A
    published benchmark shows a command without a time, which would end after 10 s; all outputs have 30 s.
    """
    yield from _times(reading)
    yield from _connections(reading)
    is_closed = not any({"rate", "tx-rate"} & call.options.keys() for call in reading.calls)
    for result in reading.results:
        yield from _counts(reading, result)
        if is_closed and not result.is_rate_limited:
            yield from _little(reading, result)


def _times(reading: Reading) -> Iterator[Finding]:
    """Results that took another time than any of the commands would."""
    runs = [call for call in reading.calls if call.tool == "sysbench" and call.phase == "run"]
    timed = [
        one
        for one in reading.results
        if one.value("elapsed_s") and one.tool.startswith(("sysbench", "table"))
    ]
    if not runs or not timed or any("config-file" in call.options for call in runs):
        return
    is_old = any(one.tool.startswith("sysbench 0") for one in timed) or any(
        "max-time" in call.options for call in runs
    )
    planned = {_planned_s(call, is_old=is_old) for call in runs}
    if None in planned:
        return
    times = sorted(time or 0 for time in planned)
    # A limit of events ends a run before its time.
    is_counted = any(call.number("events", "max-requests") for call in runs)
    wrong = [one for one in timed if not _is_planned(one, times, is_counted=is_counted)]
    if wrong:
        yield finding(
            reading,
            "R03",
            "stop",
            compose(
                "the outputs have {elapsed:.0f} s, and the command would run {planned} s: it is not the "
                "command of these results",
                elapsed=elapsed(wrong[0]),
                planned=" or ".join(map(str, sorted(map(str, planned))[:LISTED_MAX])),
            ),
            (runs[0].first, *(one.figures["elapsed_s"].index for one in wrong)),
        )


def _is_planned(result: Result, times: Sequence[int], *, is_counted: bool) -> bool:
    """Whether a run that was planned for one of these times would have taken the seconds of a result: its
    last transactions end after the time.
    """
    seconds = elapsed(result)
    slowest_s = max(result.value(name) or 0.0 for name in ("max_ms", "p99_ms", "p95_ms", "mean_ms")) / 1000
    place = bisect_left(times, seconds - max(_LATE_S, slowest_s))
    return place < len(times) and (is_counted or times[place] <= seconds + 0.5)


def _planned_s(call: Call, *, is_old: bool) -> int | None:
    """The seconds that a call runs; None if the document does not tell."""
    if {"time", "max-time"} & call.options.keys():
        return call.number("time", "max-time")
    return None if is_old else _DEFAULT_S


def _connections(reading: Reading) -> Iterator[Finding]:
    """Results with another number of connections than any of the commands and sentences."""
    other = [
        one
        for one in reading.results
        if one.connections and one.table < 0 and one.connections not in reading.loads
    ]
    calls = [call for call in reading.calls if call.phase == "run"]
    if other and calls and all(call.connections for call in calls):
        yield finding(
            reading,
            "R03",
            "warn",
            compose(
                "the output has {connections} connections, and the command {planned}",
                connections=other[0].connections,
                planned=", ".join(map(str, sorted({call.connections or 0 for call in calls})[:LISTED_MAX])),
            ),
            (calls[0].first, *(one.first for one in other)),
        )


def _rounding(value: float) -> float:
    """How far a printed figure may be from what was measured: half a unit of its last digit."""
    digits = f"{value:.6f}".rstrip("0").partition(".")[2]
    return 0.5 * 10.0 ** -len(digits)


def elapsed(result: Result) -> float:
    """The seconds of a result that has them."""
    value = result.value("elapsed_s")
    assert value is not None, "the caller looked"
    return value


def _counts(reading: Reading, result: Result) -> Iterator[Finding]:
    transactions, tps, time = (result.value(name) for name in ("transactions", "tps", "elapsed_s"))
    # pgbench leaves out the time for connecting, which its duration includes.
    if not (transactions and tps and time) or transactions < _COUNT_MIN or result.tool.startswith("pgbench"):
        return
    expected = tps * time
    rounded = _rounding(tps) / tps + _rounding(time) / time
    if abs(transactions / expected - 1) > _COUNT_PERCENT / 100 + rounded:
        yield finding(
            reading,
            "R03",
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


def _little(reading: Reading, result: Result) -> Iterator[Finding]:
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
    yield finding(
        reading,
        "R03",
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


CHECK = DocumentCheck("R03", find)
