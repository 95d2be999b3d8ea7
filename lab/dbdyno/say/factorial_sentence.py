"""Writes the verdicts on factors and interactions as English sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.decide.comparison import Scale
from dbdyno.decide.contrasts import AssessedContrast, contrast_ratios
from dbdyno.decide.decision import scale
from dbdyno.decide.effects import Judged
from dbdyno.experiment.family import Contrast
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.result_text import is_ratio
from dbdyno.say.wording import (
    DIRECTION_BY_HOLM,
    blocks_clause,
    blocks_of,
    blocks_text,
    change,
    confidence,
    effect_text,
    has_no_estimate,
    interval,
    is_unknown,
    join_words,
    loads,
    relation,
    times_interval,
)
from dbdyno.stats.paired import Bound, Effect, effect, mean_ratios
from dbdyno.stats.verdict_rule import DIRECTIONS, Verdict
from dbdyno.text import Text, compose, compose_form, join, mark

# The forms of a sentence -> their patterns: the verdict, and the number of factors. Whatever the direction of
# an interaction is, the sentence has one form.
PATTERNS: Mapping[tuple[Verdict, int], str] = {
    (Verdict.EQUIVALENT, 1): mark(
        "{factor} {level} and {base} are equivalent: within ±{delta_percent:g} % (declared){each}; "
        "{shown}, {mean}, {where}"
    ),
    (Verdict.MIXED, 1): mark(
        "It depends on the load: {contrast_text}, {metric_text} {listed}, {mean}, {where}"
    ),
    (Verdict.UNDECIDED, 1): mark("Undecided: {contrast_text}, {shown}, {mean}, {where}"),
    (Verdict.FASTER, 2): mark("The effect of {factor} depends on {other}: {changes}, {where}"),
    (Verdict.SLOWER, 2): mark("The effect of {factor} depends on {other}: {changes}, {where}"),
    (Verdict.EQUIVALENT, 2): mark(
        "The effect of {factor} does not depend on {other} by more than ±{delta_percent:g} % "
        "(declared): {changes}, {where}"
    ),
    (Verdict.MIXED, 2): mark(
        "Whether the effect of {factor} depends on {other} differs between the loads, {where}"
    ),
    (Verdict.UNDECIDED, 2): mark("Undecided if {factor} and {other} interact: {changes}, {where}"),
}


def sentence(
    assessed_contrast: AssessedContrast,
    judged: Judged,
    verdict: Verdict,
    partners: Sequence[str],
    experiment: Experiment,
) -> str:
    """The verdict sentence; `partners` are the factors that interact with the factor of a main effect."""
    metric_scale, overall = scale(experiment), judged.overall
    contrast_text = contrast_title(assessed_contrast.contrast)
    at = loads([point.as_dict() for point in experiment.load.points()])
    where = compose("{workload} {loads}", workload=assessed_contrast.workload, loads=at)
    counted = overall.blocks if overall else 0
    blocks = blocks_clause(counted, assessed_contrast.blocks, assessed_contrast.blocks_at_most)
    if verdict == Verdict.NOT_COMPARABLE:
        return compose(
            "Not comparable: {contrast_text}, {where}, because {reason}",
            contrast_text=contrast_text,
            where=where,
            reason=_reason(assessed_contrast),
        )
    if verdict in (Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS):
        return _without_verdict(assessed_contrast, overall, verdict, experiment, where)
    assert overall is not None, "every other verdict has an effect"
    if partners:
        parts = join("; ", (_at_each_level(assessed_contrast, partner, experiment) for partner in partners))
        depends = compose(
            "{metric}, {contrast}: depends on {factors} ({parts}), {where}",
            metric=metric_text(metric_scale.metric),
            contrast=contrast_text,
            factors=join_words(partners),
            parts=parts,
            where=where,
        )
        return join("; ", (depends, blocks))
    if len(assessed_contrast.contrast.factors) == 2:
        text = _interaction(assessed_contrast.contrast, overall, verdict, metric_scale, where)
    else:
        text = _main_effect(assessed_contrast, judged, verdict, experiment, where)
    has_no_size = verdict in DIRECTIONS and not overall.is_significant
    return join("; ", [text, blocks, *([DIRECTION_BY_HOLM] if has_no_size else [])])


def _without_verdict(
    assessed_contrast: AssessedContrast,
    overall: Effect | None,
    verdict: Verdict,
    experiment: Experiment,
    where: str,
) -> Text:
    """The sentence of a run that is not finished, or has too few blocks."""
    counted, contrast_text = overall.blocks if overall else 0, contrast_title(assessed_contrast.contrast)
    metric = (
        metric_text(scale(experiment).metric)
        if len(assessed_contrast.contrast.factors) == 1
        else compose("ratio")
    )
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
        blocks_of=blocks_of(counted, assessed_contrast.blocks, assessed_contrast.blocks_at_most),
        blocks_needed=assessed_contrast.assessment.blocks_needed,
    )
    return compose(
        "Too few blocks for a verdict ({numbers}): {contrast_text}, {value}, {where}",
        numbers=numbers,
        contrast_text=contrast_text,
        value=value,
        where=where,
    )


def _reason(contrast: AssessedContrast) -> str:
    """Why a contrast has no result."""
    if contrast.stops:
        return join("", (contrast.stops[0].clause, f" ({contrast.stops[0].code})"))
    return compose("no block holds all of its combinations at every load (R04)")


def contrast_title(contrast: Contrast) -> str:
    """A contrast as text: version 8.4 against 8.0; whether the effect of threads depends on version."""
    if len(contrast.factors) == 2:
        partner, factor = contrast.factors
        return compose("whether the effect of {factor} depends on {other}", factor=factor, other=partner)
    factor, level, base = _parts(contrast)
    return compose(
        "{factors} {levels} against {baseline_levels}", factors=factor, levels=level, baseline_levels=base
    )


def _parts(contrast: Contrast) -> tuple[str, str, str]:
    """Factor, level and level of the baseline of a main effect."""
    return contrast.factors[0], contrast.levels[0], contrast.baseline_levels[0]


def _main_effect(
    assessed_contrast: AssessedContrast, judged: Judged, verdict: Verdict, experiment: Experiment, where: str
) -> str:
    metric_scale, overall = scale(experiment), judged.overall
    assert overall is not None, "the caller has checked it"
    factor, level, base = _parts(assessed_contrast.contrast)
    others = [candidate.name for candidate in experiment.factors if candidate.name != factor]
    mean = compose("mean over {join_words}", join_words=join_words(others))
    shown = effect_text(
        metric_scale.metric, overall, metric_scale.delta_percent, average=len(judged.load_effects) > 1
    )
    if verdict in DIRECTIONS:
        return compose(
            "{relation}: {effect}, {where}",
            relation=relation(
                metric_scale.metric, f"{factor} {level}", base, faster=verdict == Verdict.FASTER
            ),
            effect=shown,
            where=join(", ", (mean, where)),
        )
    values = {
        "factor": factor,
        "level": level,
        "base": base,
        "contrast_text": contrast_title(assessed_contrast.contrast),
        "metric_text": metric_text(metric_scale.metric),
        "listed": _significant_loads(judged, experiment) if verdict == Verdict.MIXED else "",
        "each": compose(" at each load") if len(judged.load_effects) > 1 else "",
        "delta_percent": metric_scale.delta_percent,
        "shown": shown,
        "mean": mean,
        "where": where,
    }
    return compose_form(PATTERNS[verdict, 1], values)


def _significant_loads(judged: Judged, experiment: Experiment) -> Text:
    """The loads at which the effect is significant: at 10 connections +20.0 %, at 40 connections -20.0 %."""
    parts = [
        join(" ", (loads([point.as_dict()]), change(effect_at)))
        for point, effect_at in zip(experiment.load.points(), judged.load_effects, strict=True)
        if effect_at is not None and effect_at.is_significant
    ]
    return join(", ", parts)


def _interaction(
    contrast: Contrast, overall: Effect, verdict: Verdict, metric_scale: Scale, where: str
) -> str:
    (partner, factor), (other_level, level) = contrast.factors, contrast.levels
    other_base, base = contrast.baseline_levels
    changes = compose(
        "{metric_text} ratio {level}/{base} {changes} from {other_base} to {other_level}",
        metric_text=metric_text(metric_scale.metric),
        level=level,
        base=base,
        changes=_changes(overall),
        other_base=other_base,
        other_level=other_level,
    )
    values = {
        "factor": factor,
        "other": partner,
        "delta_percent": metric_scale.delta_percent,
        "changes": changes,
        "where": where,
    }
    return compose_form(PATTERNS[verdict, 2], values)


def _changes(overall: Effect) -> str:
    """The effect as text: +35.5 % (95 % interval +32.5 to +38.5)."""
    ends = overall.interval_percent
    if is_unknown(overall) or ends is None or overall.bound != Bound.EXACT or has_no_estimate(overall):
        return change(overall)
    inside = confidence(overall.alpha)
    if is_ratio(overall.effect_percent):
        return compose(
            "{change} as high ({inside} {times_interval})",
            change=change(overall),
            inside=inside,
            times_interval=times_interval(ends),
        )
    return compose(
        "{change} ({inside} {interval})",
        change=change(overall),
        inside=inside,
        interval=interval(ends),
    )


def _at_each_level(assessed_contrast: AssessedContrast, partner: str, experiment: Experiment) -> str:
    """A factor's effect at each level of another factor: +25.0 % with per-connection, -20.0 % with pool."""
    factor, level, base = _parts(assessed_contrast.contrast)
    names = [each.name for each in experiment.factors]
    position, others = names.index(factor), names.index(partner)
    parts = []
    for level_of_partner in next(each.levels for each in experiment.factors if each.name == partner):
        cells = [
            cell
            for cell in assessed_contrast.cells
            if cell[others] == level_of_partner and cell[position] in (level, base)
        ]
        share = 2.0 / len(cells)
        weights = {cell: share if cell[position] == level else -share for cell in cells}
        effect_at = effect(
            mean_ratios(contrast_ratios(weights, assessed_contrast.cells, scale(experiment).metric))
        )
        parts.append(
            compose(
                "{detail} with {other}",
                detail=change(effect_at) if effect_at else compose("no result"),
                other=level_of_partner,
            )
        )
    return join(", ", parts)
