"""The evidence of a run, trial by trial: figures, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost, costs
from dbdyno.judge import arithmetic
from dbdyno.judge.findings import generator_delays
from dbdyno.judge.foreign import ForeignLoad, foreign_load
from dbdyno.judge.measured import figures, seconds
from dbdyno.judge.recording import Recording, failure, read
from dbdyno.judge.window import drift, windows
from dbdyno.store import Run, StoredTrial
from dbdyno.store.measured import MeasuredTrial, Place, Window

# Errors that `figures` raises for incomplete records.
_LACKING = (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError)


@dataclass
class Evidence:
    """The trials of a run that count, and their problems, by index."""

    foreign: ForeignLoad
    trials: list[MeasuredTrial] = field(default_factory=list)
    # Trials of blocks that were replaced by a repeat; they do not count.
    replaced: list[MeasuredTrial] = field(default_factory=list)
    # Variant and reason of those replaced trials that their server failed.
    replaced_failures: list[tuple[str, str]] = field(default_factory=list)
    # Contradictions among the numbers of a trial.
    contradictions: dict[int, list[str]] = field(default_factory=dict)
    # Costs per transaction, by trial.
    costs: dict[int, dict[str, Cost]] = field(default_factory=dict)
    # Why the counters behind the costs were not read, by trial.
    unread: dict[int, str] = field(default_factory=dict)
    warnings: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)
    # Reasons of earlier attempts, by trial.
    attempts: dict[int, list[str]] = field(default_factory=dict)


def gather(run: Run, experiment: Experiment) -> Evidence:
    """Read every trial that counts. Trials of the same block, workload and load get the same warm-up cut.

    Raises StoreProblem if the run cannot be read.
    """
    stored = {trial.index: trial for trial in run.trials()}
    schedule = run.schedule()
    evidence = Evidence(foreign_load(list(stored.values()), schedule, experiment.design.blocks))
    counted: list[Place] = []
    for planned in schedule:
        place = Place(planned.index, planned.block, planned.variant, planned.workload, planned.point.level())
        if place.block in evidence.foreign.replaced:
            other = evidence.foreign.replaced[place.block] + 1
            trial = stored.get(place.index)
            if trial is not None and trial.failed_by == "server":
                reason = str(trial.meta.get("reason") or "failed")
                evidence.replaced_failures.append((place.variant, reason))
            evidence.replaced.append(
                MeasuredTrial(place, f"replaced by block {other} because of foreign load", "harness")
            )
        elif planned.repeats is None or place.block in evidence.foreign.replaced.values():
            counted.append(place)
    counted.sort(key=_company)
    for _, company in groupby(counted, key=_company):
        _measure_company(list(company), stored, experiment, evidence)
    evidence.trials.sort(key=lambda trial: trial.place.index)
    return evidence


def _company(place: Place) -> tuple[int, str, tuple[str, float]]:
    return place.block, place.workload, place.level


def _measure_company(
    places: Sequence[Place], stored: Mapping[int, StoredTrial], experiment: Experiment, evidence: Evidence
) -> None:
    """Measure the trials that are compared with one another."""
    complete: list[tuple[Place, Recording]] = []
    for place in places:
        trial = stored.get(place.index)
        if trial is None:
            evidence.trials.append(MeasuredTrial(place, "not run", "not-run"))
            continue
        recording = read(trial.records())
        totals = (recording.end or {}).get("phases", {}).get("measure", {})
        evidence.warnings[place.index] = [*recording.warnings, *generator_delays(totals)]
        if attempts := trial.attempts:
            evidence.attempts[place.index] = [str(one.meta.get("reason") or "failed") for one in attempts]
        failed = failure(trial, recording)
        if failed is None and (gaps := _gaps(recording)):
            failed = gaps, "harness"
        if failed is None and (contradictions := arithmetic.find_contradictions(recording)):
            evidence.contradictions[place.index] = contradictions
            failed = f"its numbers contradict each other: {'; '.join(contradictions)}", "harness"
        if failed is None:
            complete.append((place, recording))
        else:
            evidence.trials.append(MeasuredTrial(place, *failed))
    spans = windows([recording for _, recording in complete], automatic=experiment.load.settles)
    for (place, recording), span in zip(complete, spans, strict=True):
        measured = _measure(place, recording, span, evidence.foreign.shares.get(place.index))
        evidence.trials.append(measured)
        if measured.figures is not None:
            server = stored[place.index].server
            evidence.unread[place.index] = server.get("edges_unread", "")
            evidence.costs[place.index] = costs(server, recording.ticks, recording.start_unix_us)


def _gaps(recording: Recording) -> str | None:
    """R04: what is missing in the records; found by computing the figures of the complete measurement."""
    try:
        whole = windows([recording], automatic=False)[0]
        figures(recording, whole)
        arithmetic.find_contradictions(recording)
    except _LACKING as error:
        return f"its records are incomplete ({type(error).__name__}: {error})"
    return None


def _measure(place: Place, recording: Recording, span: Window, foreign: float | None) -> MeasuredTrial:
    """The figures of a complete recording. After the common cut it may have no transactions left."""
    try:
        counted = figures(recording, span)
    except _LACKING:
        left_s = span.length_us / 1e6
        return MeasuredTrial(
            place,
            f"no transaction ended in the {left_s:.1f} s that are left after the cut of the warm-up",
            "server",
        )
    return MeasuredTrial(
        place=place,
        failure=None,
        figures=counted,
        window=span,
        warmup_end_us=int(recording.measure["start_us"]),
        seconds=seconds(recording),
        drift=drift(recording, span),
        foreign=foreign,
    )
