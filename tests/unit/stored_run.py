"""Writes run folders as `compare` leaves them, with streams whose every figure is known.

The layout of a run's folder is a contract (ARCHITECTURE.md), so the judge and the report are tested on
folders that are made here through the store's own writer. The streams obey the engine's identities exactly: a
closed loop of N connections at X transactions per second has latencies that add up to N times the elapsed
time.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from dbdyno.experiment.model import (
    Design,
    Experiment,
    Factor,
    Load,
    OltpWorkload,
    ServerSpec,
    Stop,
    Variant,
    Workload,
)
from dbdyno.experiment.repeats import repeat_blocks
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.finding import FINDINGS
from dbdyno.stats.histogram import bucket_lower_us
from dbdyno.store import VERDICT, Run, files
from dbdyno.store.trial import FailedBy
from dbdyno.verdict import judge

SECOND = 1_000_000
TICK = 100_000
_VERSIONS = {"mariadb": "11.4.2-MariaDB", "postgresql": "17.5"}
# oltp_read_write: BEGIN, 10 point selects, 4 ranges, 2 updates, delete, insert, COMMIT.
READS, WRITES, OTHER = 14, 4, 2
STATEMENTS = READS + WRITES + OTHER

# A variable that the variants differ in.
_VARIED = {"mariadb": "thread_handling", "postgresql": "work_mem"}

# What a trial does: transactions in each 100 ms tick, from its place in the schedule.
Speed = Callable[[Trial, int], int]
# Changes a finished stream before it is stored.
Spoil = Callable[[Trial, list[dict[str, Any]]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Arms:
    """Speeds of the two variants, in transactions per tick."""

    a: Callable[[Trial], int] = lambda _trial: 100
    b: Callable[[Trial], int] = lambda _trial: 90

    def __call__(self, trial: Trial, _tick: int) -> int:
        return self.a(trial) if trial.variant == "a" else self.b(trial)


def unspoiled(_trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stream as it is."""
    return records


@dataclass
class Making:
    """How a run folder is made; see `make`."""

    blocks: int = 8
    connections: tuple[int, ...] = (10, 20, 40)
    rates: tuple[float, ...] = ()
    max_rate: float | None = None
    names: tuple[str, ...] = ("a", "b")
    # Variants with the server of the first one: the same under another name.
    identical: tuple[str, ...] = ()
    # With factors the names are made from their levels.
    factors: tuple[Factor, ...] = ()
    workloads: tuple[Workload, ...] = (OltpWorkload(name="oltp_read_write"),)
    duration_s: float = 4.0
    warmup_s: float | None = 2.0
    delta_percent: float | None = None
    # With it, `blocks` is ignored.
    stop: Stop | None = None
    max_loss_percent: float | None = None
    state_per: Literal["block", "group", "trial"] = "group"
    error_rate: Literal["family-wise", "false-discovery"] = "family-wise"
    metrics: tuple[str, ...] = ()
    order_seed: int | None = None
    product: Literal["mariadb", "postgresql"] = "mariadb"
    override: dict[str, str] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    speed: Speed = field(default_factory=Arms)
    spoil: Spoil = unspoiled
    # Added to trial.json.
    facts: Mapping[str, Any] = field(default_factory=dict)
    # Trials that never ran, and trials the lab gave up, with the reason.
    absent: Callable[[Trial], bool] = lambda _trial: False
    failed: Callable[[Trial], str | None] = lambda _trial: None
    # Who failed those; None is a record that names nobody.
    failed_by: FailedBy | None = "server"
    # Reasons of earlier attempts, which the harness failed, oldest first.
    attempts: Callable[[Trial], Sequence[str]] = lambda _trial: ()
    # Blocks that ran once more at the end.
    repeated: tuple[int, ...] = ()
    variables: dict[str, dict[str, str]] = field(default_factory=dict)
    question: str = "Is b as fast as a?"
    conclusion: str = ""
    # The counters at the edges of a trial's measurement, as server.json keeps them.
    edges: Callable[[Trial], dict[str, Any] | None] = lambda _trial: None
    # What else server.json of a trial says.
    server: Callable[[Trial], dict[str, Any]] = lambda _trial: {}
    # Why they were not read.
    unread: Callable[[Trial], str] = lambda _trial: ""


