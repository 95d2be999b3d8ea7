"""The evidence of a run: for each trial its figures, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost, costs
from dbdyno.judge import arithmetic
from dbdyno.judge.figures import figures, interval_events
from dbdyno.judge.findings import generator_delays
from dbdyno.judge.foreign_load import ForeignLoad, foreign_load
from dbdyno.judge.recording import Recording, failure, read
from dbdyno.judge.window import drift, windows
from dbdyno.store import Run, StoredTrial
from dbdyno.store.measured import MeasuredTrial, Point, ScheduleEntry, Window
from dbdyno.store.records import EngineWarning

# Errors that `figures` raises for incomplete records.
_INCOMPLETE = (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError)


@dataclass
class Evidence:
    """The trials of a run that count, and what is known about them. The mappings are by index of
    the trial.
    """

    foreign: ForeignLoad
    trials: list[MeasuredTrial] = field(default_factory=list)
    # Trials that do not count, because their block was repeated.
    replaced: list[MeasuredTrial] = field(default_factory=list)
    # Variant and reason of each replaced trial in which the server failed.
    replaced_failures: list[tuple[str, str]] = field(default_factory=list)
    # Contradictions among the numbers of a trial.
    contradictions: dict[int, list[str]] = field(default_factory=dict)
    # Costs of a transaction, by key of the measure.
    costs: dict[int, dict[str, Cost]] = field(default_factory=dict)
    # Why the counters from which costs are computed were not read; "" if they were.
    unread: dict[int, str] = field(default_factory=dict)
    warnings: dict[int, list[EngineWarning]] = field(default_factory=dict)
    # Why earlier attempts of a trial gave no result.
    attempts: dict[int, list[str]] = field(default_factory=dict)


def gather(run: Run, experiment: Experiment) -> Evidence:
    """Read every trial. Those of the same block, workload and load get the same warm-up cut
    (judge/window.py).

    Raises StoreProblem if the run cannot be read.
    """
    stored = {trial.index: trial for trial in run.trials()}
    schedule = run.schedule()
    evidence = Evidence(foreign_load(list(stored.values()), schedule, experiment.design.blocks))
    counted: list[ScheduleEntry] = []
    for planned in schedule:
        entry = ScheduleEntry(
            planned.index, planned.block, planned.variant, planned.workload, planned.point.as_dict()
        )
        if entry.block in evidence.foreign.replaced:
            other = evidence.foreign.replaced[entry.block] + 1
            trial = stored.get(entry.index)
            if trial is not None and trial.failed_by == "server":
                reason = str(trial.meta.get("reason") or "failed")
                evidence.replaced_failures.append((entry.variant, reason))
            evidence.replaced.append(
                MeasuredTrial(
                    entry, f"replaced by block {other} because other processes used the CPUs", "harness"
                )
            )
        elif planned.repeats is None or entry.block in evidence.foreign.replaced.values():
            counted.append(entry)
    counted.sort(key=_group_key)
    for _, group in groupby(counted, key=_group_key):
        _measure_group(list(group), stored, experiment, evidence)
    evidence.trials.sort(key=lambda trial: trial.index)
    return evidence


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
            evidence.trials.append(MeasuredTrial(entry, "not run", "not-run"))
            continue
        recording = read(trial.records())
        evidence.warnings[entry.index] = [*recording.warnings, *generator_delays(recording)]
        if attempts := trial.attempts:
            evidence.attempts[entry.index] = [str(one.meta.get("reason") or "failed") for one in attempts]
        failed = failure(trial, recording)
        if failed is None and (gaps := _gaps(recording)):
            failed = gaps, "harness"
        if failed is None and (contradictions := arithmetic.find_contradictions(recording)):
            evidence.contradictions[entry.index] = contradictions
            failed = f"its numbers contradict each other: {'; '.join(contradictions)}", "harness"
        if failed is None:
            complete.append((entry, recording))
        else:
            evidence.trials.append(MeasuredTrial(entry, *failed))
    common_windows = windows(
        [recording for _, recording in complete], automatic=experiment.load.has_auto_warmup
    )
    for (entry, recording), window in zip(complete, common_windows, strict=True):
        measured = _measure(entry, recording, window, evidence.foreign.shares.get(entry.index))
        evidence.trials.append(measured)
        if measured.figures is not None:
            server = stored[entry.index].server
            evidence.unread[entry.index] = server.get("edges_unread", "")
            evidence.costs[entry.index] = costs(server, recording.ticks, recording.start_unix_us)


def _gaps(recording: Recording) -> str | None:
    """What is missing in the records (R04); None if the figures of the complete measurement can be
    computed.
    """
    try:
        complete = windows([recording], automatic=False)[0]
        figures(recording, complete)
        arithmetic.find_contradictions(recording)
    except _INCOMPLETE as error:
        return f"its records are incomplete ({type(error).__name__}: {error})"
    return None


def _measure(
    entry: ScheduleEntry, recording: Recording, window: Window, foreign: float | None
) -> MeasuredTrial:
    """The result of a complete recording. After the common warm-up cut no transaction may be left."""
    try:
        trial_figures = figures(recording, window)
    except _INCOMPLETE:
        left_s = window.length_us / 1e6
        return MeasuredTrial(
            entry,
            f"no transaction ended in the {left_s:.1f} s that are left after the warm-up cut",
            "server",
        )
    return MeasuredTrial(
        planned=entry,
        failure=None,
        figures=trial_figures,
        window=window,
        warmup_end_us=recording.measure["start_us"],
        seconds=interval_events(recording),
        drift=drift(recording, window),
        foreign=foreign,
    )
