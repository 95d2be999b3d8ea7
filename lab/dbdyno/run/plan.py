"""Builds the engine's plan. Loading, running and cleaning up share one specification of the workload.

schema/plan.schema.json defines its form and the defaults of omitted keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.experiment.model import Experiment, Load, Point, SqlWorkload, Variant, Workload
from dbdyno.experiment.schedule import Trial, count_earlier_trials, engine_seed
from dbdyno.experiment.slices import GUARD_SHARE

SCHEMA_VERSION = 1
US = 1_000_000
# Between "ready" and the start command dbdyno reads the server's counters, which may take long on a busy
# machine.
START_TIMEOUT_US = 120 * US
LOADING_STREAMS_MAX = 4
# Distance between the first sequence numbers of consecutive trials on the same data. It suffices for an hour
# at 27,000 rows per second; an INTEGER column has room for 21 trials.
SEQUENCE_DISTANCE = 100_000_000


def plan(
    experiment: Experiment,
    workload: Workload,
    target: Mapping[str, Any],
    *,
    point: Point | None = None,
    seed: int | None = None,
    scheduling: str = "normal",
    load: Load | None = None,
    session: Sequence[str] = (),
) -> dict[str, Any]:
    """A plan that is valid by schema/plan.schema.json.

    `target` is `Address.target()`. Without a point, the plan is for `prepare` or `cleanup`; it contains the
    tables, rows, seed, and maximum connections of the load. With a point, it is for `run`, and the engine
    waits for the start command. `load` is the variant's load, if it differs from the experiment's; `session`
    are the statements that each of the variant's connections sends first.
    """
    load, declared = load or experiment.load, experiment.client.workers
    if isinstance(workload, SqlWorkload) and workload.reconnect_every is not None:
        load = load.model_copy(update={"reconnect_every": workload.reconnect_every})
    effective = point or max(load.points(), key=lambda candidate: candidate.connections)
    document: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "target": dict(target),
        "workload": workload.plan(str(target["protocol"])),
        "load": _load(load, effective),
        "phases": {
            "warmup_us": round(load.warmup_allowance_s() * US),
            "measure_us": round(load.duration_s * US),
        },
        "seed": experiment.design.seed if seed is None else seed,
        "client": {"workers": 1 if declared == "auto" else declared, "scheduling": scheduling},
        "reconnect": {"on_lost": load.on_lost, "give_up_us": round(load.give_up_s * US)},
        "loading": {
            "streams": experiment.loading.streams or min(LOADING_STREAMS_MAX, os.cpu_count() or 1),
            "method": experiment.loading.method,
        },
        "prewarm": load.prewarm,
    }
    if session:
        document["session"] = list(session)
    if point is not None:
        document["start"] = {"on-command": {"start_timeout_us": START_TIMEOUT_US}}
    return document


def trial_plan(
    experiment: Experiment,
    trial: Trial,
    target: Mapping[str, Any],
    planned: Sequence[Trial] = (),
    *,
    warmup_s: float | None = None,
    workers: int | None = None,
    earlier_trials: int = 0,
) -> dict[str, Any]:
    """The plan of one trial of the schedule; `planned` are all trials of the run, including repeats.

    `warmup_s` is the warm-up that the warm-up trials determined, `workers` the event loops that the pilot
    chose; None means those of the experiment. `earlier_trials` have run on the same data, outside the
    schedule.
    """
    variant = experiment.variant(trial.variant)
    document = plan(
        experiment,
        experiment.workload_for(variant, trial.workload),
        target,
        point=trial.point,
        seed=engine_seed(experiment, trial),
        scheduling=scheduling(experiment, variant),
        load=experiment.load_for(variant),
        session=variant.session.statements(str(target["protocol"])),
    )
    if warmup_s is not None:
        document["phases"]["warmup_us"] = round(warmup_s * US)
    if workers is not None:
        document["client"]["workers"] = workers
    # Sequences continue after the numbers of earlier trials, whose rows still exist.
    used = (count_earlier_trials(experiment, trial, planned) + earlier_trials) * SEQUENCE_DISTANCE
    for generator in document["workload"].get("sql", {}).get("parameters", {}).values():
        if is_open_ended(generator):
            generator["sequence"]["first"] += used
    return document


def slice_plan(document: dict[str, Any], slice_s: float) -> dict[str, Any]:
    """The plan of a trial whose load runs in slices instead of a warm-up and a measurement."""
    guard_us = round(GUARD_SHARE * slice_s * US)
    return {
        **document,
        "load": {**document["load"], "shape": {"closed_slices": {"guard_us": guard_us}}},
        "phases": {"measure_us": 0},
        "report": {"interval_us": 0, "tick_us": 0},
    }


def is_open_ended(generator: Mapping[str, Any]) -> bool:
    """Whether a generator of parameters is a sequence without end."""
    return "sequence" in generator and generator["sequence"]["last"] is None


def scheduling(experiment: Experiment, variant: Variant) -> str:
    """The scheduling class of the load generator's threads.

    "batch" only in a closed loop that shares CPUs with the server: in an open loop a waiting thread would
    start transactions late. All variants must have the same load, so if one variant shares CPUs, "batch"
    applies to all.
    """
    if experiment.client.scheduling is not None:
        return experiment.client.scheduling
    shared = any(experiment.shares_cpus(any_variant) for any_variant in (*experiment.variants, variant))
    return "batch" if shared and not experiment.load.is_open else "normal"


def _load(load: Load, point: Point) -> dict[str, Any]:
    section: dict[str, Any] = {"connections": point.connections, "shape": _shape(load, point)}
    section["answer_timeout_us"] = round(load.answer_timeout_s * US)
    if load.think_time_s is not None:
        key = "us" if load.think == "constant" else "mean_us"
        section["think_time"] = {load.think: {key: round(load.think_time_s * US)}}
    if load.queue_limit is not None and point.rate is not None:
        section["queue_limit"] = load.queue_limit
    if load.max_rate is not None:
        section["max_rate_per_s"] = load.max_rate
    if load.abort_if is not None:
        section["abort_if"] = {
            "latency": [
                {"percentile": percent, "most_us": round(limit_s * US)}
                for percent, limit_s in load.abort_if.latency_limits()
            ],
            "errors_per_1000": load.abort_if.errors_per_1000,
        }
    if load.reconnect_every:
        section["reconnect_every"] = load.reconnect_every
    return section


def _shape(load: Load, point: Point) -> str | dict[str, Any]:
    if load.shape is not None:
        return load.shape.plan(point.rate or point.connections, load.arrivals if load.is_open else None)
    return "closed" if point.rate is None else {load.arrivals: {"rate_per_s": point.rate}}
