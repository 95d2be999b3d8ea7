"""Measures the load generator before the trials: the number of event loops that it needs, and how many
transactions per second it reaches without a server.

**Event loops** (`workers = "auto"`). One event loop is one thread. If it is never idle, it may limit the
throughput instead of the server; if there are more than necessary, they take CPU time from a server on the
same CPUs. So before the first trial, each variant runs every workload for some seconds at the highest load (a
step), with more event loops until `decide` accepts the number. All trials have the same number;
`workers.json` stores it, so that a resumed run has it too.

**Client ceiling.** The engine runs the transactions of a workload against its null target, which answers at
once, with as many connections and event loops as the trials have. Check P13 compares the ceiling with the
throughput.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from contextlib import suppress

from dbdyno.binary import EngineProblem
from dbdyno.checks import Context
from dbdyno.experiment.base import LIMITS, parse_cpus
from dbdyno.experiment.model import Experiment, OltpWorkload, SqlWorkload, Workload
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import may_wait, only_reads
from dbdyno.finding import Finding
from dbdyno.run import progress
from dbdyno.run.coordinator import Coordinator, hook_findings
from dbdyno.run.engine import Engine, Record
from dbdyno.run.failures import StartFailure
from dbdyno.run.plan import US, trial_plan
from dbdyno.run.session import TrialSession
from dbdyno.run.starting import GroupServers
from dbdyno.store import Run, StoreProblem
from dbdyno.store.preparation import (
    PILOT_FOLDER,
    Ceiling,
    Step,
    Usage,
    Workers,
    chosen_workers,
    discard_steps,
    hook_writer,
    read_ceilings,
    read_workers,
    warmup_trial_writer,
    write_ceilings,
    write_workers,
)
from dbdyno.text import compose, compose_count

SCHEMA = 1
# An event loop that uses more of a CPU than this may limit the throughput.
BUSY_MAX = 0.6
# An event loop that shares CPUs with a server also waits for them. If it runs or waits for more than this
# share of the time, it is hardly ever idle, and may limit the throughput too.
ACTIVE_MAX = 0.9
# If event loops wait for CPUs, more of them may not help: they are used only if the throughput rises by more.
GAIN = 1.05
WARMUP_S, MEASURE_S = 1.0, 2.0


def decide(usages: Sequence[tuple[int, Usage]], largest: int) -> tuple[int, int | None]:
    """The number of event loops after the steps of a pilot, and that of the next step; None after the last.

    `usages` are the event loops of each step with what was measured.
    """
    (kept, usage), *rest = usages
    while True:
        more = next_workers(kept, usage, largest)
        if more == kept or not rest:
            return kept, None if more == kept else more
        (_, with_more), *rest = rest
        if usage["busy"] <= BUSY_MAX:
            # The smaller number again, because a server that is still cold becomes faster from step to step.
            if not rest:
                return kept, kept
            (_, again), *rest = rest
            if with_more["events_per_s"] <= GAIN * max(usage["events_per_s"], again["events_per_s"]):
                return kept, None
        kept, usage = more, with_more


def next_workers(workers: int, usage: Usage, largest: int) -> int:
    """The number of event loops to try: as many as would share the load of `workers` at `BUSY_MAX` each. The
    same number if none is needed or allowed.
    """
    active = usage["busy"] + usage["waiting"]
    if usage["busy"] > BUSY_MAX:
        needed = workers * usage["busy"] / BUSY_MAX
    elif active > ACTIVE_MAX:
        needed = workers * active / BUSY_MAX
    else:
        return workers
    return max(workers, min(largest, max(workers + 1, math.ceil(needed))))


def measured_usage(workers: int, connections: int, phase: Record) -> Usage:
    """The usage of the busiest event loop, from the engine's record of a phase.

    Connections are divided evenly, so the busiest event loop has at most one more than the others.
    """
    share = workers * math.ceil(connections / workers) / connections
    length_us = phase["end_us"] - phase["start_us"]
    generator = phase["generator"]
    return {
        "busy": share * generator["cpu"],
        "waiting": share * generator["run_queue_wait_us"] / (workers * length_us),
        "events_per_s": phase["events"] * US / length_us,
    }


def max_workers(experiment: Experiment) -> int:
    """The largest number of event loops: the load generator's CPUs, and not more than connections.

    The CPUs are those of `client.cpus`, else those of this machine that no server has declared.
    """
    allowed = frozenset(os.sched_getaffinity(0))
    if experiment.client.cpus is not None:
        cpus = parse_cpus(experiment.client.cpus) & allowed
    else:
        servers = [
            parse_cpus(variant.server.cpus)
            for variant in experiment.variants
            if variant.server.cpus is not None
        ]
        cpus = allowed.difference(*servers)
    return max(1, min(len(cpus), max(experiment.load.connections), LIMITS["workers"]))


def reason_against(experiment: Experiment, largest: int) -> str:
    """Why a pilot is not possible or useless; empty if there is one."""
    if experiment.fleet is not None:
        return "a fleet has one event loop on each load generator"
    if largest == 1:
        return "the load generator has one CPU or one connection"
    if experiment.load.is_changing:
        return "the load changes during a trial"
    repeatable = all(map(_is_repeatable, experiment.distinct_workloads())) and not experiment.has_background
    if not experiment.design.renews_data and not repeatable:
        return "a pilot would change the data of the first trial"
    return ""


def determine_workers(
    coordinator: Coordinator, servers: GroupServers, trials: Sequence[Trial], later: Sequence[Trial]
) -> None:
    """Run the pilots `trials` of a comparison, and store the number of event loops; `later` are the trials
    that follow.

    A pilot that fails runs once more. Raises Stopped, Problem.
    """
    steps: list[Step] = []

    def attempt(trial: Trial, _number: int) -> list[Step]:
        coordinator.step(compose("{variant}: pilot for the number of event loops", variant=trial.variant))
        with servers.started(trial) as started, coordinator.times.step("pilot"):
            if not isinstance(started, StartFailure):
                return measure(coordinator, trial, started, steps)
            step = unrun_step(coordinator.experiment, trial, steps, started.reason)
            coordinator.step(f"{trial.variant}: {describe([step])}")
            return [step]

    def is_failed(new: list[Step]) -> bool:
        return new[-1]["usage"] is None

    for new in servers.run_first(trials, later, attempt, is_failed, progress.PilotEnded()):
        steps += new
    keep_workers(coordinator, steps)


def measure(coordinator: Coordinator, trial: Trial, context: Context, earlier: Sequence[Step]) -> list[Step]:
    """The steps of one variant and workload on the server of `context`; `earlier` are the steps before.
    Raises StoreProblem.
    """
    steps, hook_failures = run_pilot(coordinator.run, coordinator.engine, trial, context, earlier)
    coordinator.keep(hook_findings(trial, hook_failures, PILOT_FOLDER))
    coordinator.step(f"{trial.variant}: {describe(steps)}")
    return steps


def keep_workers(coordinator: Coordinator, steps: Sequence[Step]) -> None:
    """Store and announce the number of event loops, once per run; without steps, why it is 1."""
    experiment, run = coordinator.experiment, coordinator.run
    if steps:
        document = to_document(experiment, steps)
        write_workers(run, document)
        coordinator.keep(findings(document))
        coordinator.step(f"{format_workers(document['workers'])} of the load generator in all trials")
    elif experiment.client.workers == "auto" and read_workers(run) is None:
        write_workers(run, without_pilot(experiment))


def has_pilot(experiment: Experiment, run: Run | None = None) -> bool:
    """Whether a pilot determines the number of event loops, and `run` has neither its result nor trials."""
    if experiment.client.workers != "auto" or reason_against(experiment, max_workers(experiment)):
        return False
    return run is None or (chosen_workers(run) is None and not run.trials())


def _is_repeatable(workload: Workload) -> bool:
    """Whether a trial may follow a pilot on the same data. A user's statements may use up rows or numbers."""
    return only_reads(workload) or (isinstance(workload, OltpWorkload) and not workload.changes_row_count)


