"""R03: consistency of a trial's numbers. Four identities that every sound measurement satisfies.

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


def find_contradictions(recording: Recording) -> list[str]:
    """The violated identities, each with both sides; empty when all hold."""
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
    """Every due transaction is counted once: as done, failed, dropped or unfinished."""
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
    # Transactions at either edge count in part; retries, given up transactions and their ROLLBACKs
    # add statements.
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
        # Latencies do not include pauses, and transactions that were given up have none.
        return
    length_us = measure["end_us"] - measure["start_us"]
    connections = int(recording.hello["plan"]["load"]["connections"])
    # A transaction counts fully in the phase where it ends: subtract its time before the phase, and add the
    # time of transactions in progress at the end.
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
