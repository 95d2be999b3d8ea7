"""R03: does a trial's arithmetic hold? Four identities that no sound measurement breaks.

1. The intervals of a phase add up to its totals, and what was due is accounted for.
2. Statements are transactions times what one transaction holds, save what was under way at the edges or
   retried.
3. In a closed loop without pauses throughput times mean latency is the number of connections (Little
   1961, Oper. Res. 9:383).
4. The measurement took the time that was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.judge.recording import Recording

# Share by which throughput times latency may miss the number of connections.
LITTLE_TOLERANCE = 0.03
# Share by which a phase may miss its planned length.
ELAPSED_TOLERANCE = 0.01

_SUMS = (
    "events",
    "reads",
    "writes",
    "other",
    "rows",
    "bytes",
    "retries",
    "reconnects",
    "late",
    "dropped",
    "row_count_mismatches",
)


def faults(recording: Recording) -> list[str]:
    """The identities this recording breaks, each with both sides of it; empty when all hold."""
    return [*_sums(recording), *_statements(recording), *_little(recording), *_elapsed(recording)]


def _sums(recording: Recording) -> Iterator[str]:
    phases: Mapping[str, Mapping[str, Any]] = (recording.end or {})["phases"]
    for name, totals in phases.items():
        parts = [interval for interval in recording.intervals if interval["phase"] == name]
        for key in _SUMS:
            added = sum(int(part[key]) for part in parts)
            if added != totals[key]:
                yield f"the intervals of {name} hold {added} {key} and its totals {totals[key]}"
        errors: Counter[str] = Counter()
        for part in parts:
            errors.update(part["errors"])
        if errors != Counter(totals["errors"]):
            yield f"the intervals of {name} hold {sum(errors.values())} errors and its totals others"
        yield from _accounts(name, totals)
        counted = sum(count for _, count in totals["latency_us"])
        if counted != totals["events"]:
            yield f"{name} has {counted} latencies for {totals['events']} transactions"


def _accounts(name: str, totals: Mapping[str, Any]) -> Iterator[str]:
    """Every transaction that was due is done, given up, dropped or unfinished, and none of them twice."""
    accounts = totals["accounting"]
    total = sum(int(accounts[key]) for key in ("done", "failed", "dropped", "unfinished"))
    if total != accounts["due"]:
        yield f"{accounts['due']} transactions were due in {name}, and {total} are accounted for"
    cut_off = [count for key in ("drained_us", "censored_us") for _, count in totals.get(key, ())]
    left = int(accounts["dropped"]) + int(accounts["unfinished"])
    if cut_off and sum(cut_off) != left:
        yield f"{name} left {left} transactions dropped or unfinished, and recorded {sum(cut_off)}"


def _statements(recording: Recording) -> Iterator[str]:
    kinds = recording.hello["statements"]
    per_event = sum(int(kind["per_event"]) for kind in kinds)
    measure = recording.measure
    if per_event == 0:
        return
    executed = sum(int(measure[kind]) for kind in ("reads", "writes", "other"))
    expected = int(measure["events"]) * per_event
    # A transaction under way at either edge is counted in part; one that was retried or given up, and the
    # ROLLBACK after it, on top.
    repeated = int(measure["retries"]) + int(measure["accounting"]["failed"]) + int(measure["reconnects"])
    allowed = int(recording.hello["plan"]["load"]["connections"]) * per_event + repeated * (per_event + 1)
    if abs(executed - expected) > allowed:
        yield (
            f"{executed} statements for {measure['events']} transactions of {per_event} statements each "
            f"({expected}, give or take {allowed})"
        )


def _little(recording: Recording) -> Iterator[str]:
    measure = recording.measure
    if not recording.always_busy or measure["accounting"]["failed"]:
        # Pauses are no part of a latency; what was given up took time too, but left none.
        return
    length_us = measure["end_us"] - measure["start_us"]
    connections = int(recording.hello["plan"]["load"]["connections"])
    # A transaction counts in full in the phase in which it ends: the part before the phase is subtracted, and
    # the part of transactions under way at its end is added.
    before = (recording.end or {})["phases"].get("warmup", {}).get("accounting", {}).get("unfinished_us", 0)
    inside_us = float(measure["latency_sum_us"]) - before + measure["accounting"]["unfinished_us"]
    busy = inside_us / length_us
    if abs(busy - connections) > connections * LITTLE_TOLERANCE:
        yield f"throughput times mean latency is {busy:.2f}, and there were {connections} connections"


def _elapsed(recording: Recording) -> Iterator[str]:
    measure, planned_us = recording.measure, int(recording.hello["plan"]["phases"]["measure_us"])
    elapsed_us = measure["end_us"] - measure["start_us"]
    if abs(elapsed_us - planned_us) > planned_us * ELAPSED_TOLERANCE:
        yield f"the measurement took {elapsed_us / 1e6:.3f} s and {planned_us / 1e6:.3f} s were planned"
