"""Runs the trials of a block whose variants alternate in slices (`design.pairing = "slices"`).

::

    for each workload and point:  before_trial of each variant
                                  pre-warm and connect one paused engine per variant
                                  rounds of the warm-up, then rounds that count:
                                      one slice of each variant, in random order
                                  finish every engine, then after_trial of each variant; store the trials

All servers run, and only one of them has load at any time. So the machine's speed, which drifts over seconds,
is the same for all variants of a round.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack

from dbdyno.checks import Context
from dbdyno.experiment.model import Experiment, Point
from dbdyno.experiment.schedule import Trial, round_order, trial_number
from dbdyno.experiment.slices import load_s, rounds
from dbdyno.finding import Finding
from dbdyno.run import progress
from dbdyno.run.affinity import on_cpus
from dbdyno.run.coordinator import Coordinator, hook_findings
from dbdyno.run.failures import StartFailure
from dbdyno.run.foreign import ForeignMeter, combine, create_meter
from dbdyno.run.sliced_trial import SlicedTrial
from dbdyno.run.trial import Outcome, store_unrun_trial, unreachable_reason
from dbdyno.server_record import ForeignRecord, ServerRecord
from dbdyno.servers.kinds.process import server_cpus
from dbdyno.servers.server import Description, Server
from dbdyno.servers.usage import TICKS_PER_S
from dbdyno.store.preparation import derived_warmup_s

# Maximum share of the time in which the work of the servers is read.
METER_SHARE = 0.01
# An idle server may use this share of its CPUs, half of what other processes may use (D06): its work
# is foreign load for the other variants, but recurs in every round.
IDLE_SHARE_MAX = 0.05


def complete_points(planned: Iterable[Trial], finished: Collection[int]) -> set[int]:
    """Those of the `finished` trials whose partners have finished too: the trials of a point run together."""
    members: dict[tuple[int, str, Point], list[int]] = {}
    for trial in planned:
        members.setdefault((trial.block, trial.workload, trial.point), []).append(trial.index)
    return {index for one in members.values() if set(one) <= set(finished) for index in one}


def run_in_slices(
    coordinator: Coordinator,
    trials: Sequence[Trial],
    started: Mapping[str, Context | StartFailure],
    server_of: Callable[[Trial], Server],
) -> dict[str, list[str]]:
    """Run the trials of one block whose servers all run, then the AFTER_GROUP checks. Returns the reasons of
    failed trials by variant.

    `started` are the contexts of the READY checks, by variant, or why a server did not get ready. If a server
    dies, its remaining trials are stored as failed, and those of the others run without it. Raises Stopped if
    a check stops the experiment, and StoreProblem.
    """
    reasons: dict[str, list[str]] = {name: [] for name in started}
    failures = {name: one for name, one in started.items() if isinstance(one, StartFailure)}
    contexts = {name: one for name, one in started.items() if not isinstance(one, StartFailure)}
    for unready in failures.values():
        if unready.failed_by == "harness":
            # The block runs again, so the others need not run now.
            for trial in trials:
                reasons[trial.variant] += coordinator.fail_trials([trial], server_of(trial), unready)
            return reasons
    server_failures = {name: one.reason for name, one in failures.items()}
    for load in dict.fromkeys((trial.workload, trial.point) for trial in trials):
        members = [trial for trial in trials if (trial.workload, trial.point) == load]
        for trial in members:
            coordinator.listen(progress.TrialBegan(trial))
        outcomes = _run_point(
            coordinator, [one for one in members if one.variant not in server_failures], contexts
        )
        for trial in members:
            name, server = trial.variant, server_of(trial)
            reason, rate = server_failures.get(name, ""), None
            if reason:
                store_unrun_trial(coordinator.run, coordinator.experiment, trial, server, reason)
            else:
                outcome = outcomes[name]
                coordinator.keep(hook_findings(trial, outcome.hook_failures))
                coordinator.keep(_idle_findings(trial, outcome.stored.server, contexts[name]))
                reason, rate = str(outcome.stored.meta.get("reason", "")), outcome.events_per_s()
            coordinator.listen(progress.TrialEnded(trial, reason, rate))
            if not reason:
                continue
            reasons[name].append(reason)
            if name not in server_failures:
                # A server that did not answer is not asked again, which may take minutes.
                is_frozen = outcomes[name].is_frozen
                if failure := reason if is_frozen else unreachable_reason(server):
                    server_failures[name] = failure
    for name, context in contexts.items():
        if name not in server_failures:
            last = [trial for trial in trials if trial.variant == name][-1]
            coordinator.check_after_group(last, context)
    return reasons


def _run_point(
    coordinator: Coordinator, trials: Sequence[Trial], contexts: Mapping[str, Context]
) -> dict[str, Outcome]:
    """Run the trials of one point together, and store them. Returns their outcomes by variant."""
    if not trials:
        return {}
    experiment, run = coordinator.experiment, coordinator.run
    derived_s = derived_warmup_s(run)
    warmup_s = experiment.load.warmup_allowance_s() if derived_s is None else derived_s
    load = trials[0].workload, trials[0].point.connections, warmup_s
    warmup, counted = rounds(experiment, *load)
    _, of_each_s = load_s(experiment, *load)
    meter = combine(
        [
            create_meter(experiment, experiment.variant(trial.variant), _description(contexts[trial.variant]))
            for trial in trials
        ]
    )
    with ExitStack() as stack:
        sliced = {
            trial.variant: stack.enter_context(
                SlicedTrial(
                    run,
                    experiment,
                    trial,
                    warmup,
                    len(trials) * of_each_s,
                    server=_server(contexts[trial.variant]),
                    description=_description(contexts[trial.variant]),
                )
            )
            for trial in trials
        }
        # All hooks run first: one that empties a cache would undo the pre-warming of another variant.
        for one in sliced.values():
            one.prepare()
        _abandon(sliced)
        for one in _running(sliced):
            one.connect(coordinator.engine.binary)
        # On the load generator's CPUs this process takes no time from the servers.
        with on_cpus(experiment.client.cpus):
            foreign = _run_rounds(experiment, trials[0], sliced, (warmup, counted), meter)
        for one in _running(sliced):
            one.end_measurement(foreign)
        for one in sliced.values():
            one.end_load()
        return {name: one.finish() for name, one in sliced.items()}


def _run_rounds(
    experiment: Experiment,
    trial: Trial,
    sliced: Mapping[str, SlicedTrial],
    numbers: tuple[int, int],
    foreign: ForeignMeter | None,
) -> ForeignRecord | None:
    """Run the rounds of a point, until all trials have failed or one has failed because of dbdyno. Returns
    the foreign load of the measurement. `trial` is any of the point, and `numbers` are those of `rounds`.
    """
    warmup, counted = numbers
    first, next_metered = None, warmup
    for number in range(warmup + counted):
        if _abandon(sliced) or not _running(sliced):
            break
        if number == warmup:
            for one in _running(sliced):
                one.begin_measurement()
            first = foreign.read() if foreign else None
        began, is_metered = time.monotonic(), number == next_metered
        for one in _running(sliced) if is_metered else ():
            one.meter.read()
        for name in round_order(experiment, trial, number):
            if name in sliced and sliced[name].is_running:
                sliced[name].run_slice(number, is_metered=is_metered)
        if is_metered:
            for one in _running(sliced):
                one.meter.read(one.meter.idle)
            next_metered = number + _rounds_between(_running(sliced), time.monotonic() - began)
    _abandon(sliced)
    return foreign.foreign_load(first, foreign.read()) if foreign else None


def _rounds_between(trials: Sequence[SlicedTrial], round_s: float) -> int:
    """The distance between two metered rounds of that length, such that readings take little time."""
    cost_s = sum(one.meter.end_round() for one in trials)
    return max(1, math.ceil(cost_s / (METER_SHARE * round_s)))


def _idle_findings(trial: Trial, server: ServerRecord, context: Context) -> list[Finding]:
    """R11: a server that was busy while others had load."""
    idle = server["slices"]["idle"] if "slices" in server else None
    if idle is None or idle["seconds"] <= 0.0:
        return []
    assert context.variant is not None, "the server is that of a variant"
    cpus = server_cpus(context.variant.server.cpus)
    others = [one for one in context.experiment.variants if one.name != trial.variant]
    is_shared = any(cpus & server_cpus(one.server.cpus) for one in others)
    # The kernel counts CPU time in ticks, and one at each end may be wrong.
    busy_s = max(0.0, idle["cpu_s"] - 2.0 / TICKS_PER_S)
    share, mib = busy_s / idle["seconds"] / len(cpus), idle["write_bytes"] / idle["seconds"] / 2**20
    if share <= IDLE_SHARE_MAX:
        return []
    evidence = {"trial": trial.index, "share": round(share, 4), "write_mib_per_s": round(mib, 3)}
    effect = (
        "took this from them" if is_shared else "has CPUs of its own, but may have slowed down their disk"
    )
    text = (
        f"{trial.variant} used {100 * share:.0f} % of its server's CPUs, and wrote {mib:.1f} MiB/s, while "
        f"other variants had load (trial {trial_number(trial.index)}; limit {100 * IDLE_SHARE_MAX:.0f} % of "
        f"the CPUs): it {effect}."
    )
    fix = 'Set a longer slice in [design], or pairing = "trials".'
    return [Finding("R11", "note", text, evidence, trial.variant, fix=fix)]


def _running(sliced: Mapping[str, SlicedTrial]) -> list[SlicedTrial]:
    return [one for one in sliced.values() if one.is_running]


def _abandon(sliced: Mapping[str, SlicedTrial]) -> bool:
    """If a trial failed because of dbdyno, fail the others too and return True, because the point runs again.

    A failure of a server is a result, for whose bounds the others need complete trials.
    """
    failed = [name for name, one in sliced.items() if one.failure.get("failed_by") == "harness"]
    reason = sliced[failed[0]].failure["reason"] if failed else ""
    for one in sliced.values() if failed else ():
        one.abandon(f"the trial of {failed[0]} failed, with which it alternated: {reason}")
    return bool(failed)


def _server(context: Context) -> Server:
    assert context.server is not None, "the server runs"
    return context.server


def _description(context: Context) -> Description:
    assert context.description is not None, "a server is described when it has started"
    return context.description
