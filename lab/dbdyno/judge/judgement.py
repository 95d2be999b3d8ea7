"""From a stored run to its verdict.

Only files are read, so a run can be judged again in ten years, by another machine, or after it was
interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost, costs
from dbdyno.judge import arithmetic, factorial, findings, scaling, sessions, statements, why
from dbdyno.judge.comparison import (
    Comparison,
    Scale,
    blocks_json,
    compare,
    curve_json,
    pair,
    point_json,
    scale,
)
from dbdyno.judge.findings import Finding
from dbdyno.judge.measured import Measured, Place, figures, seconds
from dbdyno.judge.recording import Recording, failure, read
from dbdyno.judge.sentence import sentence
from dbdyno.judge.window import Window, windows
from dbdyno.store import EXPLAINED, MEASURED, Run, StoredTrial
from dbdyno.store.files import write_json

SCHEMA = 1
# What `figures` raises where records lack something.
_LACKING = (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError)


def judge(run: Run) -> dict[str, Any]:
    """The verdict of a run, as verdict.json keeps it. Writes measured.json and explained.json beside it.

    The caller writes the verdict (`Run.write_verdict`). Raises StoreProblem where the run cannot be read.
    """
    experiment = run.experiment()
    evidence = _measure(run, experiment)
    standard = scale(open_loop=bool(experiment.load.rate), delta_percent=experiment.design.delta_percent)
    scaled = scaling.scaling(evidence.trials, experiment)
    why_so = why.explained(evidence.trials, evidence.costs, experiment)
    found = _with_overrides(
        [
            *run.findings(),
            *_findings(evidence, experiment, standard),
            *sessions.differences(run.trials(), experiment),
            *scaling.knee_findings(scaled),
            *why.unmoved(why_so, experiment),
            *statements.examined(evidence.trials, evidence.costs, experiment),
            *statements.plans(run.findings(), experiment),
        ],
        experiment,
    )
    comparisons = list(_comparisons(evidence.trials, experiment, standard, found))
    write_json(
        run.path / MEASURED,
        {
            "schema": SCHEMA,
            "trials": [trial.as_json() for trial in evidence.trials],
            "comparisons": [blocks_json(comparison) for comparison in comparisons],
        },
    )
    write_json(run.path / EXPLAINED, why_so)
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "baseline": experiment.variants[0].name,
        "comparisons": [_comparison_json(comparison, found, experiment) for comparison in comparisons],
        **({"scaling": scaled} if scaled else {}),
        **_factors_json(evidence.trials, experiment, standard, found),
        "checks": found,
    }


@dataclass
class _Evidence:
    """What was read: the figures of all planned trials, and what is odd about them, by index."""

    trials: list[Measured] = field(default_factory=list)
    faults: dict[int, list[str]] = field(default_factory=dict)
    # What one transaction cost the server.
    costs: dict[int, dict[str, Cost]] = field(default_factory=dict)
    # Why the counters behind them were not read, where they were not.
    unread: dict[int, str] = field(default_factory=dict)
    warnings: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)


def _measure(run: Run, experiment: Experiment) -> _Evidence:
    """Read every planned trial; those of one block, workload and point share a warm-up cut."""
    stored = {trial.index: trial for trial in run.trials()}
    places = [
        Place(entry["index"], entry["block"], entry["variant"], entry["workload"], entry["at"])
        for entry in run.schedule()
    ]
    evidence = _Evidence()
    places.sort(key=_company)
    for _, company in groupby(places, key=_company):
        _measure_company(list(company), stored, experiment, evidence)
    evidence.trials.sort(key=lambda trial: trial.place.index)
    return evidence


def _company(place: Place) -> tuple[int, str, tuple[str, float]]:
    return place.block, place.workload, place.level


def _measure_company(
    places: Sequence[Place], stored: Mapping[int, StoredTrial], experiment: Experiment, evidence: _Evidence
) -> None:
    """Measure the trials that are compared with one another."""
    complete: list[tuple[Place, Recording]] = []
    for place in places:
        if place.index not in stored:
            evidence.trials.append(Measured(place, failure="not run"))
            continue
        recording = read(stored[place.index].records())
        reason = failure(stored[place.index], recording) or _gaps(recording)
        evidence.warnings[place.index] = recording.warnings
        if reason is None:
            complete.append((place, recording))
        else:
            evidence.trials.append(Measured(place, failure=reason))
    spans = windows([recording for _, recording in complete], automatic=experiment.load.settles)
    for (place, recording), span in zip(complete, spans, strict=True):
        measured = _measured(place, recording, span)
        evidence.trials.append(measured)
        if measured.figures is None:
            continue
        evidence.faults[place.index] = arithmetic.faults(recording)
        server = stored[place.index].server
        evidence.unread[place.index] = server.get("edges_unread", "")
        evidence.costs[place.index] = costs(server, recording.ticks, recording.start_unix_us)


def _gaps(recording: Recording) -> str | None:
    """R04: whether everything the figures need is there, tried out on the whole measuring phase."""
    try:
        whole = windows([recording], automatic=False)[0]
        figures(recording, whole)
        arithmetic.faults(recording)
    except _LACKING as error:
        return f"its records are incomplete ({type(error).__name__}: {error})"
    return None


def _measured(place: Place, recording: Recording, span: Window) -> Measured:
    """The figures of a complete recording. What the common cut leaves of it may hold nothing."""
    try:
        found = figures(recording, span)
    except _LACKING:
        left_s = span.length_us / 1e6
        return Measured(
            place,
            failure=f"no transaction ended well in the {left_s:.1f} s that are left after the warm-up's cut",
        )
    return Measured(
        place=place,
        failure=None,
        figures=found,
        window=span,
        warmup_end_us=int(recording.measure["start_us"]),
        seconds=seconds(recording),
    )


def _findings(evidence: _Evidence, experiment: Experiment, standard: Scale) -> Iterator[Finding]:
    """What the records themselves say about the worth of the result."""
    trials = evidence.trials
    by_variant = {
        variant.name: [trial for trial in trials if trial.place.variant == variant.name]
        for variant in experiment.variants
    }
    yield from findings.completeness(trials, experiment.design.blocks)
    yield from findings.counters(evidence.unread, trials)
    yield from findings.arithmetic(evidence.faults, trials)
    if not experiment.load.changes:
        planned_us = round(experiment.load.duration_s * 1e6)
        yield from findings.steadiness(by_variant, planned_us, standard.delta_percent)
    yield from findings.generator(by_variant)
    yield from findings.engine_warnings(evidence.warnings)
    yield from findings.lost_connections(by_variant)
    for workload in experiment.workloads:
        of_workload = {
            variant: [trial for trial in found if trial.place.workload == workload.title]
            for variant, found in by_variant.items()
        }
        yield from findings.errors(of_workload, workload.title)
        yield from findings.contract(of_workload, workload.title)
    if experiment.load.rate:
        yield from findings.overload(by_variant)


def _with_overrides(found: Sequence[Mapping[str, Any]], experiment: Experiment) -> list[Finding]:
    """Every finding once, a stop with the reason why the experiment's author lets it pass."""
    return [
        {**finding, "override": finding.get("override") or experiment.override.get(str(finding["code"]))}
        if finding["level"] == "stop"
        else {"override": None, **finding}
        for finding in found
    ]


