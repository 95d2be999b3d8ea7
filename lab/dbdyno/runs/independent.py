"""Compares what has no blocks in common: two runs of one variant each, and figures of others' documents.

Two runs, such as before and after a change of a server, are independent: nothing was measured in both states
close together in time, so nothing separates the change from what else changed between the runs (other
processes, temperature, data, caches). Each run has an interval for the mean logarithm of its metric over
its blocks, by the same tests as in a comparison, and the interval of the change is that of
`stats.difference`.

A document of others has one or a few results of each load, so nothing is tested: the comparison shows how
large a difference is at the loads that both have, next to the spread of the blocks of a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from dbdyno.decide.decision import scale, stopping
from dbdyno.decide.effects import Assessment, assess
from dbdyno.experiment.metrics import HIGHER_IS_BETTER
from dbdyno.experiment.model import Experiment
from dbdyno.runs.comparable import common_points
from dbdyno.say.wording import effect_text, finite, loads, relation
from dbdyno.stats.difference import difference
from dbdyno.stats.paired import ALPHA, Effect, Ratios
from dbdyno.store.measured import MeasuredFile, MeasuredTrial
from dbdyno.store.several_runs import IndependentComparison, IndependentEffect
from dbdyno.text import compose, compose_count, join

WEAKER = compose(
    "Independent runs, and therefore weaker: nothing separates the change from the drift between the two runs"
)
# One of two runs: its experiment, and the figures of its trials.
IndependentSide = tuple[Experiment, MeasuredFile]


def compare_independent(first: IndependentSide, second: IndependentSide) -> list[IndependentComparison]:
    """The second run against the first on each workload that both have, by the first metric."""
    titles = [workload.title for workload in second[0].workloads]
    common = [workload.title for workload in first[0].workloads if workload.title in titles]
    return [_compare(first, second, title, ALPHA / len(common)) for title in common]


def _compare(
    first: IndependentSide, second: IndependentSide, title: str, alpha: float
) -> IndependentComparison:
    metric = scale(first[0]).metric
    points = common_points(first[0], second[0])
    by_run = [[_at(measured, title, at, metric) for at in points] for _, measured in (first, second)]
    # Logarithms are taken around those of the first run, so that all effects are small numbers.
    centres = [_centre(blocks, metric) for blocks in by_run[0]]
    assessed = [
        assess(
            [_logs(blocks, metric, centre) for blocks, centre in zip(of_run, centres, strict=True)],
            alpha,
            stopping(experiment),
        )
        for of_run, (experiment, _) in zip(by_run, (first, second), strict=True)
    ]
    effects = zip(assessed[0].load_effects, assessed[1].load_effects, strict=True)
    entries = [
        _effect(
            entry,
            second_effect,
            assessed,
            metric,
            of_points=(by_run[0][index], by_run[1][index]),
            at=points[index],
        )
        for index, (entry, second_effect) in enumerate(effects)
    ]
    first_overall, second_overall = assessed[0].overall, assessed[1].overall
    change = _change(first_overall, second_overall)
    shown = None if change is None else effect_text(metric, change, average=len(points) > 1)
    curve = _effect(first_overall, second_overall, assessed, metric)
    return IndependentComparison(
        workload=title,
        metric=metric,
        points=entries,
        curve=curve,
        sentence=_sentence(
            curve, shown, metric, join(" ", (title, loads(points))), assessed[0].blocks_needed
        ),
    )


def _effect(
    first: Effect | None,
    second: Effect | None,
    assessed: Sequence[Assessment],
    metric: str,
    *,
    of_points: tuple[Sequence[MeasuredTrial], Sequence[MeasuredTrial]] = ((), ()),
    at: dict[str, Any] | None = None,
) -> IndependentEffect:
    change = _change(first, second)
    ends = change.interval_percent if change else None
    return IndependentEffect(
        at=at,
        first=_median(of_points[0], metric),
        second=_median(of_points[1], metric),
        effect_percent=finite(change.effect_percent) if change else None,
        interval_percent=ends and (ends[0] if ends[0] > -100.0 else None, finite(ends[1])),
        confidence=1.0 - assessed[0].alpha,
        blocks=(first.blocks if first else 0, second.blocks if second else 0),
        verdict=_verdict(change, metric),
    )


def _change(first: Effect | None, second: Effect | None) -> Effect | None:
    """The change from the first to the second; None if one of them is unknown, or known only as a bound."""
    return difference(first, second) if first and second else None


def _verdict(
    change: Effect | None, metric: str
) -> Literal["faster", "slower", "undecided", "too-few-blocks", "not-comparable"]:
    if change is None:
        return "not-comparable"
    if change.interval_percent is None:
        return "too-few-blocks"
    if not change.is_significant:
        return "undecided"
    return "faster" if (change.effect_percent > 0.0) == (metric in HIGHER_IS_BETTER) else "slower"


def _sentence(curve: IndependentEffect, shown: str | None, metric: str, where: str, needed: int) -> str:
    values = {"shown": shown, "where": where, "weaker": WEAKER}
    if shown is None:
        return compose(
            "The second run and the first cannot be compared: one has no result, {where}. {weaker}.", **values
        )
    first_count, second_count = curve.blocks
    blocks = (
        compose("{one} and {other} blocks", one=first_count, other=second_count)
        if first_count != second_count
        else compose_count(first_count, "{number} block each", "{number} blocks each")
    )
    match curve.verdict:
        case "too-few-blocks":
            text = compose(
                "Too few blocks for a verdict ({blocks}; {needed} are needed)", blocks=blocks, needed=needed
            )
            return compose(
                "{text}: the second run against the first, {shown}, {where}. {weaker}.",
                text=text,
                **values,
            )
        case "undecided":
            return compose(
                "Undecided: the second run against the first, {shown}, {where}; {blocks}. {weaker}.",
                blocks=blocks,
                **values,
            )
    second, first = compose("the second run"), compose("the first")
    return compose(
        "{relation}: {shown}, {where}; {blocks}. {weaker}.",
        relation=relation(metric, second, first, faster=curve.verdict == "faster"),
        blocks=blocks,
        **values,
    )


def _at(measured: MeasuredFile, title: str, at: dict[str, Any], metric: str) -> list[MeasuredTrial]:
    """The trials of a run on a workload at a load, one per block."""
    return [
        trial
        for trial in measured.trials
        if trial.workload == title and dict(trial.at) == at and trial.has(metric)
    ]


def _centre(trials: Sequence[MeasuredTrial], metric: str) -> float:
    finite_values = [value for trial in trials if math.isfinite(value := trial.log_bounds(metric)[0])]
    return median(finite_values) if finite_values else 0.0


def _logs(trials: Sequence[MeasuredTrial], metric: str, centre: float) -> Ratios:
    bounds = {trial.block: trial.log_bounds(metric) for trial in trials}
    return Ratios(
        {block: low - centre for block, (low, _) in bounds.items()},
        {block: high - centre for block, (_, high) in bounds.items()},
    )


def _median(trials: Sequence[MeasuredTrial], metric: str) -> float | None:
    return finite(median(trial.value(metric) for trial in trials)) if trials else None


# A figure of a document -> that of a trial, and what turns the latter into the unit of the former.
_FIGURES = {
    "tps": ("throughput", 1.0),
    "mean_ms": ("latency_mean_us", 1e-3),
    "p95_ms": ("latency_p95_us", 1e-3),
    "p99_ms": ("latency_p99_us", 1e-3),
}


@dataclass(frozen=True)
class Measured:
    """The figures of one variant: load -> figure -> the values of its results."""

    name: str
    workload: str
    loads: Mapping[int, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class Row:
    """One figure at one load, of two variants."""

    connections: int
    figure: str
    first: Sequence[float]
    second: Sequence[float]

    @property
    def change_percent(self) -> float:
        """The change from the median of the first to that of the second."""
        return 100 * (median(self.second) / median(self.first) - 1)


def of_document(reading: Mapping[str, Any]) -> list[Measured]:
    """The variants of a stored document."""
    variants = []
    for variant in reading["variants"]:
        loads: dict[int, dict[str, list[float]]] = {}
        for result in variant["results"]:
            if result["connections"] is not None:
                figures = loads.setdefault(int(result["connections"]), {})
                for name in _FIGURES.keys() & result["figures"].keys():
                    figures.setdefault(name, []).append(float(result["figures"][name]["value"]))
        variants.append(Measured(variant["name"], variant["workload"], loads))
    return variants


def of_trials(trials: Sequence[MeasuredTrial]) -> list[Measured]:
    """The variants of a run, by workload."""
    loads: dict[tuple[str, str], dict[int, dict[str, list[float]]]] = {}
    for trial in trials:
        connections = trial.at.get("connections")
        if trial.figures is None or connections is None:
            continue
        figures = loads.setdefault((trial.variant, trial.workload), {}).setdefault(int(connections), {})
        for name, (metric, factor) in _FIGURES.items():
            figures.setdefault(name, []).append(trial.figures.metric(metric) * factor)
    return [Measured(variant, workload, of_loads) for (variant, workload), of_loads in loads.items()]


def rows(first: Measured, second: Measured) -> Iterator[Row]:
    """The loads and figures that both have."""
    for connections in sorted(first.loads.keys() & second.loads.keys()):
        first_figures, second_figures = first.loads[connections], second.loads[connections]
        for name in (name for name in _FIGURES if name in first_figures and name in second_figures):
            if median(first_figures[name]) > 0:
                yield Row(connections, name, first_figures[name], second_figures[name])