def experiment(making: Making) -> Experiment:
    """The experiment of a made run."""
    return Experiment(
        name="made",
        question=making.question,
        conclusion=making.conclusion,
        workloads=making.workloads,
        load=Load(
            connections=making.connections,
            rate=making.rates,
            max_rate=making.max_rate,
            duration_s=making.duration_s,
            warmup_s=making.warmup_s,
        ),
        design=Design(
            blocks=making.blocks,
            metrics=making.metrics,
            delta_percent=making.delta_percent,
            max_loss_percent=making.max_loss_percent,
            error_rate=making.error_rate,
            state_per=making.state_per,
            order_seed=making.order_seed,
            stop=making.stop,
        ),
        variants=tuple(
            Variant(
                name=name,
                levels=levels,
                server=ServerSpec(
                    product=making.product, cpus="0", variables={_VARIED[making.product]: value}
                ),
            )
            for name, levels, value in _variants(making)
        ),
        factors=making.factors,
        override=making.override,
    )


def _variants(making: Making) -> Iterator[tuple[str, dict[str, str], str]]:
    """Name, levels, and the value of the variable that differs."""
    if not making.factors:
        for index, name in enumerate(making.names):
            yield name, {}, f"as-{0 if name in making.identical else index}"
        return
    for levels in itertools.product(*(factor.levels for factor in making.factors)):
        chosen = {factor.name: level for factor, level in zip(making.factors, levels, strict=True)}
        yield "+".join(levels), chosen, "-".join(levels)


def make(folder: Path, making: Making | None = None) -> Run:
    """A finished run below `folder`."""
    making = making or Making()
    plan = experiment(making)
    planned = schedule(plan)
    repeats = repeat_blocks(planned, making.repeated)
    with without_sync():
        run = Run.create(
            folder,
            plan,
            b'[experiment]\nname = "made"\n',
            environment={
                "host": "laboratory",
                "lab": "0.1.0",
                "engine": "0.1.0",
                "argv": ["dbdyno", "compare"],
            },
        )
        run.add_findings(FINDINGS.validate_python(making.findings))
        run.append_schedule(repeats)
        for trial in (*planned, *repeats):
            if not making.absent(trial):
                store(run, trial, plan, making)
    return run


def judged(folder: Path, making: Making | None = None) -> dict[str, Any]:
    """The verdict of a made run, after a trip through JSON, and its folder as `path`."""
    run = make(folder, making)
    with without_sync():
        judge(run)
    return verdict_of(run) | {"path": run.path}


def make_large(folder: Path) -> Run:
    """A judged run of 10 loads, 3 workloads and 20 blocks."""
    workloads = tuple(
        OltpWorkload(name=name) for name in ("oltp_read_write", "oltp_read_only", "oltp_point_select")
    )
    connections = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    run = make(folder, Making(blocks=20, connections=connections, workloads=workloads))
    judge(run)
    return run


def verdict_of(run: Run) -> dict[str, Any]:
    """verdict.json as other programs read it."""
    verdict: dict[str, Any] = files.read_json(run.path / VERDICT)
    return verdict


def without_sync() -> AbstractContextManager[Any]:
    """Nobody needs the files of a test after a power failure, and a disk may take milliseconds for each."""

    def nothing(_descriptor: int) -> None:
        """A mock would keep every call."""

    return mock.patch.object(os, "fsync", nothing)


