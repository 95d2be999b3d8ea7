"""R03: checks the numbers of a trial against each other. A correct measurement satisfies four rules:

1. The intervals of a phase add up to its totals, and every scheduled transaction is accounted for. 2. The
number of statements is the number of transactions times the statements of one transaction. Transactions in
progress at the start or end of the measurement and retries cause small deviations. 3. In a closed loop
without pauses, throughput times mean latency is the number of connections (Little's law, 1961, Oper. Res.
9:383). 4. The measurement took the planned time.

In a load in slices every connection is busy at least while a slice counts, and at most from the resume to
the pause. Little's law then holds between these limits, and rule 4 for every slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

from dbdyno.measure.recording import Recording, ended_after
from dbdyno.store.records import Counts, PhaseTotals, Span
from dbdyno.text import compose, compose_count

# Maximum relative deviation of throughput times latency from the number of connections.
LITTLE_TOLERANCE = 0.03
# Maximum relative deviation of a phase from its planned length.
ELAPSED_TOLERANCE = 0.01


def find_contradictions(recording: Recording) -> list[str]:
    """A text for each violated rule; empty if the trial satisfies all."""
    return [*_sums(recording), *_statements(recording), *_little(recording), *_elapsed(recording)]


def _sums(recording: Recording) -> Iterator[str]:
    if recording.is_sliced:
        yield from _slice_sums(recording)
        return
    for name, totals in recording.phases.items():
        parts = [interval for interval in recording.intervals if interval["phase"] == name]
        for key in Counts.__annotations__:
            value = itemgetter(key)
            if (added := sum(map(value, parts))) != value(totals):
                yield compose(
                    "the intervals of {name} contain {added} {key}, its totals {value}",
                    name=name,
                    added=added,
                    key=key,
                    value=value(totals),
                )
        errors: Counter[str] = Counter()
        for part in parts:
            errors.update(part["errors"])
        if errors != Counter(totals["errors"]):
            yield compose(
                "the intervals of {name} contain {sum} errors, its totals other ones",
                name=name,
                sum=sum(errors.values()),
            )
        yield from _accounts(name, totals)
        yield from _latencies(name, totals)


def _slice_sums(recording: Recording) -> Iterator[str]:
    totals = recording.measure
    yield from _accounts("measure", totals)
    for part in recording.slices:
        yield from _latencies(compose("slice {slice}", slice=part["slice"]), part)
    ended = sum(part["guard_events"] + part["events"] + ended_after(part) for part in recording.slices)
    if ended != totals["events"]:
        yield compose(
            "the slices contain {ended} transactions, the totals {events}",
            ended=ended,
            events=totals["events"],
        )


def _latencies(name: str, totals: Span) -> Iterator[str]:
    counted = sum(count for _, count in totals["latency_us"])
    if counted != totals["events"]:
        yield compose(
            "{name} has {counted} latencies for {events} transactions",
            name=name,
            counted=counted,
            events=totals["events"],
        )


def _accounts(name: str, totals: PhaseTotals) -> Iterator[str]:
    """Whether every scheduled transaction is counted once: as done, failed, dropped or unfinished."""
    accounts = totals["accounting"]
    total = sum(accounts[key] for key in ("done", "failed", "dropped", "unfinished"))
    if total != accounts["due"]:
        yield compose(
            "{due} transactions were scheduled in {name}, but {total} are accounted for",
            due=accounts["due"],
            name=name,
            total=total,
        )
    cut_off = [count for _, count in (*totals.get("drained_us", ()), *totals.get("censored_us", ()))]
    left = accounts["dropped"] + accounts["unfinished"]
    if cut_off and sum(cut_off) != left:
        yield compose(
            "{name} has {left} dropped or unfinished transactions, but latencies of {sum}",
            name=name,
            left=left,
            sum=sum(cut_off),
        )


def _statements(recording: Recording) -> Iterator[str]:
    per_event = recording.statements
    measure = recording.measure
    if per_event == 0:
        return
    executed = measure["reads"] + measure["writes"] + measure["other"]
    expected = measure["events"] * per_event
    # A part of the statements of a transaction at the start or end is outside the measurement. Retried and
    # failed transactions add statements, among them ROLLBACK.
    extra = measure["retries"] + measure["accounting"]["failed"] + measure["reconnects"]
    allowed = recording.plan["load"]["connections"] * per_event + extra * (per_event + 1)
    if abs(executed - expected) > allowed:
        yield (
            compose(
                "{executed} statements for {events} transactions of {per_event} statements each "
                "(expected: {expected} ± {allowed})",
                executed=executed,
                events=measure["events"],
                per_event=per_event,
                expected=expected,
                allowed=allowed,
            )
        )


def _little(recording: Recording) -> Iterator[str]:
    measure = recording.measure
    if measure["accounting"]["failed"]:
        # Failed transactions have no latency.
        return
    if recording.is_sliced:
        yield from _little_in_slices(recording)
    if not recording.is_always_busy:
        # Latencies do not include pauses.
        return
    length_us = measure["end_us"] - measure["start_us"]
    connections = recording.plan["load"]["connections"]
    # The phase in which a transaction ends has its whole latency. So subtract the part before the
    # measurement, and add the time of transactions that were in progress at its end.
    warmup = recording.phases.get("warmup")
    before_us = warmup["accounting"]["unfinished_us"] if warmup else 0
    inside_us = measure["latency_sum_us"] - before_us + measure["accounting"]["unfinished_us"]
    busy = inside_us / length_us
    if abs(busy - connections) > connections * LITTLE_TOLERANCE:
        were = compose_count(connections, "was {number} connection", "were {number} connections")
        yield compose("throughput times mean latency is {busy:.2f}, but there {were}", busy=busy, were=were)


def _little_in_slices(recording: Recording) -> Iterator[str]:
    connections = recording.plan["load"]["connections"]
    least_us = connections * sum(entry["end_us"] - entry["start_us"] for entry in recording.slices)
    most_us = connections * sum(entry["paused_us"] - entry["resumed_us"] for entry in recording.slices)
    busy_us = recording.measure["latency_sum_us"]
    if not least_us * (1 - LITTLE_TOLERANCE) <= busy_us <= most_us * (1 + LITTLE_TOLERANCE):
        yield (
            compose_count(
                connections,
                "the transactions took {busy_us:.3f} s in total, but {number} connection was busy for "
                "{least_us:.3f} to {most_us:.3f} s",
                "the transactions took {busy_us:.3f} s in total, but {number} connections were busy for "
                "{least_us:.3f} to {most_us:.3f} s",
                busy_us=busy_us / 1e6,
                least_us=least_us / 1e6,
                most_us=most_us / 1e6,
            )
        )


def _elapsed(recording: Recording) -> Iterator[str]:
    if recording.is_sliced:
        yield from _slice_lengths(recording)
        return
    measure, planned_us = recording.measure, recording.plan["phases"]["measure_us"]
    elapsed_us = measure["end_us"] - measure["start_us"]
    if abs(elapsed_us - planned_us) > planned_us * ELAPSED_TOLERANCE:
        yield compose(
            "the measurement took {elapsed_us:.3f} s but {planned_us:.3f} s were planned",
            elapsed_us=elapsed_us / 1e6,
            planned_us=planned_us / 1e6,
        )


def _slice_lengths(recording: Recording) -> Iterator[str]:
    planned_us = recording.slice_us
    for part in recording.slices:
        length_us = part["end_us"] - part["resumed_us"]
        if planned_us and abs(length_us - planned_us) > planned_us * ELAPSED_TOLERANCE:
            took, planned = (compose("{us:.1f} ms", us=us / 1e3) for us in (length_us, planned_us))
            yield compose(
                "slice {slice} took {took} but {planned} were planned",
                slice=part["slice"],
                took=took,
                planned=planned,
            )
