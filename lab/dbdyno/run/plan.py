"""Builds the engine's plan. Loading, running and cleaning up share one specification of the workload.

schema/plan.schema.json defines its form and the defaults of omitted keys.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.experiment.model import Background, Experiment, Load, Point, SqlWorkload, Variant, Workload
from dbdyno.experiment.schedule import Trial, background_seed, count_earlier_trials, engine_seed
from dbdyno.experiment.slices import GUARD_SHARE
from dbdyno.experiment.workload import open_sequences

SCHEMA_VERSION = 1
US = 1_000_000
# Between "ready" and the start command dbdyno reads the server's counters, which may take long on a busy
# machine.
START_TIMEOUT_US = 120 * US
LOADING_STREAMS_MAX = 4
# Distance between the first sequence numbers of consecutive trials on the same data. It suffices for an hour
# at 27,000 rows per second; an INTEGER column has room for 21 trials.
SEQUENCE_DISTANCE = 100_000_000
# A background load is ended after its trial. It ends by itself so long after the planned end of the trial.
BACKGROUND_SPARE_US = 3600 * US
# It is counted in the intervals that are within the measurement of the trial: at least so many.
BACKGROUND_INTERVALS = 20


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
    if load.writes == "skip" and "replay" in document["workload"].get("sql", {}):
        document["workload"]["sql"]["replay"]["skip_writes"] = True
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
    earlier = count_earlier_trials(experiment, trial, planned) + earlier_trials
    _continue_sequences(document, earlier, _sequence_users(experiment, trial))
    return document


def background_plan(
    experiment: Experiment,
    trial: Trial,
    background: Background,
    trial_document: Mapping[str, Any],
    planned: Sequence[Trial] = (),
    *,
    earlier_trials: int = 0,
) -> dict[str, Any]:
    """The plan of a background load of the trial with the plan `trial_document`; the other parameters are
    those of `trial_plan`.
    """
    variant = experiment.variant(trial.variant)
    of_trial = experiment.load_for(variant)
    point, target = background.point, trial_document["target"]
    load = Load(
        connections=(background.connections,),
        rate=() if background.rate is None else (background.rate,),
        arrivals=background.arrivals,
        # What waits longer than a second is dropped, so that a rate that cannot be kept is a finding.
        queue_limit=None if background.rate is None else math.ceil(background.rate),
        duration_s=of_trial.duration_s,
        warmup_s=0.0,
        on_lost=of_trial.on_lost,
        give_up_s=of_trial.give_up_s,
        answer_timeout_s=of_trial.answer_timeout_s,
    )
    document = plan(
        experiment,
        background,
        target,
        point=point,
        seed=background_seed(experiment, trial, background.title),
        scheduling="normal",
        load=load,
        session=variant.session.statements(str(target["protocol"])),
    )
    document["client"]["workers"] = 1
    phases = trial_document["phases"]
    document["phases"] = {"warmup_us": 0, "measure_us": sum(phases.values()) + BACKGROUND_SPARE_US}
    document["report"] = {"interval_us": min(US, phases["measure_us"] // BACKGROUND_INTERVALS)}
    earlier = count_earlier_trials(experiment, trial, planned) + earlier_trials
    _continue_sequences(document, earlier, _sequence_users(experiment, trial), background.title)
    return document


def _sequence_users(experiment: Experiment, trial: Trial) -> list[str]:
    """The loads of a trial with sequences without end: "" for the trial's own, titles of background loads."""
    variant = experiment.variant(trial.variant)
    loads: list[tuple[str, Workload]] = [("", experiment.workload_for(variant, trial.workload))]
    loads += [
        (background.title, background) for background in experiment.backgrounds(variant, trial.workload)
    ]
    return [title for title, workload in loads if open_sequences(workload.plan())]


def _continue_sequences(
    document: dict[str, Any], earlier: int, users: Sequence[str], title: str = ""
) -> None:
    """Let sequences begin after the numbers of earlier trials, whose rows still exist, and those of each load
    of a trial after those of the loads before it in `users`.
    """
    for sequence in open_sequences(document["workload"]):
        sequence["first"] += (earlier * len(users) + users.index(title)) * SEQUENCE_DISTANCE


def slice_plan(document: dict[str, Any], slice_s: float) -> dict[str, Any]:
    """The plan of a trial whose load runs in slices instead of a warm-up and a measurement."""
    guard_us = round(GUARD_SHARE * slice_s * US)
    return {
        **document,
        "load": {**document["load"], "shape": {"closed_slices": {"guard_us": guard_us}}},
        "phases": {"measure_us": 0},
        "report": {"interval_us": 0, "tick_us": 0},
    }


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
