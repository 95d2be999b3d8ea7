"""Judges factorial experiments: the effect of each factor, averaged over the others, and interactions of two
factors.

::

    version x threads          main effect of 8.4      = mean over threads of (8.4 - 8.0)
                               main effect of pool     = mean over versions of (pool - per-connection)
                               interaction of the two  = (pool - per-connection on 8.4) - (… on 8.0)

Each of these effects is a contrast of log metrics within one block at one load, so the methods for
comparisons apply (Box, Hunter & Hunter 2005, Statistics for Experimenters, ch. 5). All main effects and
interactions of a run, over all workloads, share the family-wise error rate. If the effect of a factor depends
on another factor, its verdict is "mixed", and its sentence gives the effect at each level of the other
factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.change_text import is_ratio
from dbdyno.experiment.family import Contrast, contrasts, family_size
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.caveats import caveats, with_caveats
from dbdyno.judge.comparison import Scale, overall_p_value
from dbdyno.judge.comparison import change as entry_change
from dbdyno.judge.decision import (
    blocks_at_most,
    failures,
    finished_and_planned,
    is_disturbed,
    is_unfinished,
    on_workload,
    scale,
    stopping,
    stops,
)
from dbdyno.judge.effects import Assessment, Conditions, Judged, assess, judge_family
from dbdyno.judge.outlook import outlook_text
from dbdyno.judge.slices import block_ratio
from dbdyno.judge.wording import (
    SIZE_UNSURE,
    blocks_clause,
    blocks_of,
    blocks_text,
    change,
    confidence,
    effect_text,
    excluded,
    has_no_estimate,
    interval,
    is_unknown,
    join_words,
    loads,
    relation,
    times_interval,
)
from dbdyno.stats.paired import ALPHA, Bound, Effect, Ratios, effect, mean_ratios
from dbdyno.stats.verdict_rule import Circumstances, Verdict
from dbdyno.store.document import Metric
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import FactorEffect
from dbdyno.text import Text, compose, join

# Block -> the trial of one variant at one load.
Blocks = Mapping[int, MeasuredTrial]
# Levels of a variant -> its trials at each load, in the order of the file.
Cells = Mapping[tuple[str, ...], Sequence[Blocks]]


@dataclass(frozen=True)
class _AssessedContrast:
    """A contrast on one workload, before its verdict is known."""

    contrast: Contrast
    workload: str
    cells: Cells
    assessment: Assessment
    conditions: Conditions
    # Findings that forbid a result; empty if there is a result.
    stops: Sequence[Finding]
    # For the caveats of the sentence: failures of servers, and findings about the workload.
    failures: Sequence[str]
    findings: Sequence[Finding]
    # Finished and planned blocks; with `design.stop`, the number of blocks that the run may have.
    blocks: tuple[int, int]
    blocks_at_most: int | None


# Every contrast on every workload, with its effects.
Contrasts = Sequence[tuple[_AssessedContrast, Judged]]


def entries(contrasts: Contrasts, experiment: Experiment, block_s: float | None = None) -> list[FactorEffect]:
    """The entries of `factors` in verdict.json: main effects, then interactions, for each workload.

    `block_s` is the time of one block in seconds, if it is known.
    """
    return [_entry(one, judged, contrasts, experiment, block_s) for one, judged in contrasts]


def verdicts(contrasts: Contrasts) -> Iterator[tuple[str, str, Judged, Verdict]]:
    """Text, workload, effects and verdict of each contrast."""
    for one, judged in contrasts:
        yield _contrast_text(one.contrast), one.workload, judged, _verdict(one, judged, contrasts)


def judge_contrasts(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding]
) -> Contrasts:
    """The contrasts of a factorial experiment, judged as one family."""
    metric_scale, family = scale(experiment), stopping(experiment, family_size(experiment))
    assessed: list[_AssessedContrast] = []
    for workload in experiment.workloads:
        of_workload = [trial for trial in trials if trial.workload == workload.title]
        relevant = on_workload(workload.title, findings)
        stopping_findings = stops(relevant)
        conditions = Conditions(
            metric_scale.higher_is_faster,
            Circumstances(bool(stopping_findings), is_unfinished(of_workload), is_disturbed(relevant)),
            metric_scale.delta_percent,
        )
        failed = list(dict(failures(of_workload)).values())
        cells = _cells(of_workload, experiment, metric_scale.metric)
        assessed += [
            _AssessedContrast(
                contrast=contrast,
                workload=workload.title,
                cells=cells,
                assessment=assess(
                    _ratios(contrast.weights, cells, metric_scale.metric), metric_scale.alpha, family
                ),
                conditions=conditions,
                stops=stopping_findings,
                failures=failed,
                findings=relevant,
                blocks=finished_and_planned(of_workload, experiment),
                blocks_at_most=blocks_at_most(of_workload, experiment),
            )
            for order in (1, 2)
            for contrast in contrasts(experiment.factors, order)
        ]
    judged = judge_family(
        [(one.assessment, one.conditions) for one in assessed],
        alpha=ALPHA,
    )
    return list(zip(assessed, judged, strict=True))


def _cells(trials: Sequence[MeasuredTrial], experiment: Experiment, metric: str) -> Cells:
    """The trials of every variant, load and block whose metric is known."""
    cells: dict[tuple[str, ...], list[Blocks]] = {}
    for variant in experiment.variants:
        levels = tuple(variant.levels[factor.name] for factor in experiment.factors)
        cells[levels] = [
            {
                trial.block: trial
                for trial in trials
                if trial.variant == variant.name and trial.at == point.as_dict() and trial.has(metric)
            }
            for point in experiment.load.points()
        ]
    return cells


def _ratios(weights: Mapping[tuple[str, ...], float], cells: Cells, metric: Metric) -> list[Ratios]:
    """The bounds of a contrast at each load, per block."""
    ratios = []
    for load in range(len(next(iter(cells.values())))):
        weighted = [(weight, cells[cell][load]) for cell, weight in weights.items()]
        first, *others = (trials for _, trials in weighted)
        by_block = {
            block: [(weight, trials[block]) for weight, trials in weighted]
            for block in first
            if all(block in trials for trials in others)
        }
        ratios.append(
            Ratios(
                {block: _bound(trials, metric, upper=False) for block, trials in by_block.items()},
                {block: _bound(trials, metric, upper=True) for block, trials in by_block.items()},
            )
        )
    return ratios


def _bound(trials: Sequence[tuple[float, MeasuredTrial]], metric: Metric, *, upper: bool) -> float:
    """The lower or upper bound of a contrast in one block, given the trials with their weights.

    The lower bound takes the lower bounds of added terms and the upper bounds of subtracted terms.
    """
    paired = block_ratio(trials, metric)
    if paired is not None:
        return paired
    total = sum(weight * trial.log_bounds(metric)[(weight > 0) == upper] for weight, trial in trials)
    # The sum of infinite bounds with both signs is unknown.
    return (math.inf if upper else -math.inf) if math.isnan(total) else total


def _entry(
    one: _AssessedContrast,
    judged: Judged,
    pairs: Contrasts,
    experiment: Experiment,
    block_s: float | None,
) -> FactorEffect:
    """The entry of one contrast; `pairs` contains all contrasts with their verdicts."""
    metric_scale = scale(experiment)
    partners = _interacting_factors(one, pairs)
    verdict = _verdict(one, judged, pairs)
    text = _sentence(one, judged, verdict, partners, experiment)
    if verdict == Verdict.UNDECIDED and not one.conditions.circumstances.is_disturbed:
        text = join("; ", [text, *outlook_text(one.assessment, block_s)])
    return FactorEffect(
        factors=list(one.contrast.factors),
        levels=list(one.contrast.levels),
        against=list(one.contrast.baseline_levels),
        workload=one.workload,
        metric=metric_scale.metric,
        **entry_change(judged.overall),
        confidence=1.0 - metric_scale.alpha,
        blocks=judged.overall.blocks if judged.overall else 0,
        p_value=overall_p_value(judged),
        verdict=verdict.value,
        sentence=with_caveats(text, one.failures, one.findings),
        caveats=caveats(one.findings),
    )


def _verdict(one: _AssessedContrast, judged: Judged, pairs: Contrasts) -> Verdict:
    """The verdict of one contrast; a main effect that depends on another factor is mixed."""
    has_result = judged.verdict not in (Verdict.NOT_COMPARABLE, Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS)
    return Verdict.MIXED if has_result and _interacting_factors(one, pairs) else judged.verdict


def _interacting_factors(one: _AssessedContrast, pairs: Contrasts) -> list[str]:
    """The factors that interact significantly with the factor of a main effect; [] for an interaction."""
    if len(one.contrast.factors) == 2:
        return []
    (factor,), (level,) = one.contrast.factors, one.contrast.levels
    partners: list[str] = []
    for other, judged in pairs:
        levels = dict(zip(other.contrast.factors, other.contrast.levels, strict=True))
        is_interaction = (
            judged.verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.MIXED) and len(levels) == 2
        )
        if is_interaction and other.workload == one.workload and levels.get(factor) == level:
            partners += [name for name in levels if name != factor]
    return list(dict.fromkeys(partners))


def _sentence(
    one: _AssessedContrast, judged: Judged, verdict: Verdict, partners: Sequence[str], experiment: Experiment
) -> str:
    """The verdict sentence; `partners` are the factors that interact with the factor of a main effect."""
    metric_scale, overall = scale(experiment), judged.overall
    contrast_text = _contrast_text(one.contrast)
    at = loads([point.as_dict() for point in experiment.load.points()])
    where = compose("{workload} {loads}", workload=one.workload, loads=at)
    counted = overall.blocks if overall else 0
    blocks = blocks_clause(counted, one.blocks, one.blocks_at_most)
    if verdict == Verdict.NOT_COMPARABLE:
        return compose(
            "Not comparable: {contrast_text}, {where}, because {reason}",
            contrast_text=contrast_text,
            where=where,
            reason=_reason(one),
        )
    if verdict in (Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS):
        return _without_verdict(one, overall, verdict, experiment, where)
    assert overall is not None, "every other verdict has an effect"
    if partners:
        parts = join("; ", (_at_each_level(one, partner, experiment) for partner in partners))
        depends = compose(
            "{metric}, {contrast}: depends on {factors} ({parts}), {where}",
            metric=metric_text(metric_scale.metric),
            contrast=contrast_text,
            factors=join_words(partners),
            parts=parts,
            where=where,
        )
        return join("; ", (depends, blocks))
    if len(one.contrast.factors) == 2:
        text = _interaction(one.contrast, overall, verdict, metric_scale, where)
    else:
        text = _main_effect(one, judged, verdict, experiment, where)
    if verdict == Verdict.UNDECIDED:
        text = join("; ", [text, *excluded(overall)])
    is_unsure = verdict in (Verdict.FASTER, Verdict.SLOWER) and not overall.is_significant
    return join("; ", [text, blocks, *([SIZE_UNSURE] if is_unsure else [])])


def _without_verdict(
    one: _AssessedContrast, overall: Effect | None, verdict: Verdict, experiment: Experiment, where: str
) -> Text:
    """The sentence of a run that is not finished, or has too few blocks."""
    counted, contrast_text = overall.blocks if overall else 0, _contrast_text(one.contrast)
    metric = metric_text(scale(experiment).metric) if len(one.contrast.factors) == 1 else compose("ratio")
    value = (
        compose("{metric} {change}", metric=metric, change=change(overall))
        if overall
        else compose("no result")
    )
    if verdict == Verdict.UNFINISHED:
        number = blocks_text(counted, experiment.design.blocks)
        return compose(
            "Not finished ({number}): {contrast_text}, {value} so far, {where}",
            number=number,
            contrast_text=contrast_text,
            value=value,
            where=where,
        )
    numbers = compose(
        "{blocks_of}; {blocks_needed} are needed",
        blocks_of=blocks_of(counted, one.blocks, one.blocks_at_most),
        blocks_needed=one.assessment.blocks_needed,
    )
    return compose(
        "Too few blocks for a verdict ({numbers}): {contrast_text}, {value}, {where}",
        numbers=numbers,
        contrast_text=contrast_text,
        value=value,
        where=where,
    )


def _reason(one: _AssessedContrast) -> str:
    """Why a contrast has no result."""
    if one.stops:
        return join("", (one.stops[0].clause, f" ({one.stops[0].code})"))
    return compose("no block holds all of its combinations at every load (R04)")


def _contrast_text(contrast: Contrast) -> str:
    """A contrast as text: version 8.4 against 8.0; whether the effect of threads depends on version."""
    if len(contrast.factors) == 2:
        other, factor = contrast.factors
        return compose("whether the effect of {factor} depends on {other}", factor=factor, other=other)
    return compose(
        "{factors} {levels} against {baseline_levels}",
        factors=contrast.factors[0],
        levels=contrast.levels[0],
        baseline_levels=contrast.baseline_levels[0],
    )


def _main_effect(
    one: _AssessedContrast, judged: Judged, verdict: Verdict, experiment: Experiment, where: str
) -> str:
    metric_scale, overall = scale(experiment), judged.overall
    assert overall is not None, "the caller has checked it"
    (factor,), (level,), (base,) = one.contrast.factors, one.contrast.levels, one.contrast.baseline_levels
    others = [other.name for other in experiment.factors if other.name != factor]
    mean = compose("mean over {join_words}", join_words=join_words(others))
    shown = effect_text(
        metric_scale.metric, overall, metric_scale.delta_percent, average=len(judged.load_effects) > 1
    )
    match verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            faster = verdict == Verdict.FASTER
            return compose(
                "{relation}: {effect}, {where}",
                relation=relation(metric_scale.metric, f"{factor} {level}", base, faster=faster),
                effect=shown,
                where=join(", ", (mean, where)),
            )
        case Verdict.EQUIVALENT:
            each = compose("at each load ") if len(judged.load_effects) > 1 else ""
            return compose(
                "{factor} {level} and {base} are equivalent: {each}any difference is within "
                "±{delta_percent:g} % (declared); {shown}, {mean}, {where}",
                factor=factor,
                level=level,
                base=base,
                each=each,
                delta_percent=metric_scale.delta_percent,
                shown=shown,
                mean=mean,
                where=where,
            )
        case Verdict.MIXED:
            parts = [
                join(" ", (loads([point.as_dict()]), change(effect_at)))
                for point, effect_at in zip(experiment.load.points(), judged.load_effects, strict=True)
                if effect_at is not None and effect_at.is_significant
            ]
            return compose(
                "It depends on the load: {contrast_text}, {metric_text} {listed}, {mean}, {where}",
                contrast_text=_contrast_text(one.contrast),
                metric_text=metric_text(metric_scale.metric),
                listed=join(", ", parts),
                mean=mean,
                where=where,
            )
        case _:
            return compose(
                "Undecided: {contrast_text}, {shown}, {mean}, {where}",
                contrast_text=_contrast_text(one.contrast),
                shown=shown,
                mean=mean,
                where=where,
            )


def _interaction(
    contrast: Contrast, overall: Effect, verdict: Verdict, metric_scale: Scale, where: str
) -> str:
    (other, factor), (other_level, level) = contrast.factors, contrast.levels
    other_base, base = contrast.baseline_levels
    ratio = compose(
        "the {metric_text} ratio of {level} to {base}",
        metric_text=metric_text(metric_scale.metric),
        level=level,
        base=base,
    )
    changes = compose(
        "{ratio} {changes} from {other_base} to {other_level}",
        ratio=ratio,
        changes=_changes(overall),
        other_base=other_base,
        other_level=other_level,
    )
    match verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            return compose(
                "The effect of {factor} depends on {other}: {changes}, {where}",
                factor=factor,
                other=other,
                changes=changes,
                where=where,
            )
        case Verdict.EQUIVALENT:
            return compose(
                "The effect of {factor} does not depend on {other} by more than ±{delta_percent:g} % "
                "(declared): {changes}, {where}",
                factor=factor,
                other=other,
                delta_percent=metric_scale.delta_percent,
                changes=changes,
                where=where,
            )
        case Verdict.MIXED:
            return compose(
                "Whether the effect of {factor} depends on {other} differs between the loads, {where}",
                factor=factor,
                other=other,
                where=where,
            )
        case _:
            return compose(
                "Undecided whether the effect of {factor} depends on {other}: {changes}, {where}",
                factor=factor,
                other=other,
                changes=changes,
                where=where,
            )


def _changes(overall: Effect) -> str:
    """The effect as text: changes by +35.5 % (95 % interval +32.5 to +38.5)."""
    ends = overall.interval_percent
    if is_unknown(overall):
        return compose("changes by an unknown factor")
    if ends is None or overall.bound != Bound.EXACT or has_no_estimate(overall):
        return compose("changes by {change}", change=change(overall))
    inside = confidence(overall.alpha)
    if is_ratio(overall.effect_percent):
        return compose(
            "becomes {change} as high ({inside} {times_interval})",
            change=change(overall),
            inside=inside,
            times_interval=times_interval(ends),
        )
    return compose(
        "changes by {change} ({inside} {interval})",
        change=change(overall),
        inside=inside,
        interval=interval(ends),
    )


def _at_each_level(one: _AssessedContrast, partner: str, experiment: Experiment) -> str:
    """A factor's effect at each level of another factor: +25.0 % with per-connection, -20.0 % with pool."""
    (factor,), (level,), (base,) = one.contrast.factors, one.contrast.levels, one.contrast.baseline_levels
    names = [each.name for each in experiment.factors]
    own, others = names.index(factor), names.index(partner)
    parts = []
    for other in next(each.levels for each in experiment.factors if each.name == partner):
        cells = [cell for cell in one.cells if cell[others] == other and cell[own] in (level, base)]
        share = 2.0 / len(cells)
        weights = {cell: share if cell[own] == level else -share for cell in cells}
        effect_at = effect(mean_ratios(_ratios(weights, one.cells, scale(experiment).metric)))
        parts.append(
            compose(
                "{detail} with {other}",
                detail=change(effect_at) if effect_at else compose("no result"),
                other=other,
            )
        )
    return join(", ", parts)