def store(run: Run, trial: Trial, plan: Experiment, making: Making) -> None:
    """Store one trial of a made run."""
    for earlier in making.attempts(trial):
        with run.begin(trial, {}) as writer:
            writer.finish("failed", reason=earlier, failed_by="harness")
    hello, ready = _beginning(trial, plan)
    with run.begin(trial, hello["data"]["plan"]) as writer:
        load = _load_of(trial, plan, making.speed)
        if making.spoil is unspoiled:
            writer.append_event(_lines([hello, ready]) + _lines_of_load(load))
        else:
            # The records share lists, which a change of one must not spread.
            own = copy.deepcopy([hello, ready, *_records_of_load(load)])
            writer.append_event(_lines(making.spoil(trial, own)))
        writer.write_server(_server(trial, plan, making))
        reason = making.failed(trial)
        if reason is None:
            writer.finish("done", **making.facts)
        else:
            writer.finish("failed", reason=reason, failed_by=making.failed_by)


def stream(trial: Trial, plan: Experiment, speed: Speed) -> Iterator[dict[str, Any]]:
    """The records of one complete trial."""
    yield from _beginning(trial, plan)
    yield from _records_of_load(_load_of(trial, plan, speed))


@dataclass(frozen=True)
class LoadOfTrial:
    """What the records after the beginning depend on: the transactions of each tick, by phase."""

    warmup: tuple[int, ...]
    measure: tuple[int, ...]
    connections: int
    open_loop: bool


def _load_of(trial: Trial, plan: Experiment, speed: Speed) -> LoadOfTrial:
    warmup, measure = _ticks(plan)
    events = [speed(trial, tick) for tick in range(warmup + measure)]
    return LoadOfTrial(
        tuple(events[:warmup]), tuple(events[warmup:]), trial.point.connections, bool(plan.load.rate)
    )


def _ticks(plan: Experiment) -> tuple[int, int]:
    """The ticks of warm-up and measurement."""
    return round(plan.load.warmup_allowance_s() * 10), round(plan.load.duration_s * 10)


def _beginning(trial: Trial, plan: Experiment) -> tuple[dict[str, Any], dict[str, Any]]:
    warmup, measure = _ticks(plan)
    return _record("hello", **_hello(trial, plan, warmup * TICK, measure * TICK)), _record(
        "ready",
        connections=trial.point.connections,
        connect_us=900,
        server_version="11",
        prepared_statements=1,
    )


@lru_cache(maxsize=512)
def _lines_of_load(load: LoadOfTrial) -> bytes:
    """Encoding takes most of the time, and many trials of a test are equal."""
    return _lines(_records_of_load(load))


