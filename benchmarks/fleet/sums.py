"""Whether the numbers of a trial are those of the whole fleet: sums of engines, and the server's counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.store import StoredTrial
from dbdyno.store.records import Record

ENGINES = 3
_COUNTS = ("events", "reads", "writes", "other", "rows", "bytes", "reconnects", "late", "dropped")
_ACCOUNTS = ("due", "done", "failed", "dropped", "unfinished")


def check_sum(trial: StoredTrial) -> list[str]:
    """What is wrong with the numbers of a trial that counts."""
    return [f"trial {trial.index}: {problem}" for problem in _problems(trial)]


def _problems(trial: StoredTrial) -> Iterator[str]:
    parts = []
    for number in range(1, ENGINES + 1):
        records = list(trial.records(f"engine-{number}.jsonl"))
        ends = [one["data"] for one in records if one["type"] == "end"]
        if len(ends) != 1 or ends[0]["reason"] != "time-limit":
            yield f"engine {number} has not ended as planned"
            return
        segment = records[0]["data"]["plan"]["segment"]
        if segment != {"index": number - 1, "count": ENGINES}:
            yield f"engine {number} has the segment {segment}"
        parts.append(ends[0]["phases"])
    records = list(trial.records())
    (merged,) = [one["data"]["phases"] for one in records if one["type"] == "end"]
    for phase, whole in merged.items():
        sums = _sum(parts, phase)
        wrong = [key for key, value in _numbers(whole).items() if value != sums[key]]
        if phase == "measure" and whole["events"] != _of_intervals(records):
            wrong.append("events of the intervals")
        yield from (f"{key} of the phase {phase} is not the sum of the engines" for key in wrong)
    yield from _compare_with_server(trial, merged)


def _numbers(phase: Mapping[str, Any]) -> Counter[Any]:
    """Everything in the totals of a phase that adds up."""
    counts: Counter[Any] = Counter({key: phase.get(key) or 0 for key in _COUNTS})
    counts.update({f"accounting.{key}": phase["accounting"][key] for key in _ACCOUNTS})
    counts.update({f"transactions of {lower} us": count for lower, count in phase["latency_us"]})
    return counts


def _sum(parts: list[dict[str, Any]], phase: str) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for part in parts:
        total.update(_numbers(part[phase]))
    return total


def _of_intervals(records: list[Record]) -> int:
    intervals = [one["data"] for one in records if one["type"] == "interval"]
    return sum(int(one["events"]) for one in intervals if one["phase"] == "measure")


def _compare_with_server(trial: StoredTrial, phases: Mapping[str, Any]) -> Iterator[str]:
    """A transaction of oltp_point_select executes one statement. The server has executed those in flight at
    the end too; in an open loop some of these had not begun.
    """
    record = trial.server
    after, before = record["status_after"], record["status_before"]
    executed = int(after["Com_stmt_execute"]) - int(before["Com_stmt_execute"])
    done = sum(phase["events"] for phase in phases.values())
    last = phases["measure"]
    most = done + last["accounting"]["unfinished"]
    # A statement whose connection was lost may have been executed, or not.
    uncertain = sum(phase["reconnects"] + phase["accounting"]["failed"] for phase in phases.values())
    least = most if trial.plan["load"]["shape"] == "closed" else done
    if not least - uncertain <= executed <= most + uncertain:
        yield f"the server executed {executed} statements, the engines {done} and {most - done} at the end"