def without_pilot(experiment: Experiment) -> Workers:
    """The content of workers.json if no pilot runs."""
    largest = max_workers(experiment)
    reason = reason_against(experiment, largest)
    return {"schema": SCHEMA, "workers": 1, "limit": largest, "reason": reason, "steps": []}


def to_document(experiment: Experiment, steps: Sequence[Step]) -> Workers:
    """The content of workers.json after the last step."""
    largest = max_workers(experiment)
    return {
        "schema": SCHEMA,
        "workers": _chosen(steps, largest),
        "limit": largest,
        "reason": "",
        "steps": list(steps),
    }


def _chosen(steps: Sequence[Step], largest: int) -> int:
    """The number of event loops after the pilots that these steps are of; 1 without a complete step."""
    pilots = itertools.groupby(steps, key=lambda step: (step["variant"], step["workload"]))
    completed = [_usages(list(pilot)) for _, pilot in pilots]
    return max((decide(usages, largest)[0] for usages in completed if usages), default=1)


def _usages(steps: Sequence[Step]) -> list[tuple[int, Usage]]:
    return [(step["workers"], step["usage"]) for step in steps if step["usage"] is not None]


def run_pilot(
    run: Run, engine: Engine, trial: Trial, context: Context, earlier: Sequence[Step]
) -> tuple[list[Step], list[str]]:
    """Run the steps of one variant and workload on the server of `context`; `earlier` are the steps before.

    Returns the steps, and the messages of failed hooks. A step that fails is the last. The hooks before and
    after a trial run once, because they may prepare what the load needs; `during_trial` does not run, because
    no result depends on these steps. Raises StoreProblem.
    """
    if not earlier:
        discard_steps(run)
    largest = max_workers(context.experiment)
    following: int | None = _chosen(earlier, largest)
    steps: list[Step] = []
    writer = hook_writer(run, len(earlier) + 1, trial.variant, PILOT_FOLDER)
    with TrialSession(context, trial, writer, measured_s=MEASURE_S) as session:
        session.prepare()
        session.connect()
        while following is not None:
            step = _run_step(run, engine, session, following, (len(earlier), len(steps)))
            steps.append(step)
            following = None if step["usage"] is None else decide(_usages(steps), largest)[1]
        session.end()
    return steps, session.hooks.failures


