"""Measures how many transactions per second the load generator reaches without a server.

The engine runs the transactions of a workload against its null target, which answers at once, with as many
connections and event loops as the trials have. Check P13 compares this client ceiling with the throughput.
"""

from __future__ import annotations

from contextlib import suppress

from dbdyno.binary import EngineProblem
from dbdyno.experiment.model import Experiment, OltpWorkload, SqlWorkload, Workload
from dbdyno.run.engine import Engine
from dbdyno.run.plan import US, trial_plan
from dbdyno.store import Run, StoreProblem
from dbdyno.store.preparation import Ceiling, chosen_workers, read_ceilings, write_ceilings

WARMUP_S, MEASURE_S_MAX = 0.1, 1.0


def measure_ceilings(run: Run, experiment: Experiment, engine: Engine) -> None:
    """Measure the ceiling of each workload that has none, at its highest load, and store it.

    Only closed loops whose transactions do not wait have one. A ceiling that cannot be stored is left out,
    because the trials are complete.
    """
    baseline = experiment.variants[0]
    load = experiment.load_for(baseline)
    waits = load.max_rate is not None or load.think_time_s is not None
    if load.is_open or load.is_changing or waits:
        return
    known = read_ceilings(run)
    plans = {
        (trial.meta["variant"], trial.meta["workload"]): trial for trial in run.trials() if trial.is_done
    }
    added = False
    for title in (workload.title for workload in experiment.workloads):
        stored = plans.get((baseline.name, title))
        if stored is None or title in known or not _has_ceiling(experiment.workload_for(baseline, title)):
            continue
        of_workload = [one for one in run.schedule() if (one.variant, one.workload) == (baseline.name, title)]
        trial = max(of_workload, key=lambda one: one.point.connections)
        # The protocol of the target decides the form of the statements.
        target = stored.plan.get("target")
        if target is None:
            continue
        plan = trial_plan(experiment, trial, target, warmup_s=WARMUP_S, workers=chosen_workers(run))
        plan["target"] = {"protocol": "null", "answer_us": 0}
        measure_us = round(min(MEASURE_S_MAX, load.duration_s / 2) * US)
        plan["phases"]["measure_us"] = measure_us
        ceiling = Ceiling(connections=trial.point.connections, events_per_s=None, failure=None)
        try:
            result = engine.run("run", plan, cpus=experiment.client.cpus)
        except EngineProblem as problem:
            ceiling["failure"] = problem.text
        else:
            ceiling["failure"] = result.failure() or None
            if result.done and result.end is not None:
                ceiling["events_per_s"] = result.end["phases"]["measure"]["events"] * US / measure_us
        known[title] = ceiling
        added = True
    if added:
        with suppress(StoreProblem):
            write_ceilings(run, known)


def _has_ceiling(workload: Workload) -> bool:
    """Whether the engine runs the workload itself, and its transactions do not wait."""
    if isinstance(workload, SqlWorkload):
        return bool(workload.transactions) and not workload.has_pauses
    return isinstance(workload, OltpWorkload)
