"""The evidence of a run: for each trial its figures, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from dbdyno.experiment.metrics import CPU, PERCENTILES, percentile_of
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial, planned_blocks
from dbdyno.explain import Cost, costs
from dbdyno.measure import arithmetic, slices
from dbdyno.measure.figures import (
    INCOMPLETE,
    distribution,
    drift,
    figures,
    interval_events,
    statements,
    ticks,
    windows,
)
from dbdyno.measure.foreign_load import CODE as FOREIGN_CODE
from dbdyno.measure.foreign_load import ForeignLoad, foreign_load
from dbdyno.measure.recording import Recording, failure, generator_delays, read
from dbdyno.measure.server_state import ServerState, read_state
from dbdyno.server_record import ForeignRecord
from dbdyno.store import Run, StoredTrial
from dbdyno.store.measured import BackgroundFigures, MeasuredTrial, Point, ScheduleEntry, Window
from dbdyno.store.records import EngineWarning
from dbdyno.text import compose, join

# The facts of each engine of a trial, as in trial.json (`EngineFacts` in run/engine.py).
Engines = Sequence[Mapping[str, Any]]


@dataclass
class Evidence:
    """The trials of a run that count, and what is known about them. The mappings are by index of
    the trial.
    """

    foreign: ForeignLoad
    trials: list[MeasuredTrial] = field(default_factory=list)
    # Trials that do not count, because their block was repeated or, with `design.stop`, is not finished.
    replaced: list[MeasuredTrial] = field(default_factory=list)
    # Variant and reason of each replaced trial in which the server failed.
    replaced_failures: list[tuple[str, str]] = field(default_factory=list)
    # Contradictions among the numbers of a trial.
    contradictions: dict[int, list[str]] = field(default_factory=dict)
    # Costs of a transaction, by key of the measure.
    costs: dict[int, dict[str, Cost]] = field(default_factory=dict)
    # Why the counters from which costs are computed were not read; "" if they were.
    unread: dict[int, str] = field(default_factory=dict)
    # What the server's record says about its machine and data.
    states: dict[int, ServerState] = field(default_factory=dict)
    warnings: dict[int, list[EngineWarning]] = field(default_factory=dict)
    # What is known about each engine of a fleet (`EngineFacts`); only of trials that a fleet has run.
    engines: dict[int, Engines] = field(default_factory=dict)
    # Why earlier attempts of a trial gave no result.
    attempts: dict[int, list[str]] = field(default_factory=dict)
    # Seconds from the beginning of a block to that of the next one, the median; None if unknown.
    block_s: float | None = None

    def add(self, evidence: Evidence) -> None:
        """Add what is known about other trials."""
        self.trials += evidence.trials
        self.contradictions |= evidence.contradictions
        self.costs |= evidence.costs
        self.unread |= evidence.unread
        self.states |= evidence.states
        self.warnings |= evidence.warnings
        self.attempts |= evidence.attempts
        self.engines |= evidence.engines


@dataclass
class Known:
    """What earlier calls of `gather` have read. A trial that gave no result is read again, because it may run
    again.
    """

    # The evidence of the trials that are compared with one another, by their indices.
    groups: dict[tuple[int, ...], Evidence] = field(default_factory=dict)
    # Index of a trial -> its foreign load.
    foreign: dict[int, ForeignRecord | None] = field(default_factory=dict)


def scheduled(run: Run) -> Experiment:
    """The experiment of a run, with as many blocks as its schedule has: a top-up adds some."""
    experiment = run.experiment()
    if experiment.design.stop is None:
        return experiment
    design = experiment.design.model_copy(update={"blocks": len(planned_blocks(run.schedule()))})
    return experiment.model_copy(update={"design": design})


def gather(run: Run, experiment: Experiment, earlier: Known | None = None) -> Evidence:
    """Read every trial. Those of the same block, workload and load get the same warm-up cut
    (measure/figures.py).

    With `design.stop` only finished blocks count, and the trials are in the order in which the blocks were
    finished. What is in `earlier` is not read again. Raises StoreProblem if the
    run cannot be read.
    """
    earlier = earlier or Known()
    stored = {trial.index: trial for trial in run.trials()}
    schedule = run.schedule()
    finished = _finished_blocks(schedule, stored) if experiment.design.stop else {}
    blocks = {planned.block for planned in schedule if planned.repeats is None}
    blocks &= finished.keys() or blocks
    evidence = Evidence(foreign_load(list(stored.values()), schedule, sorted(blocks), earlier.foreign))
    evidence.block_s = _block_seconds(schedule, stored)
    counted: list[ScheduleEntry] = []
    for planned in schedule:
        if finished and planned.block not in finished and planned.index not in stored:
            continue
        entry = ScheduleEntry(
            planned.index, planned.block, planned.variant, planned.workload, planned.point.as_dict()
        )
        if entry.block in evidence.foreign.replaced:
            attempts = evidence.foreign.replaced[entry.block] + 1
            trial = stored.get(entry.index)
            if trial is not None and trial.failed_by == "server":
                reason = str(trial.meta.get("reason") or "failed")
                evidence.replaced_failures.append((entry.variant, reason))
            evidence.replaced.append(
                MeasuredTrial(
                    entry,
                    compose(
                        "replaced by block {other} because other processes used the CPUs", other=attempts
                    ),
                    "harness",
                )
            )
        elif finished and entry.block not in finished:
            evidence.replaced.append(MeasuredTrial(entry, compose("its block is not finished"), "harness"))
        elif planned.repeats is None or entry.block in evidence.foreign.replaced.values():
            counted.append(entry)
    counted.sort(key=_group_key)
    for _, group in groupby(counted, key=_group_key):
        entries = list(group)
        key = tuple(entry.index for entry in entries)
        measured = earlier.groups.get(key)
        if measured is None:
            measured = Evidence(evidence.foreign)
            _measure_group(entries, stored, experiment, measured)
            if all(index in stored and stored[index].is_result for index in key):
                earlier.groups[key] = measured
        evidence.add(measured)
    evidence.trials.sort(key=lambda trial: (finished.get(trial.block, 0), trial.index))
    return evidence


def _finished_blocks(schedule: Sequence[Trial], stored: Mapping[int, StoredTrial]) -> dict[int, int]:
    """Block -> its place in the order in which the blocks were finished."""
    last_start: dict[int, tuple[int, int, int]] = {}
    unfinished = {planned.block for planned in schedule if planned.index not in stored}
    for planned in schedule:
        if planned.block not in unfinished:
            trial = stored[planned.index]
            # Runs of older versions have only the time.
            start = (trial.sequence, int(trial.meta.get("started_unix_us") or 0), planned.index)
            last_start[planned.block] = max(start, last_start.get(planned.block, start))
    return {
        block: place for place, block in enumerate(sorted(last_start, key=lambda entry: last_start[entry]))
    }


def _block_seconds(schedule: Sequence[Trial], stored: Mapping[int, StoredTrial]) -> float | None:
    """The median time from the beginning of a block to that of the next one; None with fewer than two."""
    begin_us: dict[int, int] = {}
    for planned in schedule:
        trial = stored.get(planned.index)
        if trial is not None and (start_us := trial.meta.get("started_unix_us")):
            begin_us[planned.block] = min(int(start_us), begin_us.get(planned.block, int(start_us)))
    times = [later - earlier for earlier, later in pairwise(sorted(begin_us.values()))]
    return median(times) / 1e6 if times else None


def _group_key(entry: ScheduleEntry) -> tuple[int, str, Point]:
    """Equal for trials that are compared with one another: those of one block, workload and load."""
    return entry.block, entry.workload, entry.point


def _measure_group(
    entries: Sequence[ScheduleEntry],
    stored: Mapping[int, StoredTrial],
    experiment: Experiment,
    evidence: Evidence,
) -> None:
    """Measure the trials that are compared with one another."""
    complete: list[tuple[ScheduleEntry, Recording]] = []
    for entry in entries:
        trial = stored.get(entry.index)
        if trial is None:
            evidence.trials.append(MeasuredTrial(entry, compose("not run"), "not-run"))
            continue
        recording = read(trial.records(), trial.meta.get("slices"))
        evidence.warnings[entry.index] = [*recording.warnings, *generator_delays(recording)]
        if attempts := trial.attempts:
            evidence.attempts[entry.index] = [
                str(attempt.meta.get("reason") or "failed") for attempt in attempts
            ]
        failed = failure(trial, recording)
        if failed is None and (gaps := _gaps(recording)):
            failed = gaps, "harness"
        if failed is None and (contradictions := arithmetic.find_contradictions(recording)):
            evidence.contradictions[entry.index] = contradictions
            failed = (
                compose("its numbers contradict each other: {listed}", listed=join("; ", contradictions)),
                "harness",
            )
        if failed is None:
            complete.append((entry, recording))
        else:
            evidence.trials.append(MeasuredTrial(entry, *failed))
    if not slices.keep_common([recording for _, recording in complete]):
        reason = compose("no slice counts in all variants of its block")
        evidence.trials += [MeasuredTrial(entry, reason, "harness") for entry, _ in complete]
        return
    common_windows = windows(
        [recording for _, recording in complete], automatic=experiment.load.has_auto_warmup
    )
    for (entry, recording), window in zip(complete, common_windows, strict=True):
        measured = _measure(
            entry, recording, window, evidence.foreign.shares.get(entry.index), experiment.metrics
        )
        # With an override, effects are those that were measured.
        measured = replace(
            measured,
            foreign_stays=FOREIGN_CODE in experiment.override,
            background=background_figures(stored[entry.index], experiment, recording, window),
        )
        if measured.figures is not None:
            server = stored[entry.index].server
            evidence.unread[entry.index] = server.get("edges_unread", "")
            cost = costs(server, recording.ticks, recording.start_unix_us)
            evidence.costs[entry.index] = cost
            evidence.states[entry.index] = read_state(server)
            if engines := stored[entry.index].meta.get("fleet"):
                evidence.engines[entry.index] = engines
            if CPU in experiment.metrics and "cpu_us" in cost and cost["cpu_us"].counted > 0.0:
                with_cpu = replace(measured.figures, cpu_us_per_transaction=cost["cpu_us"].each)
                measured = replace(measured, figures=with_cpu)
        evidence.trials.append(measured)


def _gaps(recording: Recording) -> str | None:
    """What is missing in the records (R04); None if the figures of the complete measurement can be
    computed.
    """
    try:
        complete = windows([recording], automatic=False)[0]
        figures(recording, complete)
        arithmetic.find_contradictions(recording)
    except INCOMPLETE as error:
        return compose("its records are incomplete ({name}: {error})", name=type(error).__name__, error=error)
    return None


def _measure(
    entry: ScheduleEntry,
    recording: Recording,
    window: Window,
    foreign: float | None,
    metrics: Sequence[str],
) -> MeasuredTrial:
    """The result of a complete recording. After the common warm-up cut no transaction may be left."""
    percents = {metric: percent for metric in metrics if (percent := percentile_of(metric)) is not None}
    further = {name: percent for name, percent in percents.items() if name not in PERCENTILES}
    try:
        trial_figures = figures(recording, window, further)
    except INCOMPLETE:
        left_s = window.length_us / 1e6
        return MeasuredTrial(
            entry,
            compose(
                "no transaction ended in the {left_s:.1f} s that are left after the warm-up cut",
                left_s=left_s,
            ),
            "server",
        )
    return MeasuredTrial(
        planned=entry,
        failure=None,
        figures=trial_figures,
        window=window,
        warmup_end_us=window.start_us if recording.is_sliced else recording.measure["start_us"],
        seconds=interval_events(recording),
        drift=drift(recording, window),
        foreign=foreign,
        slices=slices.throughputs(recording) if recording.is_sliced else None,
        distribution_us=distribution(recording, window),
        statements=statements(recording, window),
        ticks=ticks(recording, window),
    )


def background_figures(
    trial: StoredTrial, experiment: Experiment, recording: Recording, window: Window
) -> dict[str, BackgroundFigures]:
    """Title -> figures of each background load of a trial, which has this `recording` and `window`.

    Both engines give the wall time of their start, so the window of a trial is known in the time of the
    background load. It counts in the intervals within that window, of which a measurement has 20 or more.
    """
    variant = experiment.variant(str(trial.meta["variant"]))
    by_title = {}
    for entry in experiment.backgrounds(variant, str(trial.meta["workload"])):
        background_records = read(trial.background(entry.title))
        shift_us = recording.start_unix_us - background_records.start_unix_us
        inside = [
            i
            for i in background_records.intervals
            if i["start_us"] >= window.start_us + shift_us and i["end_us"] <= window.end_us + shift_us
        ]
        counted_us = inside[-1]["end_us"] - inside[0]["start_us"] if inside else 0
        events = sum(i["events"] for i in inside)
        of_load = None
        if inside:
            with suppress(*INCOMPLETE):
                # What was unfinished when the load was stopped was due after the window.
                background_records.measure["censored_us"] = background_records.measure["drained_us"] = ()
                of_load = figures(
                    background_records, Window(inside[0]["start_us"], inside[-1]["end_us"], None)
                )
        by_title[entry.title] = BackgroundFigures(
            rate=entry.rate,
            connections=entry.connections,
            counted_us=counted_us,
            throughput=events * 1e6 / counted_us if counted_us else 0.0,
            figures=of_load,
        )
    return by_title