def unrun_step(experiment: Experiment, trial: Trial, earlier: Sequence[Step], failure: str) -> Step:
    """The step of a pilot whose server did not get ready; `earlier` are the steps before."""
    return {
        "variant": trial.variant,
        "workload": trial.workload,
        "workers": _chosen(earlier, max_workers(experiment)),
        "usage": None,
        "failure": failure,
        "records": "",
    }


def _run_step(
    run: Run, engine: Engine, session: TrialSession, workers: int, numbers: tuple[int, int]
) -> Step:
    """Run one step, without load if the session has failed; `numbers` are those of the steps before: of other
    servers, and on the same data.
    """
    experiment, trial = session.experiment, session.trial
    address = session.server.load_address()
    target = address.target(experiment.load_for(experiment.variant(trial.variant)).transport)
    plan = trial_plan(
        experiment, trial, target, warmup_s=WARMUP_S, workers=workers, earlier_trials=numbers[1]
    )
    plan["phases"]["measure_us"] = round(MEASURE_S * US)
    # With the trial's seed the pilot would write the trial's values, which would then change no row.
    plan["seed"] ^= 1
    usage: Usage | None = None
    with warmup_trial_writer(run, sum(numbers) + 1, trial.variant, PILOT_FOLDER) as writer:
        session.load(engine, plan, writer.append_event, earlier_trials=numbers[1], has_hook=False)
        session.require_within_limits()
        end = session.result.end if session.result is not None else None
        if not session.reason and end is not None:
            usage = measured_usage(workers, trial.point.connections, end["phases"]["measure"])
    return {
        "variant": trial.variant,
        "workload": trial.workload,
        "workers": workers,
        "usage": usage,
        "failure": session.reason or None,
        "records": writer.records,
    }


