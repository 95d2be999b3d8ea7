"""Reads the engine's records of one trial, and decides whether they are complete.

A trial with incomplete records has no figures (check R04), because a partial result must not look like a
complete one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.store import StoredTrial
from dbdyno.store.records import (
    CLIENT_DELAY,
    GENERATOR_LAG_US,
    End,
    EngineWarning,
    Interval,
    PhaseTotals,
    Record,
    Slice,
    Span,
    Statements,
)
from dbdyno.store.trial import FailedBy
from dbdyno.text import compose, compose_form, mark

# End reason of an engine run that took its planned time, and of one in slices, which ends on command.
PLANNED_END, COMMANDED_END = "time-limit", "done"


@dataclass
class Recording:
    """The records of one trial, sorted by type. Times are microseconds since the start of the run."""

    # The plan, as schema/plan.schema.json defines it.
    plan: dict[str, Any] = field(default_factory=dict)
    # Statements of one transaction.
    statements: int = 0
    # Wall time of the run's start; 0 if no phase has begun.
    start_unix_us: int = 0
    # End of each tick, and the number of transactions that ended in it.
    ticks: list[tuple[int, int]] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    warnings: list[EngineWarning] = field(default_factory=list)
    statement_records: list[Statements] = field(default_factory=list)
    # Slices in the order in which they ran, and those that count.
    slices: list[Slice] = field(default_factory=list)
    counted: list[Slice] = field(default_factory=list)
    # Number of the first slice after the warm-up, and the planned length of a slice with its guard time.
    first_slice: int = 0
    slice_us: int = 0
    end: End | None = None

    @property
    def phases(self) -> Mapping[str, PhaseTotals]:
        """The totals of the phases, from the record `end`."""
        return self.end["phases"] if self.end else {}

    @property
    def measure(self) -> PhaseTotals:
        """Totals of the measuring phase. Raises KeyError if there are none."""
        return self.phases["measure"]

    @property
    def is_sliced(self) -> bool:
        """Whether the load paused and resumed on command."""
        return "closed_slices" in (self.plan.get("load", {}).get("shape") or ())

    @property
    def is_always_busy(self) -> bool:
        """Whether every connection always has a transaction in progress: a closed loop with constant load and
        no pauses.
        """
        load = self.plan["load"]
        return load["shape"] == "closed" and not (load.get("think_time") or load.get("max_rate_per_s"))


def read(records: Iterable[Record], slices: Mapping[str, int] | None = None) -> Recording:
    """Sort records by type. Unknown types are skipped.

    `slices` of trial.json has the number of slices of the warm-up, and the length of a slice.
    """
    recording = Recording()
    if slices:
        recording.first_slice, recording.slice_us = slices["warmup"], slices["length_us"]
    for record in records:
        kind, data = record["type"], record["data"]
        if kind == "hello":
            recording.plan = data.get("plan", {})
            recording.statements = sum(entry["per_event"] for entry in data.get("statements", ()))
        elif kind == "phase":
            recording.start_unix_us = int(data["at_unix_us"]) - int(data["at_us"])
        elif kind == "tick":
            recording.ticks.append((int(data["at_us"]), int(data["events"])))
        elif kind == "interval":
            recording.intervals.append(data)
        elif kind == "statements":
            recording.statement_records.append(data)
        elif kind == "slice":
            _add_slice(recording, data)
        elif kind == "warning":
            recording.warnings.append(
                EngineWarning(code=data["code"], text=_known(data["text"]), hint=_known(data["hint"]))
            )
        elif kind == "end":
            recording.end = data
    return recording


def ended_after(part: Slice) -> int:
    """Number of transactions that completed after the end of a slice; of an older engine with failed ones."""
    latencies = part.get("in_flight_latency_us")
    return part["in_flight"] if latencies is None else sum(count for _, count in latencies)


def _add_slice(recording: Recording, data: Slice) -> None:
    recording.slices.append(data)
    if data["slice"] >= recording.first_slice:
        recording.counted.append(data)
    # A slice has no ticks, but its transactions ended in three spans.
    recording.ticks += [(data["resumed_us"], 0), (data["start_us"], data["guard_events"])]
    recording.ticks += [(data["end_us"], data["events"]), (data["paused_us"], ended_after(data))]


def failure(trial: StoredTrial, recording: Recording) -> tuple[str, FailedBy] | None:
    """Why the trial has no figures, and what caused it: server or dbdyno. None if the trial is complete."""
    if recording.end is None:
        return _reason(trial) or compose("the engine's records have no end"), trial.failed_by or "harness"
    if recording.end["reason"] != (COMMANDED_END if recording.is_sliced else PLANNED_END):
        problem = recording.end.get("failure")
        reason = f"{recording.end['reason']}: {problem['text']}" if problem else str(recording.end["reason"])
        return reason, trial.failed_by or "harness"
    if not trial.is_done:
        return _reason(trial) or compose(
            "its status is {status}", status=repr(trial.meta["status"])
        ), trial.failed_by or "harness"
    if "measure" not in recording.phases:
        return compose("the measurement never began"), "harness"
    if recording.is_sliced and not recording.counted:
        return compose("no slice counts"), "harness"
    parts: Sequence[Span] = recording.counted or [recording.measure]
    if sum(part["events"] for part in parts) == 0:
        return compose("no transaction ended in the measurement"), "server"
    return None


def _reason(trial: StoredTrial) -> str | None:
    """Why dbdyno ended the trial, as stored in trial.json."""
    reason = trial.meta.get("reason") or trial.meta.get("failure")
    if isinstance(reason, Mapping):
        reason = reason.get("text")
    return str(reason) if reason else None


# The texts of the warnings of the load generator, for translations.
ENGINE_TEXTS = (
    mark("{statements} recorded statements are replayed; left out: {listed}"),
    mark(
        "statements that define tables, change session settings or administer the server are not replayed, "
        'nor, with writes = "skip", those that write; put the necessary ones in setup or session'
    ),
    mark("the system refuses SCHED_BATCH: {error}"),
    mark("the run continues with normal scheduling, which costs more CPU time per statement"),
    mark("server gone since second {second} for {count} of {users} connections: {error}"),
    mark("look for the cause in the server's error log"),
    mark(
        "the script blocked its thread for {longest} ms in one call, while the other users of the thread "
        "waited"
    ),
    mark("give every user its own thread (--lua-threads), or move sleeping and computing out of the event"),
)


def _known(text: str) -> str:
    """A text of the load generator with its pattern; as it is if another version wrote it."""
    for pattern in ENGINE_TEXTS:
        parts = re.split(r"\{(\w+)\}", pattern)
        expression = "".join(
            f"(?P<{part}>.*)" if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
        if match := re.fullmatch(expression, text, re.DOTALL):
            return compose_form(pattern, match.groupdict())
    return text


def generator_delays(recording: Recording) -> Iterator[EngineWarning]:
    """Warnings about delays of the load generator in the measuring phase of one trial."""
    totals = recording.phases.get("measure")
    if not totals or not (generator := totals.get("generator")):
        # An older engine, which wrote these warnings itself.
        return
    fix = compose("Keep a CPU free for the load generator, or give it more workers or another machine")
    if generator["lag_us_p99"] > GENERATOR_LAG_US:
        late = compose(
            "1 % of its wake-ups came more than {lag_us_p99:.1f} ms late",
            lag_us_p99=generator["lag_us_p99"] / 1000.0,
        )
        yield {
            "code": "generator-late",
            "text": compose(
                "{late} (limit {generator_lag_us:g} ms)",
                late=late,
                generator_lag_us=GENERATOR_LAG_US / 1000.0,
            ),
            "hint": fix,
        }
    delay, latency = generator["client_delay_us_p99"], totals["percentiles_us"]
    limit_us = CLIENT_DELAY * latency["p50"]["value_us"] if latency else math.inf
    if delay is not None and delay > limit_us:
        text = compose(
            "it read 1 % of them {delay:.2f} ms or more after they arrived; the limit is "
            "{client_delay:.0f} % of the median latency, here {limit_us:.2f} ms",
            delay=delay / 1000.0,
            client_delay=CLIENT_DELAY * 100,
            limit_us=limit_us / 1000.0,
        )
        yield {"code": "client-delay", "text": text, "hint": fix}