def _lines(records: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _records_of_load(load: LoadOfTrial) -> Iterator[dict[str, Any]]:
    seq, at, phases = 0, 0, {}
    for name, ticks in (("warmup", load.warmup), ("measure", load.measure)):
        if not ticks:
            continue
        yield _record("phase", name=name, at_us=at * TICK, at_unix_us=1_700_000_000_000_000 + at * TICK)
        parts = []
        for first in range(0, len(ticks), 10):
            events = ticks[first : first + 10]
            start = at + first
            for offset, count in enumerate(events, start=1):
                yield _record("tick", at_us=(start + offset) * TICK, events=count)
            span = (start * TICK, (start + len(events)) * TICK)
            parts.append(counts_of(span, sum(events), load.connections, open_loop=load.open_loop))
            yield _record(
                "interval", seq=seq, phase=name, **parts[-1], service_us=[], generator=generator_use()
            )
            seq += 1
        phases[name] = totals_of(parts)
        at += len(ticks)
    yield _record(
        "end", reason="time-limit", failure=None, phases=phases, memory_peak_bytes=7_000_000, cpu_us=9
    )


def _record(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def _hello(trial: Trial, plan: Experiment, warmup_us: int, measure_us: int) -> dict[str, Any]:
    rate = trial.point.rate
    kinds = [("begin", 1), ("point_select", 10), ("range", 4), ("change", 4), ("commit", 1)]
    return {
        "schema": 1,
        "engine": "0.1.0",
        "pid": 4711,
        "unix_us": 1_700_000_000_000_000,
        "plan": {
            "schema": 1,
            "workload": plan.workload_for(plan.variant(trial.variant), trial.workload).plan(),
            "load": {
                "connections": trial.point.connections,
                "shape": "closed" if rate is None else {"poisson": {"rate_per_s": rate}},
            },
            "phases": {"warmup_us": warmup_us, "measure_us": measure_us, "drain_us": SECOND},
            "client": {"workers": 1, "scheduling": "normal"},
        },
        "statements": [
            {"kind": kind, "sql": "…", "per_event": per_event, "per_connection": 1, "prepared": True}
            for kind, per_event in kinds
        ],
    }


def generator_use() -> dict[str, Any]:
    return {"cpu": 0.4, "lag_us_max": 90, "run_queue_wait_us": 10}


def counts_of(span: tuple[int, int], events: int, connections: int, *, open_loop: bool) -> dict[str, Any]:
    """An interval in which every event took equally long; in a closed loop as Little's law wants it."""
    mean_us = 1e9 / events / 10 if open_loop else connections * (span[1] - span[0]) / max(events, 1)
    return {
        "start_us": span[0],
        "end_us": span[1],
        "events": events,
        "reads": events * READS,
        "writes": events * WRITES,
        "other": events * OTHER,
        "rows": events * 410,
        "bytes": events * 50_000,
        "errors": {},
        "retries": 0,
        "reconnects": 0,
        "late": 0,
        "dropped": 0,
        "row_count_mismatches": 0,
        "latency_us": [[bucket_lower_us(int(mean_us)), events]] if events else [],
        "latency_sum_us": mean_us * events,
        "latency_min_us": mean_us if events else None,
        "latency_max_us": mean_us if events else None,
    }


def totals_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    histogram: dict[int, int] = {}
    for part in parts:
        for lower, count in part["latency_us"]:
            histogram[lower] = histogram.get(lower, 0) + count
    sums = {key: sum(part[key] for part in parts) for key in parts[0] if isinstance(parts[0][key], int)}
    seen = [part for part in parts if part["events"]]
    return {
        **sums,
        "start_us": parts[0]["start_us"],
        "end_us": parts[-1]["end_us"],
        "errors": {},
        "accounting": {
            "due": sums["events"],
            "done": sums["events"],
            "failed": 0,
            "dropped": 0,
            "unfinished": 0,
            "unfinished_us": 0,
        },
        "latency_us": [[lower, count] for lower, count in sorted(histogram.items())],
        "latency_sum_us": sum(part["latency_sum_us"] for part in parts),
        "latency_min_us": min((part["latency_min_us"] for part in seen), default=None),
        "latency_max_us": max((part["latency_max_us"] for part in seen), default=None),
    }


def _server(trial: Trial, plan: Experiment, making: Making) -> Any:
    declared = {key: str(value) for key, value in plan.variant(trial.variant).server.variables.items()}
    version = _VERSIONS[making.product]
    own = {
        "datadir": f"/private/{trial.slot}",
        "port": str(3306 + trial.slot),
        "version": version.partition("-")[0],
    }
    return {
        "product": making.product,
        "version": version,
        "identity": {"datadir": own["datadir"], "pid": 1000 + trial.group},
        "declared": declared,
        "set_by_dbdyno": {"max_connections": "1000"},
        "variables": {
            **own,
            "sort_buffer_size": "2097152",
            **declared,
            **making.variables.get(trial.variant, {}),
        },
        "status_before": {"Com_select": "0"},
        "status_after": {"Com_select": "1000"},
        "process": {"cpu_user_s": 1.5},
        "edges": making.edges(trial),
        "edges_unread": making.unread(trial),
        **making.server(trial),
    }