def findings(document: Workers) -> list[Finding]:
    """D01: pilots that failed, so that more event loops may be necessary."""
    chosen = format_workers(document["workers"])
    return [
        Finding(
            "D01",
            "note",
            f"the pilot of {step['variant']} on {step['workload']} failed with "
            f"{format_workers(step['workers'])} ({step['failure']}): all trials have {chosen}, which may be "
            "too few",
            {"workers": document["workers"], "failed_with": step["workers"], "workload": step["workload"]},
            step["variant"],
            fix="Set workers in [client]",
        )
        for step in document["steps"]
        if step["usage"] is None
    ]


def describe(steps: Sequence[Step]) -> str:
    """What the steps of one pilot measured, for example "1 event loop: 62 % busy, 5 % waiting for a CPU, 8120
    transactions/s".
    """
    return "; ".join(map(_describe_step, steps))


def _describe_step(step: Step) -> str:
    name, usage = format_workers(step["workers"]), step["usage"]
    if usage is None:
        return f"{name}: failed ({step['failure']})"
    return (
        f"{name}: {usage['busy'] * 100:.0f} % busy, {usage['waiting'] * 100:.0f} % waiting for a CPU, "
        f"{usage['events_per_s']:.0f} transactions/s"
    )


def describe_plan(experiment: Experiment, chosen: int | None = None) -> str:
    """The number of event loops before the run: for example "2 event loops"; `chosen` is that of an earlier
    attempt.
    """
    declared = chosen or experiment.client.workers
    if declared != "auto":
        return format_workers(declared)
    why = reason_against(experiment, max_workers(experiment))
    if not why:
        return compose("event loops: auto (by a pilot)")
    return compose("{loops} (auto: {why})", loops=format_workers(1), why=why)


def format_workers(workers: int) -> str:
    """The number with its noun."""
    return compose_count(workers, "{number} event loop", "{number} event loops")


# Of the measurement of a ceiling.
CEILING_WARMUP_S, CEILING_S_MAX = 0.1, 1.0


def measure_ceilings(run: Run, experiment: Experiment, engine: Engine) -> None:
    """Measure the ceiling of each workload that has none, at its highest load, and store it.

    Only closed loops whose transactions do not wait have one. A ceiling that cannot be stored is left out,
    because the trials are complete.
    """
    baseline = experiment.variants[0]
    load = experiment.load_for(baseline)
    if load.has_timers or load.is_changing:
        return
    ceilings = read_ceilings(run)
    plans = {
        (trial.meta["variant"], trial.meta["workload"]): trial for trial in run.trials() if trial.is_done
    }
    added = False
    for title in (workload.title for workload in experiment.workloads):
        stored = plans.get((baseline.name, title))
        if stored is None or title in ceilings or not _has_ceiling(experiment.workload_for(baseline, title)):
            continue
        of_workload = [
            entry for entry in run.schedule() if (entry.variant, entry.workload) == (baseline.name, title)
        ]
        trial = max(of_workload, key=lambda entry: entry.point.connections)
        # The protocol of the target decides the form of the statements.
        target = stored.plan.get("target")
        if target is None:
            continue
        plan = trial_plan(experiment, trial, target, warmup_s=CEILING_WARMUP_S, workers=chosen_workers(run))
        plan["target"] = {"protocol": "null", "answer_us": 0}
        measure_us = round(min(CEILING_S_MAX, load.duration_s / 2) * US)
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
        ceilings[title] = ceiling
        added = True
    if added:
        with suppress(StoreProblem):
            write_ceilings(run, ceilings)


def _has_ceiling(workload: Workload) -> bool:
    """Whether the engine makes the transactions, and they do not wait."""
    is_replay = isinstance(workload, SqlWorkload) and not workload.transactions
    return not is_replay and not may_wait(workload)