def _comparisons(
    trials: Sequence[Measured], experiment: Experiment, standard: Scale, found: Sequence[Finding]
) -> Iterator[Comparison]:
    """Each variant against the baseline, on each workload, in the order of the file."""
    baseline = experiment.variants[0].name
    for variant in experiment.variants[1:]:
        for workload in experiment.workloads:
            of_workload = [trial for trial in trials if trial.place.workload == workload.title]
            pairs = [
                pair(of_workload, point.at(), baseline, variant.name) for point in experiment.load.points()
            ]
            names = (baseline, variant.name, workload.title)
            yield compare(pairs, names, standard, _stops(_bearing(found, names)))


def _factors_json(
    trials: Sequence[Measured], experiment: Experiment, standard: Scale, found: Sequence[Finding]
) -> dict[str, Any]:
    """`factors` in verdict.json, there only where the experiment has some."""
    if len(experiment.factors) < 2:
        # A single factor is what the comparisons say already.
        return {}
    # Every variant takes part in every contrast.
    return {"factors": factorial.judged(trials, experiment, standard, stopped=bool(_stops(found)))}


def _bearing(found: Sequence[Finding], names: tuple[str, str, str]) -> list[Finding]:
    """The findings that bear on a comparison: on its variants or on the whole, and on its workload."""
    baseline, variant, workload = names
    return [
        finding
        for finding in found
        if finding.get("subject", "") in ("", baseline, variant, workload)
        and finding["evidence"].get("workload", workload) == workload
    ]


def _stops(found: Sequence[Finding]) -> list[Finding]:
    """Stops that nobody overrode. Those of R04 speak of single points, which then have no blocks."""
    return [f for f in found if f["level"] == "stop" and not f["override"] and f["code"] != "R04"]


def _comparison_json(
    comparison: Comparison, found: Sequence[Finding], experiment: Experiment
) -> dict[str, Any]:
    names = (comparison.baseline, comparison.variant, comparison.workload)
    text = sentence(comparison, _bearing(found, names), experiment.design.blocks)
    return {
        "variant": comparison.variant,
        "workload": comparison.workload,
        "points": [point_json(point, comparison.scale) for point in comparison.points],
        "curve": curve_json(comparison, text),
    }
