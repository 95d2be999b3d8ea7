"""Writes the verdict on a comparison as one English sentence (checks Q01 to Q03).

The sentence contains the two variants, the direction, the effect with its interval, the workload, the loads,
the number of blocks, and what the variant changes besides its server; caveats follow. Its only texts that a
user writes are these changes and the quoted reason of an override.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dbdyno.decide.comparison import Comparison
from dbdyno.decide.more_blocks import more_blocks_text
from dbdyno.decide.secondary_metrics import Line, but_clause
from dbdyno.experiment.metrics import CPU, metric_text
from dbdyno.finding import Finding
from dbdyno.result_text import decimals_for, is_ratio
from dbdyno.say.caveats import caveats, with_caveats
from dbdyno.say.wording import (
    DIRECTION_BY_HOLM,
    blocks_clause,
    blocks_of,
    change,
    confidence,
    each_load,
    effect_text,
    has_no_estimate,
    is_unknown,
    join_words,
    loads,
    metric_wording,
    relation,
)
from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.text import Text, compose, compose_count, join, join_some

# Maximum number of changes in a sentence.
CHANGES_MAX = 2


def sentence(
    comparison: Comparison,
    findings: Sequence[Finding],
    block_s: float | None = None,
    lines: Sequence[Line] = (),
) -> str:
    """The sentence of one comparison with the findings that are relevant to it, and its secondary metrics.

    `block_s` is the time of one block in seconds, if it is known.
    """
    text = _text(comparison, block_s) + but_clause(comparison, lines) + _changes(comparison)
    return with_caveats(text, comparison_caveats(comparison, findings))


def comparison_caveats(comparison: Comparison, findings: Sequence[Finding]) -> list[str]:
    """The caveats of this sentence."""
    return caveats(findings, comparison.failures.values())


def metric_sentence(comparison: Comparison) -> str:
    """The sentence on a further metric; caveats and what would settle it are in that of the verdict."""
    judged, effect = comparison.judged, comparison.judged.overall
    is_plain = not (comparison.is_identical or judged.significant_loads)
    if (
        judged.verdict == Verdict.UNDECIDED
        and effect is not None
        and is_plain
        and not (effect.is_significant or is_unknown(effect))
    ):
        return compose("Undecided: {text}", text=_effect_between(comparison, effect))
    return _text(comparison, None)


def _changes(comparison: Comparison) -> str:
    """What the variant changes in the workload, load, session and data: "; b: CREATE INDEX c ON t (c)"."""
    texts = comparison.differences(server=False)
    if not texts or comparison.judged.verdict == Verdict.NOT_COMPARABLE:
        return ""
    return compose("; {variant}: {listed}", variant=comparison.variant, listed=join_some(texts, CHANGES_MAX))


def _text(comparison: Comparison, block_s: float | None) -> str:
    variant, baseline, effect = comparison.variant, comparison.baseline, comparison.judged.overall
    capacities = comparison.capacities
    match comparison.judged.verdict:
        case Verdict.NOT_COMPARABLE:
            return _not_comparable(comparison)
        case Verdict.UNFINISHED:
            done, planned = comparison.blocks
            return compose(
                "Not finished ({done} of {planned} blocks): {variant} against {baseline}{so_far}, {where}",
                done=done,
                planned=planned,
                variant=variant,
                baseline=baseline,
                so_far=compose(", {estimate} so far", estimate=_estimate(comparison, effect))
                if effect
                else "",
                where=_where(comparison),
            )
        case Verdict.TOO_FEW_BLOCKS:
            assert effect is not None
            text = compose(
                "Too few blocks for a verdict ({blocks}; {needed} are needed): {variant} against "
                "{baseline}, {estimate}, {where}",
                blocks=blocks_of(effect.blocks, comparison.blocks, comparison.blocks_at_most),
                needed=comparison.judged.assessment.blocks_needed,
                variant=variant,
                baseline=baseline,
                estimate=_estimate(comparison, effect),
                where=_where(comparison),
            )
            if capacities and is_unknown(effect):
                return join("; ", (text, compose("give {rates}", rates=capacities.rates_to_give())))
            return text
    assert effect is not None, "every other verdict has an effect"
    where = join("; ", (_where(comparison), _blocks(comparison, effect)))
    if comparison.is_identical:
        return join(", ", (_identical(comparison, effect), where))
    if comparison.is_factorial:
        return compose(
            "{variant} against {baseline}: {effect}, {where}",
            variant=variant,
            baseline=baseline,
            effect=_effect(comparison, effect),
            where=where,
        )
    match comparison.judged.verdict:
        case Verdict.MIXED:
            return _mixed(comparison)
        case Verdict.EQUIVALENT:
            return _equivalent(comparison, effect)
        case Verdict.UNDECIDED:
            return _undecided(comparison, effect, block_s)
        case verdict:
            return _direction(comparison, effect, faster=verdict == Verdict.FASTER)


def _direction(comparison: Comparison, effect: Effect, *, faster: bool) -> str:
    judged, metric = comparison.judged, comparison.scale.metric
    related: str = relation(metric, comparison.variant, comparison.baseline, faster=faster)
    where = [_where(comparison), _blocks(comparison, effect)]
    if comparison.capacities is not None and effect.is_significant and effect.bound == Bound.EXACT:
        return join("; ", (_capacity(comparison, effect, faster=faster), _blocks(comparison, effect)))
    if _has_several_loads(comparison):
        if all(verdict == judged.verdict for verdict in judged.load_verdicts):
            related = compose("{relation} at every load", relation=related)
        else:
            same = [
                index for index in judged.significant_loads if judged.load_verdicts[index] == judged.verdict
            ]
            opposite = [index for index in judged.significant_loads if index not in same]
            parts: list[str] = (
                [compose("significantly {loads}", loads=_loads_text(comparison, same))] if same else []
            )
            if opposite:
                words = metric_wording(metric)
                but = words.but_worse if faster else words.but_better
                parts.append(compose(but, loads=_loads_and_effects(comparison, opposite)))
            where = [*([join(", ", parts)] if parts else []), *where]
    text = compose(
        "{relation}: {effect}, {where}",
        relation=related,
        effect=_effect(comparison, effect),
        where=join("; ", where),
    )
    return text if effect.is_significant else join("; ", (text, DIRECTION_BY_HOLM))


def _capacity(comparison: Comparison, effect: Effect, *, faster: bool) -> Text:
    """The direction of a known capacity: b serves 5.1 % (95 % interval 2.3 to 7.8) fewer transactions …"""
    capacities, ends, change_percent = comparison.capacities, effect.interval_percent, effect.effect_percent
    assert capacities is not None, "the caller has checked it"
    assert ends is not None, "a significant effect has an interval"
    if is_ratio(change_percent) or has_no_estimate(effect):
        metric = comparison.scale.metric
        return compose(
            "{relation}: {effect}, {where}",
            relation=relation(metric, comparison.variant, comparison.baseline, faster=faster),
            effect=_effect(comparison, effect),
            where=_where(comparison),
        )
    digits = decimals_for((change_percent, *ends))
    low, high = (f"{abs(end):.{digits}f}" for end in sorted(ends, key=abs))
    is_known = ends[0] > -100.0 and ends[1] < math.inf
    inside = compose("{low} to {high}", low=low, high=high) if is_known else compose("{low} or more", low=low)
    values = {
        "variant": comparison.variant,
        "baseline": comparison.baseline,
        "percent": f"{abs(change_percent):.{digits}f}",
        "confidence": confidence(effect.alpha),
        "inside": inside,
        "objective": capacities.objective.text(),
        "capacities": capacities.text(),
        "workload": comparison.workload,
    }
    if faster:
        return compose(
            "{variant} serves {percent} % ({confidence} {inside}) more transactions per second than "
            "{baseline} while {objective}: {capacities}, {workload}",
            **values,
        )
    return compose(
        "{variant} serves {percent} % ({confidence} {inside}) fewer transactions per second than {baseline} "
        "while {objective}: {capacities}, {workload}",
        **values,
    )


def _identical(comparison: Comparison, effect: Effect) -> Text:
    names = {"baseline": comparison.baseline, "variant": comparison.variant}
    shown = effect_text(comparison.scale.metric, effect, average=_has_several_loads(comparison))
    if effect.is_significant:
        return compose(
            "{baseline} and {variant} are identical, but differ here: {effect}", effect=shown, **names
        )
    return compose(
        "{baseline} and {variant} are identical, and no difference is certain: {effect}",
        effect=shown,
        **names,
    )


def _loads_text(comparison: Comparison, indices: Sequence[int]) -> str:
    return loads([comparison.pairs[index].at for index in indices])


def _loads_and_effects(comparison: Comparison, indices: Sequence[int]) -> str:
    """Some loads, and the effects at these loads: at 10 and 20 connections (+9.2 % and +9.1 %)."""
    effects = [effect for index in indices if (effect := comparison.judged.load_effects[index]) is not None]
    changes = join_words([change(effect) for effect in effects])
    return compose("{loads} ({changes})", loads=_loads_text(comparison, indices), changes=changes)


def _mixed(comparison: Comparison) -> str:
    metric, judged = comparison.scale.metric, comparison.judged
    first, second = (
        _loads_and_effects(
            comparison, [i for i, verdict in enumerate(judged.load_verdicts) if verdict == direction]
        )
        for direction in (Verdict.FASTER, Verdict.SLOWER)
    )
    parts = {
        "faster": compose(
            "{relation} {loads}",
            relation=relation(metric, comparison.variant, comparison.baseline, faster=True),
            loads=first,
        ),
        "other": second,
        "where": _where(comparison),
    }
    text = compose(metric_wording(metric).mixed, **parts)
    return join("; ", (text, _blocks(comparison, judged.overall))) if judged.overall else text


def _equivalent(comparison: Comparison, effect: Effect) -> Text:
    metric, floor = comparison.scale.metric, comparison.floor_percent
    names = {"baseline": comparison.baseline, "variant": comparison.variant}
    parts: dict[str, Any] = {
        "delta": comparison.scale.delta_percent,
        "effect": _effect(comparison, effect),
        "where": _where(comparison),
        "blocks": _blocks(comparison, effect),
    }
    if effect.is_significant and (floor is None or abs(effect.effect_percent) > floor):
        faster = (effect.effect_percent > 0) == comparison.scale.higher_is_faster
        return compose(
            "{relation} by less than {delta:g} % (declared): {effect}, {where}; {blocks}",
            relation=relation(metric, comparison.variant, comparison.baseline, faster=faster),
            **parts,
        )
    parts |= {"metric": metric_text(metric), **names}
    if comparison.capacities is not None:
        return compose(
            "{baseline} and {variant} are equivalent: any difference in {metric} is within ±{delta:g} % "
            "(declared); {effect}, {where}; {blocks}",
            **parts,
        )
    at = [pair.at for pair in comparison.pairs]
    return compose(
        "{baseline} and {variant} are equivalent: {loads} any difference in {metric} is within ±{delta:g} % "
        "(declared); {effect}, {workload}; {blocks}",
        loads=each_load(at) if _has_several_loads(comparison) else loads(at),
        workload=comparison.workload,
        **parts,
    )


def _undecided(comparison: Comparison, effect: Effect, block_s: float | None) -> str:
    judged, capacities = comparison.judged, comparison.capacities
    text = _effect_between(comparison, effect)
    if is_unknown(effect) and capacities is not None:
        text = compose(
            "Undecided: {missed}, {where}; give {rates}",
            missed=capacities.missed_text(),
            where=_where(comparison),
            rates=capacities.rates_to_give(),
        )
    elif is_unknown(effect):
        text = _neither_kept_up(comparison)
    else:
        text = compose("Undecided: {text}", text=text)
    extra: list[str] = []
    words = metric_wording(comparison.scale.metric)
    for direction, but in ((Verdict.FASTER, words.but_better), (Verdict.SLOWER, words.but_worse)):
        indices = [index for index in judged.significant_loads if judged.load_verdicts[index] == direction]
        if indices:
            extra.append(compose(but, loads=_loads_and_effects(comparison, indices)))
    floor = comparison.floor_percent
    if floor is not None and effect.is_significant and abs(effect.effect_percent) <= floor:
        extra.append(
            compose("identical variants differ by up to {percent:.1f} % here", percent=floor)
            if math.isfinite(floor)
            else compose("identical variants differ by an unknown amount here")
        )
    further = more_blocks_text(judged.assessment, block_s)
    return join("; ", [text, *extra, _blocks(comparison, effect), *further])


def _neither_kept_up(comparison: Comparison) -> Text:
    """The sentence if the effect over all loads is unknown because of some of them."""
    effects = comparison.judged.load_effects
    unknown = [index for index, effect in enumerate(effects) if effect is not None and is_unknown(effect)]
    known_loads = [
        index for index, effect in enumerate(effects) if effect is not None and not is_unknown(effect)
    ]
    parts = {
        "variant": comparison.variant,
        "baseline": comparison.baseline,
        "metric": metric_text(comparison.scale.metric),
    }
    if not known_loads or not unknown:
        return compose(
            "Undecided: neither {variant} nor {baseline} kept up, so nothing is known of their {metric}, "
            "{where}",
            where=_where(comparison),
            **parts,
        )
    return compose(
        "Undecided over all loads: {loads} neither {variant} nor {baseline} kept up, so nothing is known of "
        "their {metric} there; elsewhere: {known}, {workload}",
        loads=_loads_text(comparison, unknown),
        known=_loads_and_effects(comparison, known_loads),
        workload=comparison.workload,
        **parts,
    )


def _effect_between(comparison: Comparison, effect: Effect) -> Text:
    return compose(
        "{variant} against {baseline}, {effect}, {where}",
        variant=comparison.variant,
        baseline=comparison.baseline,
        effect=_effect(comparison, effect),
        where=_where(comparison),
    )


def _not_comparable(comparison: Comparison) -> str:
    variant, baseline = comparison.variant, comparison.baseline
    names = {"variant": variant, "baseline": baseline}
    if comparison.stops:
        first = comparison.stops[0]
        more = sorted({stop.code for stop in comparison.stops[1:]} - {first.code})
        text = compose(
            "{variant} and {baseline} are not comparable: {text} ({code})",
            text=first.clause,
            code=first.code,
            **names,
        )
        return join("; ", (text, compose("{codes} failed too", codes=join_words(more)))) if more else text
    if without := comparison.variants_without_metric:
        metric = metric_text(comparison.scale.metric)
        if comparison.scale.metric == CPU:
            why = compose_count(
                len(without),
                "dbdyno could not read the CPU time of the server of {names}",
                "dbdyno could not read the CPU time of the servers of {names}",
                names=join_words(without),
            )
        else:
            why = compose("the records of {names} do not contain it", names=join_words(without))
        return compose(
            "{metric} unknown, so {variant} and {baseline} cannot be compared by it: {why}",
            metric=metric,
            why=why,
            **names,
        )
    missing = [pair.at for pair in comparison.pairs if not pair.baseline]
    if not missing:
        return compose(
            "No block holds {variant} and {baseline} at every load, so they cannot be compared (R04)", **names
        )
    incomplete = [name for name in (variant, baseline) if name in comparison.incomplete_variants]
    if not incomplete:
        return compose(
            "{variant} and {baseline} have no result {loads} in the same block, so {variant} and {baseline} "
            "cannot be compared over the whole range (R04)",
            loads=loads(missing),
            **names,
        )
    return compose_count(
        len(incomplete),
        "{incomplete} has no result {loads}, so {variant} and {baseline} cannot be compared over the whole "
        "range (R04)",
        "{incomplete} have no result {loads}, so {variant} and {baseline} cannot be compared over the whole "
        "range (R04)",
        incomplete=join_words(incomplete),
        loads=loads(missing),
        **names,
    )


def _has_several_loads(comparison: Comparison) -> bool:
    return len(comparison.pairs) > 1 and comparison.capacities is None


def _effect(comparison: Comparison, effect: Effect) -> str:
    return effect_text(
        comparison.scale.metric,
        effect,
        comparison.scale.delta_percent,
        average=_has_several_loads(comparison),
    )


def _estimate(comparison: Comparison, effect: Effect | None) -> str:
    """Metric and estimate, without the interval."""
    if effect is None:
        return compose("no result")
    return compose("{metric} {change}", metric=metric_text(comparison.scale.metric), change=change(effect))


def _where(comparison: Comparison) -> str:
    """Workload and loads; with a latency objective, workload, objective and capacities."""
    if comparison.capacities is not None:
        objective, capacities_text = comparison.capacities.objective.text(), comparison.capacities.text()
        text = compose("{workload} while {objective}", workload=comparison.workload, objective=objective)
        return (
            compose("{text} ({capacities})", text=text, capacities=capacities_text)
            if comparison.capacities.baseline
            else text
        )
    at = loads([pair.at for pair in comparison.pairs])
    return compose("{workload} {loads}", workload=comparison.workload, loads=at)


def _blocks(comparison: Comparison, effect: Effect) -> str:
    return blocks_clause(effect.blocks, comparison.blocks, comparison.blocks_at_most)
