"""Determines the warm-up time of all trials, by long warm-up trials before the first block: one
per variant and workload.

A short trial cannot show that its server is still cold, and discarding its start does not help if the server
stays cold until its end. So with ``warmup = "auto"`` each variant first runs for a minute or more at its
highest load, from the state in which every group begins. The warm-up of all trials is 1.5 times the longest
time that a variant took to settle (`stats.steady.settle`). `warmup_trials.json` stores the warm-up, so that a
resumed run uses the same one.

Warm-up trials require servers that dbdyno starts and fresh data for every group. Otherwise a warm-up trial
would leave its rows and a warm cache to the first block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from dbdyno.checks import Context, Moment
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.load import SHARES, LatencyObjective, found_rates, rate_text
from dbdyno.experiment.model import Experiment, Point
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.problem import ExitCode, Problem
from dbdyno.result_text import counted
from dbdyno.run import progress
from dbdyno.run.coordinator import Coordinator, hook_findings
from dbdyno.run.engine import Engine, Record
from dbdyno.run.failures import StartFailure
from dbdyno.run.plan import US, trial_plan
from dbdyno.run.session import TrialSession
from dbdyno.run.starting import GroupServers
from dbdyno.stats.steady import MEAN_S, settle
from dbdyno.store import Run
from dbdyno.store.endings import WARMUP
from dbdyno.store.preparation import (
    WarmupTrial,
    WarmupTrials,
    chosen_workers,
    derived_warmup_s,
    warmup_trial_writer,
    write_warmup_trials,
)
from dbdyno.text import compose, join

SCHEMA = 1
# A warm-up trial takes this many seconds, or this multiple of a measurement if that is longer.
LENGTH_MIN_S = 60.0
LENGTH_FACTOR = 4.0
# The warm-up of all trials is this multiple of the longest time to settle, and at least a second.
MARGIN = 1.5
WARMUP_MIN_S = 1.0
# The search for rates ends at this power of a half.
HALVINGS_MAX = 7


def has_warmup_trials(experiment: Experiment) -> bool:
    """Whether the experiment determines its warm-up by warm-up trials."""
    return (
        experiment.load.has_auto_warmup
        and experiment.design.renews_data
        and all(variant.server.is_private for variant in experiment.variants)
    )


def has_trials(experiment: Experiment) -> bool:
    """Whether trials before the first block determine the warm-up, or find rates for a latency objective."""
    return has_warmup_trials(experiment) or experiment.load.needs_probe


def length_s(experiment: Experiment) -> float:
    """The length of a warm-up trial in seconds; a trial that only finds rates is as long as the others."""
    if experiment.load.needs_probe and not has_warmup_trials(experiment):
        return experiment.load.warmup_allowance_s() + experiment.load.duration_s
    return max(LENGTH_MIN_S, LENGTH_FACTOR * experiment.load.duration_s)


def warmup_trials(experiment: Experiment, titles: Iterable[str]) -> list[Trial]:
    """The warm-up trials in order: every variant on every workload, at the highest load, each in its own
    slot.

    The schedule does not contain them: their indexes are negative, and the last one is -1.
    """
    load = experiment.load
    highest = max(load.points(), key=lambda point: point.rate or point.connections)
    if load.needs_probe:
        # A closed loop at all connections, whose throughput limits the rates.
        highest = Point(connections=load.connections[0])
    settings = [
        (title, variant.name, slot) for title in titles for slot, variant in enumerate(experiment.variants)
    ]
    return [
        Trial(number - len(settings), 0, number - len(settings), variant, workload, highest, slot)
        for number, (workload, variant, slot) in enumerate(settings)
    ]


def missing_trials(experiment: Experiment, run: Run, titles: Sequence[str]) -> list[Trial]:
    """The trials that determine the warm-up and the rates of a latency objective; none if an earlier attempt
    has determined both, or has run trials.
    """
    has_rates = experiment.load.has_rates or not experiment.load.needs_probe
    has_warmup = derived_warmup_s(run) is not None or not has_warmup_trials(experiment)
    return [] if (has_rates and has_warmup) or run.trials() else warmup_trials(experiment, titles)


def determine_warmup(
    coordinator: Coordinator, servers: GroupServers, trials: Sequence[Trial], later: Sequence[Trial]
) -> None:
    """Run the warm-up trials `trials`, and store the warm-up and the rates derived from them; `later` are the
    trials that follow. One that fails runs once more. Raises Stopped, Problem.
    """
    experiment = coordinator.experiment

    def attempt(trial: Trial, number: int) -> WarmupTrial:
        return _attempt(coordinator, servers, trial, number)

    def is_failed(entry: WarmupTrial) -> bool:
        return entry["failure"] is not None

    entries = list(servers.run_first(trials, later, attempt, is_failed, progress.WarmupTrialEnded()))
    if entries and experiment.load.needs_probe:
        _use_rates(coordinator, entries)
    if entries and has_warmup_trials(experiment):
        document = to_document(experiment, entries)
        write_warmup_trials(coordinator.run, document)
        coordinator.listen(progress.WarmupChosen(document["warmup_s"]))
        coordinator.keep(findings(experiment, document))
        coordinator.step(describe(experiment, document, len(later)))


def _attempt(coordinator: Coordinator, servers: GroupServers, trial: Trial, number: int) -> WarmupTrial:
    """The entry of one warm-up trial in warmup_trials.json."""
    experiment = coordinator.experiment
    sought = [compose("warm-up")] if has_warmup_trials(experiment) else []
    sought += [compose("rates")] if experiment.load.needs_probe else []
    coordinator.step(
        compose(
            "{variant}: {seconds:.0f} s of load to determine {sought}",
            variant=trial.variant,
            seconds=length_s(experiment),
            sought=join(", ", sought),
        )
    )
    with servers.started(trial) as started:
        if isinstance(started, StartFailure):
            return unrun_trial(experiment, trial, started.reason)
        with coordinator.times.step(WARMUP):
            entry, hook_failures = run_warmup_trial(
                coordinator.run, coordinator.engine, trial, started, number
            )
    coordinator.keep(hook_findings(trial, hook_failures))
    return entry


def _use_rates(coordinator: Coordinator, entries: Sequence[WarmupTrial]) -> None:
    """Store the rates of a latency objective, check them, and use them in all trials. Raises Stopped, and
    Problem if a trial failed.
    """
    reached = peaks(entries)
    rates = found_rates(min(entry.get("top_rate", entry["peak"]) for entry in entries))
    coordinator.run.set_rates(rates, reached)
    coordinator.experiment.load.set_found_rates(tuple(rates))
    shown = ", ".join(f"{name} {rate_text(peak)}" for name, peak in reached.items())
    coordinator.require(Moment.DESIGN, Context(coordinator.experiment))
    coordinator.step(f"rates: {rates[0]:g} to {rates[-1]:g} transactions/s (the closed loops had {shown})")


def run_warmup_trial(
    run: Run, engine: Engine, trial: Trial, context: Context, number: int
) -> tuple[WarmupTrial, list[str]]:
    """Run one warm-up trial on the server of `context`. Returns its entry in warmup_trials.json, and the
    messages of failed hooks.

    If the trial fails, `failure` in its entry has the reason. Raises StoreProblem.
    """
    assert context.server is not None, "the server runs"
    experiment = context.experiment
    load = experiment.load_for(experiment.variant(trial.variant))
    target, planned_s = context.server.load_address().target(load.transport), length_s(experiment)
    plan = trial_plan(experiment, trial, target, warmup_s=0.0, workers=chosen_workers(run))
    plan["phases"]["measure_us"] = round(planned_s * US)
    intervals: list[Record] = []
    # At a set rate throughput is the same from the first second on. The probe of a latency objective has no
    # rate yet.
    is_rate_set = trial.point.rate is not None or load.max_rate is not None

    def plan_at(rate: float, earlier_trials: int) -> Record:
        at_rate = replace(trial, point=Point(connections=load.connections[0], rate=rate))
        return trial_plan(
            experiment,
            at_rate,
            target,
            warmup_s=WARMUP_MIN_S,
            workers=chosen_workers(run),
            earlier_trials=earlier_trials,
        )

    def listen(record: Record) -> None:
        if record["type"] == "interval" and record["data"]["phase"] == "measure":
            intervals.append(record["data"])

    with (
        warmup_trial_writer(run, number, trial.variant) as writer,
        TrialSession(context, trial, writer, measured_s=planned_s) as session,
    ):
        session.prepare()
        session.connect()
        session.load(engine, plan, writer.append_event, on_record=listen)
        session.require_within_limits()
        failure = session.reason
        seconds = _seconds(intervals, by_latency=is_rate_set)
        top_rate = None
        if not failure and seconds and load.needs_probe:
            top_rate = _search_top_rate(session, engine, plan_at, _peak(experiment, seconds, planned_s))
        session.end()
    if not failure and not seconds:
        failure = "no transaction ended in at least one second"
    entry = unrun_trial(experiment, trial, failure)
    entry["settle_s"] = settle(seconds) if not failure and has_warmup_trials(experiment) else None
    entry["series"] = [fmean(seconds[end - MEAN_S : end]) for end in range(MEAN_S, len(seconds) + 1, MEAN_S)]
    entry["records"], entry["hooks"] = writer.records, writer.hooks
    if not failure and not is_rate_set:
        entry["peak"] = _peak(experiment, seconds, planned_s)
    if top_rate is not None:
        entry["top_rate"] = top_rate
    return entry, session.hooks.failures


def _search_top_rate(
    session: TrialSession, engine: Engine, plan: Callable[[float, int], Record], peak: float
) -> float:
    """The rate whose half meets the latency objective: the throughput `peak` of the closed loop, or after
    some trials a half of it, a quarter …; the last one if a trial fails.

    `plan` gives the plan of a trial from its rate and the number of trials before it.
    """
    objective = session.experiment.load.latency_objective
    assert objective is not None, "only a latency objective needs a rate"
    rate = peak
    for number in range(1, HALVINGS_MAX + 1):
        session.load(
            engine, plan(rate / 2, number), lambda _line: None, earlier_trials=number, has_hook=False
        )
        end = session.result.end if session.result is not None and not session.reason else None
        if end is None or _meets(objective, end["phases"]["measure"]):
            break
        rate /= 2
    return rate


def _meets(objective: LatencyObjective, measured: Record) -> bool:
    """Whether enough of the transactions that were due have ended within the limit."""
    within = sum(count for latency_us, count in measured["latency_us"] if latency_us <= objective.limit_us)
    return bool(within >= measured["accounting"]["due"] * (1.0 - objective.share_beyond) > 0)


def unrun_trial(experiment: Experiment, trial: Trial, failure: str) -> WarmupTrial:
    """The entry of a warm-up trial without measured values, such as one whose server did not get ready."""
    return {
        "variant": trial.variant,
        "workload": trial.workload,
        "at": trial.point.as_dict(),
        "length_s": length_s(experiment),
        "settle_s": None,
        "series": [],
        "failure": failure or None,
        "records": "",
        "hooks": {},
    }


def _peak(experiment: Experiment, seconds: Sequence[float], length_s: float) -> float:
    """The throughput at the end of a closed-loop trial: in the last third of a warm-up trial."""
    tail_s = length_s / 3.0 if has_warmup_trials(experiment) else experiment.load.duration_s
    return fmean(seconds[-max(1, round(tail_s)) :])


def _seconds(intervals: Sequence[Record], *, by_latency: bool) -> list[float]:
    """One value for each one-second interval: transactions per second, or the mean latency.

    Empty if an interval has no latency.
    """
    if not by_latency:
        return [
            float(interval["events"]) * US / (interval["end_us"] - interval["start_us"])
            for interval in intervals
        ]
    if any(not interval["events"] for interval in intervals):
        return []
    return [float(interval["latency_sum_us"]) / interval["events"] for interval in intervals]


def to_document(experiment: Experiment, entries: Sequence[WarmupTrial]) -> WarmupTrials:
    """The content of warmup_trials.json."""
    longest_s = max(_warmup_s(entry, experiment) for entry in entries)
    return {
        "schema": SCHEMA,
        "warmup_s": math.ceil(10.0 * max(WARMUP_MIN_S, longest_s)) / 10.0,
        "trials": list(entries),
    }


def _warmup_s(entry: WarmupTrial, experiment: Experiment) -> float:
    """The warm-up time that one warm-up trial calls for; the maximum if the trial failed or the server did
    not settle.

    In these two cases even the maximum may be too short. The test for drift over the blocks reports that.
    """
    if entry["failure"] is not None or entry["settle_s"] is None:
        return experiment.load.warmup_allowance_s()
    return MARGIN * entry["settle_s"]


def describe_probe(experiment: Experiment) -> str:
    """What finds the rates of a latency objective, in one line."""
    load = experiment.load
    return (
        f"{len(SHARES)} rates from {SHARES[0] * 100:.0f} to {SHARES[-1] * 100:.0f} % of the throughput of "
        f"the weaker variant at {counted(load.connections[0], 'connection')}, measured by one trial of "
        f"{length_s(experiment):g} s per variant, and halved until half of it meets the objective"
    )


def peaks(entries: Sequence[WarmupTrial]) -> dict[str, float]:
    """Variant -> the throughput of its closed loop, on the slowest workload. Raises Problem if a trial
    failed.
    """
    for entry in entries:
        if not entry.get("peak"):
            why = entry["failure"] or "no transaction ended in its last part"
            raise Problem(
                f"the rates of the latency objective are unknown: the trial of {entry['variant']} that finds "
                f"them failed ({why})",
                "Give rate = [...] in [load], or lower connections",
                ExitCode.NOT_COMPARABLE,
            )
    reached: dict[str, float] = {}
    for entry in entries:
        reached[entry["variant"]] = min(entry["peak"], reached.get(entry["variant"], math.inf))
    return reached


def describe(experiment: Experiment, document: WarmupTrials, trials: int) -> str:
    """The chosen warm-up, the reason, and its cost over all trials, in one line."""
    warmup_s = document["warmup_s"]
    slowest = max(
        document["trials"], key=lambda entry: (entry["settle_s"] is None, _warmup_s(entry, experiment))
    )
    name = _name(experiment, slowest)
    if slowest["failure"] is not None:
        why = f"the warm-up trial of {name} failed"
    elif slowest["settle_s"] is None:
        why = f"{name} had not settled after {slowest['length_s']:g} s"
    elif not slowest["settle_s"]:
        why = f"{name} settled from the start"
    else:
        why = f"{name} settled after {slowest['settle_s']:.1f} s"
    all_trials = format_duration(warmup_s * trials)
    return f"warm-up: {warmup_s:.1f} s per trial ({why}), adds {all_trials} to the run"


def findings(experiment: Experiment, document: WarmupTrials) -> list[Finding]:
    """R01: warm-up trials that failed, or in which the server did not settle."""
    findings = []
    for entry in document["trials"]:
        name = _name(experiment, entry)
        evidence = {key: entry.get(key) for key in ("variant", "workload", "length_s")}
        if entry["failure"] is not None:
            text = (
                f"the warm-up trial of {name} failed ({entry['failure']}): whether its server is warm is not "
                f"checked, and trials warm up for {document['warmup_s']:g} s. Set warmup in [load] to the "
                "time that the server needs"
            )
            evidence |= {"what": "no-warmup-trial"}
        elif entry["settle_s"] is None:
            metric = "latency" if experiment.load.rate else "throughput"
            text = (
                f"{metric} of {name} had not settled after {entry['length_s']:g} s: trials warm up for "
                f"{document['warmup_s']:g} s, and may measure a server that is not warm. Set a longer "
                "warmup in [load]"
            )
            evidence |= {"what": "warmup-trial"}
        else:
            continue
        findings.append(Finding("R01", "warn", text, evidence, entry["variant"]))
    return findings


def _name(experiment: Experiment, entry: WarmupTrial) -> str:
    on = f" on {entry['workload']}" if len(experiment.workloads) > 1 else ""
    return f"{entry['variant']}{on}"
