"""The effect of each factor, averaged over the others, and the interactions of factors.

::

    version x threads          main effect of 8.4      = mean over threads of (8.4 - 8.0)
                               main effect of pool     = mean over versions of (pool - per-connection)
                               interaction of the two  = (pool - per-connection on 8.4) - (… on 8.0)

Each of them is a contrast of the log metric within each block at each load, so the methods for comparisons
apply (Box, Hunter & Hunter 2005, Statistics for Experimenters, ch. 5). All main effects and interactions of a
run, over all workloads, are one family. A factor whose effect depends on another factor has no verdict of its
own: its sentence gives the effect at each level of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.experiment.family import Contrast, contrasts
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.caveats import with_caveats
from dbdyno.judge.comparison import Scale, overall_p_value
from dbdyno.judge.comparison import change as entry_change
from dbdyno.judge.decision import failures, is_disturbed, is_unfinished, on_workload, scale, stops
from dbdyno.judge.effects import Assessment, Conditions, Judged, assess, judge_family
from dbdyno.judge.wording import (
    METRICS,
    SIZE_UNSURE,
    better,
    blocks_text,
    change,
    confidence,
    excluded,
    has_no_estimate,
    interval,
    is_ratio,
    is_unknown,
    join_words,
    loads,
    size,
    times_interval,
)
from dbdyno.stats.paired import ALPHA, Bound, Effect, Ratios, effect, mean_ratios
from dbdyno.stats.signed_rank import blocks_needed
from dbdyno.stats.verdict_rule import Circumstances, Verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Factor

# Block -> lower and upper bound of the log metric of one variant at one load.
Logs = Mapping[int, tuple[float, float]]
# Levels of the variant -> its logs at each load, in the order of the file.
Cells = Mapping[tuple[str, ...], Sequence[Logs]]


@dataclass(frozen=True)
class _Question:
    """One contrast on one workload."""

    contrast: Contrast
    workload: str
    cells: Cells
    assessment: Assessment
    conditions: Conditions
    # Findings that prevent a result; empty if there is a result.
    stops: Sequence[Finding]
    # Caveats of the sentence: failures of servers, and findings that concern the workload.
    failures: Sequence[str]
    findings: Sequence[Finding]


def judge_factors(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding]
) -> list[Factor]:
    """`factors` in verdict.json: main effects, then interactions, of each workload."""
    standard = scale(experiment)
    questions: list[_Question] = []
    for workload in experiment.workloads:
        mine = [trial for trial in trials if trial.workload == workload.title]
        relevant = on_workload(workload.title, findings)
        stopping = stops(relevant)
        conditions = Conditions(
            Circumstances(bool(stopping), is_unfinished(mine), is_disturbed(relevant)), standard.delta_percent
        )
        failed = list(dict(failures(mine)).values())
        cells = _cells(mine, experiment, standard)
        for order in (1, 2):
            for contrast in contrasts(experiment.factors, order):
                assessment = assess(_ratios(contrast.weights, cells), standard.alpha)
                questions.append(
                    _Question(
                        contrast, workload.title, cells, assessment, conditions, stopping, failed, relevant
                    )
                )
    words = judge_family(
        [(one.assessment, one.conditions) for one in questions],
        higher_is_faster=standard.higher_is_faster,
        alpha=ALPHA,
    )
    judged = list(zip(questions, words, strict=True))
    return [_entry(one, word, judged, experiment) for one, word in judged]


def _cells(trials: Sequence[MeasuredTrial], experiment: Experiment, standard: Scale) -> Cells:
    """The log metric by its bounds, per combination of levels, load and block."""
    cells: dict[tuple[str, ...], list[Logs]] = {}
    for variant in experiment.variants:
        levels = tuple(variant.levels[factor.name] for factor in experiment.factors)
        cells[levels] = [
            {
                trial.block: trial.log_bounds(standard.metric)
                for trial in trials
                if trial.variant == variant.name and trial.at == point.level() and trial.is_result
            }
            for point in experiment.load.points()
        ]
    return cells


def _ratios(weights: Mapping[tuple[str, ...], float], cells: Cells) -> list[Ratios]:
    """Bounds of a contrast at each load; the lower bound uses the upper bounds of the subtracted terms."""
    ratios = []
    for load in range(len(next(iter(cells.values())))):
        logs = {cell: cells[cell][load] for cell in weights}
        blocks = sorted(set.intersection(*(set(of) for of in logs.values())))
        ratios.append(
            Ratios(
                {block: _bound(weights, logs, block, upper=False) for block in blocks},
                {block: _bound(weights, logs, block, upper=True) for block in blocks},
            )
        )
    return ratios


def _bound(
    weights: Mapping[tuple[str, ...], float], logs: Mapping[tuple[str, ...], Logs], block: int, *, upper: bool
) -> float:
    total = sum(weight * logs[cell][block][(weight > 0) == upper] for cell, weight in weights.items())
    # If infinite bounds have both signs, the sum is unknown.
    return (math.inf if upper else -math.inf) if math.isnan(total) else total


def _entry(
    one: _Question, word: Judged, judged: Sequence[tuple[_Question, Judged]], experiment: Experiment
) -> Factor:
    standard = scale(experiment)
    partners = _interacting(one, judged) if len(one.contrast.factors) == 1 else []
    has_word = word.verdict not in (Verdict.NOT_COMPARABLE, Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS)
    verdict = Verdict.MIXED if partners and has_word else word.verdict
    text = _sentence(one, word, verdict, partners, experiment)
    return Factor(
        factors=list(one.contrast.factors),
        levels=list(one.contrast.levels),
        against=list(one.contrast.baseline_levels),
        workload=one.workload,
        metric=standard.metric,
        **entry_change(word.overall),
        confidence=1.0 - standard.alpha,
        blocks=word.overall.blocks if word.overall else 0,
        p_value=overall_p_value(word),
        verdict=verdict.value,
        sentence=with_caveats(text, one.failures, one.findings),
    )


def _interacting(one: _Question, judged: Sequence[tuple[_Question, Judged]]) -> list[str]:
    """The factors that interact significantly with the factor of a main effect."""
    (factor,), (level,) = one.contrast.factors, one.contrast.levels
    partners: list[str] = []
    for other, word in judged:
        named = dict(zip(other.contrast.factors, other.contrast.levels, strict=True))
        sure = word.verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.MIXED)
        if len(named) == 2 and other.workload == one.workload and named.get(factor) == level and sure:
            partners += [name for name in named if name != factor]
    return list(dict.fromkeys(partners))


def _sentence(
    one: _Question, word: Judged, verdict: Verdict, partners: Sequence[str], experiment: Experiment
) -> str:
    standard, overall = scale(experiment), word.overall
    named = _names(one.contrast)
    where = f"{one.workload} {loads([point.level() for point in experiment.load.points()])}"
    blocks = blocks_text(overall.blocks if overall else 0, experiment.design.blocks)
    if verdict == Verdict.NOT_COMPARABLE:
        return f"Not comparable: {named}, {where}, because {_reason(one)}"
    if verdict in (Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS):
        metric = METRICS[standard.metric] if len(one.contrast.factors) == 1 else "ratio"
        value = f"{metric} {change(overall)}" if overall else "no result"
        if verdict == Verdict.UNFINISHED:
            return f"Not finished ({blocks}): {named}, {value} so far, {where}"
        numbers = f"{blocks.rpartition(' ')[0]}; {blocks_needed(standard.alpha)} are needed"
        return f"Too few blocks for a verdict ({numbers}): {named}, {value}, {where}"
    assert overall is not None, "every other verdict has an effect"
    if partners:
        parts = "; ".join(_at_each_level(one, partner, experiment) for partner in partners)
        depends = f"depends on {join_words(partners)} ({parts})"
        return f"{METRICS[standard.metric]}, {named}: {depends}, {where}; {blocks}"
    if len(one.contrast.factors) == 2:
        text = _interaction(one.contrast, overall, verdict, standard, where)
    else:
        text = _main_effect(one, word, verdict, experiment, where)
    if verdict == Verdict.UNDECIDED:
        text = "; ".join([text, *excluded(overall)])
    unsure = (
        f"; {SIZE_UNSURE}"
        if verdict in (Verdict.FASTER, Verdict.SLOWER) and not overall.is_significant
        else ""
    )
    return f"{text}; {blocks}{unsure}"


def _reason(one: _Question) -> str:
    """Why there is no result of a contrast."""
    if one.stops:
        return f"{one.stops[0].text.strip().rstrip('.')} ({one.stops[0].code})"
    return "no block holds all of its combinations at every load (R04)"


def _names(contrast: Contrast) -> str:
    """The levels of a contrast as text: version 8.4 against 8.0."""
    if len(contrast.factors) == 2:
        other, factor = contrast.factors
        return f"whether the effect of {factor} depends on {other}"
    return f"{contrast.factors[0]} {contrast.levels[0]} against {contrast.baseline_levels[0]}"


def _main_effect(one: _Question, word: Judged, verdict: Verdict, experiment: Experiment, where: str) -> str:
    standard, overall = scale(experiment), word.overall
    assert overall is not None, "the caller has looked"
    (factor,), (level,), (base,) = one.contrast.factors, one.contrast.levels, one.contrast.baseline_levels
    others = [other.name for other in experiment.factors if other.name != factor]
    mean = f"mean over {join_words(others)}"
    shown = size(standard.metric, overall, standard.delta_percent, average=len(word.load_effects) > 1)
    match verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            relation = better(standard.metric, faster=verdict == Verdict.FASTER)
            return f"{factor} {level} {relation} {base}: {shown}, {mean}, {where}"
        case Verdict.EQUIVALENT:
            each = "at each load " if len(word.load_effects) > 1 else ""
            return (
                f"{factor} {level} and {base} are equivalent: {each}any difference is within "
                f"±{standard.delta_percent:g} % (declared); {shown}, {mean}, {where}"
            )
        case Verdict.MIXED:
            parts = [
                f"{loads([point.level()])} {change(effect_at)}"
                for point, effect_at in zip(experiment.load.points(), word.load_effects, strict=True)
                if effect_at is not None and effect_at.is_significant
            ]
            return (
                f"It depends on the load: {_names(one.contrast)}, {METRICS[standard.metric]} "
                f"{', '.join(parts)}, {mean}, {where}"
            )
        case _:
            return f"Undecided: {_names(one.contrast)}, {shown}, {mean}, {where}"


def _interaction(contrast: Contrast, overall: Effect, verdict: Verdict, standard: Scale, where: str) -> str:
    (other, factor), (other_level, level) = contrast.factors, contrast.levels
    other_base, base = contrast.baseline_levels
    ratio = f"the {METRICS[standard.metric]} ratio of {level} to {base}"
    changes = f"{ratio} {_changes(overall)} from {other_base} to {other_level}"
    match verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            return f"The effect of {factor} depends on {other}: {changes}, {where}"
        case Verdict.EQUIVALENT:
            return (
                f"The effect of {factor} does not depend on {other} by more than "
                f"±{standard.delta_percent:g} % (declared): {changes}, {where}"
            )
        case Verdict.MIXED:
            return f"Whether the effect of {factor} depends on {other} differs between the loads, {where}"
        case _:
            return f"Undecided whether the effect of {factor} depends on {other}: {changes}, {where}"


def _changes(overall: Effect) -> str:
    """The effect as text: changes by +35.5 % (95 % interval +32.5 to +38.5)."""
    ends = overall.interval_percent
    if is_unknown(overall):
        return "changes by an unknown factor"
    if ends is None or overall.bound != Bound.EXACT or has_no_estimate(overall):
        return f"changes by {change(overall)}"
    inside = confidence(overall.alpha)
    if is_ratio(overall.effect_percent):
        return f"becomes {change(overall)} as high ({inside} {times_interval(ends)})"
    return f"changes by {change(overall)} ({inside} {interval(ends)})"


def _at_each_level(one: _Question, partner: str, experiment: Experiment) -> str:
    """A factor's effect at each level of another factor: +25.0 % with per-connection, -20.0 % with pool."""
    (factor,), (level,), (base,) = one.contrast.factors, one.contrast.levels, one.contrast.baseline_levels
    names = [each.name for each in experiment.factors]
    at, of = names.index(factor), names.index(partner)
    parts = []
    for other in next(each.levels for each in experiment.factors if each.name == partner):
        cells = [cell for cell in one.cells if cell[of] == other and cell[at] in (level, base)]
        share = 2.0 / len(cells)
        weights = {cell: share if cell[at] == level else -share for cell in cells}
        at_level = effect(mean_ratios(_ratios(weights, one.cells)))
        parts.append(f"{change(at_level) if at_level else 'no result'} with {other}")
    return ", ".join(parts)
