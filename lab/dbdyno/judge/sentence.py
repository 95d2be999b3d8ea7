"""Writes the verdict on a comparison as one English sentence (checks Q01 to Q03).

The sentence contains the two variants, the direction, the effect with its interval, the workload, the loads,
the number of blocks, and what the variant changes besides its server; caveats follow. Its only texts that a
user writes are these changes and the quoted reason of an override.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.change_text import is_ratio
from dbdyno.experiment.metrics import CPU, THROUGHPUT, metric_text
from dbdyno.finding import Finding
from dbdyno.judge.caveats import with_caveats
from dbdyno.judge.comparison import Comparison
from dbdyno.judge.outlook import deviation, outlook_text
from dbdyno.judge.second_lines import Line, but_clause
from dbdyno.judge.wording import (
    SIZE_UNSURE,
    better,
    blocks_clause,
    blocks_of,
    change,
    confidence,
    decimals_for,
    effect_text,
    excluded,
    has_no_estimate,
    is_unknown,
    join_words,
    loads,
)
from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.verdict_rule import Verdict

# Maximum number of changes in a sentence.
CHANGES_MAX = 2
# Metric -> the adjectives after "but" for loads whose direction is the opposite of the overall one: if the
# variant is slower overall, if it is faster. Latencies have those of `_HIGHER`.
_OPPOSITES = {THROUGHPUT: ("faster", "slower"), CPU: ("less", "more")}
_HIGHER = ("lower", "higher")


def sentence(
    comparison: Comparison,
    findings: Sequence[Finding],
    block_s: float | None = None,
    lines: Sequence[Line] = (),
) -> str:
    """The sentence of one comparison with the findings that are relevant to it, and its second lines.

    `block_s` is the time of one block in seconds, if it is known.
    """
    text = _text(comparison, block_s) + but_clause(comparison, lines) + _changes(comparison)
    return with_caveats(text, comparison.failures.values(), findings)


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
        names = f"{comparison.variant} against {comparison.baseline}"
        return f"Undecided: {names}, {_effect(comparison, effect)}, {_where(comparison)}"
    return _text(comparison, None)


def _changes(comparison: Comparison) -> str:
    """What the variant changes in the workload, load, session and data: "; b: CREATE INDEX c ON t (c)"."""
    texts = comparison.differences_besides_server
    if not texts or comparison.judged.verdict == Verdict.NOT_COMPARABLE:
        return ""
    more = f" and {len(texts) - CHANGES_MAX} more" if len(texts) > CHANGES_MAX else ""
    return f"; {comparison.variant}: {', '.join(texts[:CHANGES_MAX])}{more}"


def _text(comparison: Comparison, block_s: float | None) -> str:
    variant, baseline, effect = comparison.variant, comparison.baseline, comparison.judged.overall
    capacities = comparison.capacities
    match comparison.judged.verdict:
        case Verdict.NOT_COMPARABLE:
            return _not_comparable(comparison)
        case Verdict.UNFINISHED:
            done, planned = comparison.blocks
            so_far = f", {_estimate(comparison, effect)} so far" if effect else ""
            return (
                f"Not finished ({done} of {planned} blocks): {variant} against {baseline}{so_far}, "
                f"{_where(comparison)}"
            )
        case Verdict.TOO_FEW_BLOCKS:
            assert effect is not None
            needed = comparison.judged.assessment.blocks_needed
            blocks = blocks_of(effect.blocks, comparison.blocks, comparison.blocks_at_most)
            return (
                f"Too few blocks for a verdict ({blocks}; {needed} are needed): "
                f"{variant} against {baseline}, {_estimate(comparison, effect)}, {_where(comparison)}"
                + (f"; give {capacities.rates_to_give()}" if capacities and is_unknown(effect) else "")
            )
    assert effect is not None, "every other verdict has an effect"
    where = f"{_where(comparison)}; {_blocks(comparison, effect)}"
    if comparison.is_identical:
        return f"{_identical(comparison, effect)}, {where}"
    if comparison.is_factorial:
        return f"{variant} against {baseline}: {_effect(comparison, effect)}, {where}"
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
    variant, baseline, judged = comparison.variant, comparison.baseline, comparison.judged
    relation = f"{variant} {better(comparison.scale.metric, faster=faster)} {baseline}"
    where = f"{_where(comparison)}; {_blocks(comparison, effect)}"
    if comparison.capacities is not None and effect.is_significant and effect.bound == Bound.EXACT:
        return f"{_capacity(comparison, effect, faster=faster)}; {_blocks(comparison, effect)}"
    if _has_several_loads(comparison):
        if all(verdict == judged.verdict for verdict in judged.load_verdicts):
            relation += " at every load"
        else:
            same = [
                index for index in judged.significant_loads if judged.load_verdicts[index] == judged.verdict
            ]
            other = [index for index in judged.significant_loads if index not in same]
            parts = [f"surely {_loads_text(comparison, same)}"] if same else []
            if other:
                worse = _OPPOSITES.get(comparison.scale.metric, _HIGHER)[faster]
                parts.append(f"but {worse} {_loads_and_effects(comparison, other)}")
            where = "; ".join([*([", ".join(parts)] if parts else []), where])
    text = f"{relation}: {_effect(comparison, effect)}, {where}"
    return text if effect.is_significant else f"{text}; {SIZE_UNSURE}"


def _capacity(comparison: Comparison, effect: Effect, *, faster: bool) -> str:
    """The direction of a known capacity: b serves 5.1 % (95 % interval 2.3 to 7.8) fewer transactions …"""
    capacities, ends, change_percent = comparison.capacities, effect.interval_percent, effect.effect_percent
    assert capacities is not None, "the caller has checked it"
    assert ends is not None, "a significant effect has an interval"
    if is_ratio(change_percent) or has_no_estimate(effect):
        relation = better(comparison.scale.metric, faster=faster)
        shown = f"{_effect(comparison, effect)}, {_where(comparison)}"
        return f"{comparison.variant} {relation} {comparison.baseline}: {shown}"
    digits = decimals_for((change_percent, *ends))
    low, high = sorted(abs(end) for end in ends)
    is_known = ends[0] > -100.0 and ends[1] < math.inf
    inside = (
        f"{confidence(effect.alpha)} {low:.{digits}f} {f'to {high:.{digits}f}' if is_known else 'or more'}"
    )
    size = f"{abs(change_percent):.{digits}f} % ({inside}) {'more' if faster else 'fewer'}"
    return (
        f"{comparison.variant} serves {size} "
        f"transactions per second than {comparison.baseline} while {capacities.promise.text()}: "
        f"{capacities.text()}, {comparison.workload}"
    )


def _identical(comparison: Comparison, effect: Effect) -> str:
    name = metric_text(comparison.scale.metric)
    shown = effect_text(comparison.scale.metric, effect, average=_has_several_loads(comparison))
    differs = f"their {name} differs by {shown.removeprefix(f'{name} ')}"
    if is_unknown(effect) or has_no_estimate(effect) or not shown.startswith(name):
        differs = shown
    return f"{comparison.baseline} and {comparison.variant} are identical; {differs} here"


def _loads_text(comparison: Comparison, indices: Sequence[int]) -> str:
    return loads([comparison.pairs[index].at for index in indices])


def _loads_and_effects(comparison: Comparison, indices: Sequence[int]) -> str:
    """Some loads, and the effects at these loads: at 10 and 20 connections (+9.2 % and +9.1 %)."""
    effects = [one for index in indices if (one := comparison.judged.load_effects[index]) is not None]
    return f"{_loads_text(comparison, indices)} ({join_words([change(one) for one in effects])})"


def _mixed(comparison: Comparison) -> str:
    metric, judged = comparison.scale.metric, comparison.judged
    first, second = (
        _loads_and_effects(
            comparison, [i for i, verdict in enumerate(judged.load_verdicts) if verdict == direction]
        )
        for direction in (Verdict.FASTER, Verdict.SLOWER)
    )
    relation = f"{comparison.variant} {better(metric, faster=True)} {comparison.baseline} {first}"
    if metric == THROUGHPUT:
        text = f"{relation}, slower {second}; throughput, {_where(comparison)}"
    elif metric == CPU:
        text = f"{relation}, more {second}; {_where(comparison)}"
    else:
        text = f"{relation}, a higher one {second}; {_where(comparison)}"
    blocks = f"; {_blocks(comparison, judged.overall)}" if judged.overall else ""
    return f"It depends on the load: {text}{blocks}"


def _equivalent(comparison: Comparison, effect: Effect) -> str:
    variant, baseline, delta = comparison.variant, comparison.baseline, comparison.scale.delta_percent
    metric = metric_text(comparison.scale.metric)
    blocks = _blocks(comparison, effect)
    floor = comparison.floor_percent
    if effect.is_significant and (floor is None or abs(effect.effect_percent) > floor):
        faster = (effect.effect_percent > 0) == comparison.scale.higher_is_faster
        relation = better(comparison.scale.metric, faster=faster)
        return (
            f"{variant} {relation} {baseline} by less than {delta:g} % (declared): "
            f"{_effect(comparison, effect)}, {_where(comparison)}; {blocks}"
        )
    if comparison.capacities is not None:
        return (
            f"{baseline} and {variant} are equivalent: any difference in {metric} is within "
            f"±{delta:g} % (declared); {_effect(comparison, effect)}, {_where(comparison)}; {blocks}"
        )
    at = loads([pair.at for pair in comparison.pairs])
    each = f"at each of {at.removeprefix('at ')}" if _has_several_loads(comparison) else at
    return (
        f"{baseline} and {variant} are equivalent: {each} any difference in {metric} is within "
        f"±{delta:g} % (declared); {_effect(comparison, effect)}, {comparison.workload}; {blocks}"
    )


def _undecided(comparison: Comparison, effect: Effect, block_s: float | None) -> str:
    variant, baseline, judged = comparison.variant, comparison.baseline, comparison.judged
    text = f"{variant} against {baseline}, {_effect(comparison, effect)}, {_where(comparison)}"
    if comparison.is_disturbed and effect.is_significant:
        # More blocks would not help.
        return (
            f"Undecided because other processes disturbed the trials: {text}; {_blocks(comparison, effect)}"
        )
    text = f"Undecided: {text}"
    if is_unknown(effect) and comparison.capacities is not None:
        capacities = comparison.capacities
        text = (
            f"Undecided: {capacities.missed_text()}, {_where(comparison)}; give {capacities.rates_to_give()}"
        )
    elif is_unknown(effect):
        name = metric_text(comparison.scale.metric)
        text = (
            f"Undecided: neither {variant} nor {baseline} kept up, so nothing is known of their {name}, "
            f"{_where(comparison)}"
        )
    extra = []
    if judged.significant_loads:
        for index in judged.significant_loads:
            faster = judged.load_verdicts[index] == Verdict.FASTER
            load_effect = judged.load_effects[index]
            assert load_effect is not None, "a load with a verdict has an effect"
            relation = f"{variant} {better(comparison.scale.metric, faster=faster)} {baseline}"
            extra.append(f"{_loads_text(comparison, [index])} {relation} ({change(load_effect)})")
    else:
        extra += excluded(effect)
    floor = comparison.floor_percent
    if floor is not None and effect.is_significant and abs(effect.effect_percent) <= floor:
        amount = f"up to {floor:.1f} %" if math.isfinite(floor) else "an unknown amount"
        extra.append(f"identical variants differ by {amount} here")
    return "; ".join([text, *extra, *_outlook(comparison, effect, block_s)])


def _outlook(comparison: Comparison, effect: Effect, block_s: float | None) -> list[str]:
    """How much the blocks differ, and the number of blocks that a better precision would need."""
    assessment = comparison.judged.assessment
    spread = deviation(assessment.overall_ratios)
    if spread is None:
        return [_blocks(comparison, effect)]
    differ = f", which differ by {_percent(spread)}"
    return [_blocks(comparison, effect, differ), *outlook_text(assessment, block_s)]


def _percent(log_ratio: float) -> str:
    value = log_ratio * 100.0
    return f"{value:.0f} %" if value >= 10.0 else f"{value:.1f} %"


def _not_comparable(comparison: Comparison) -> str:
    variant, baseline = comparison.variant, comparison.baseline
    if comparison.stops:
        first = comparison.stops[0]
        more = sorted({stop.code for stop in comparison.stops[1:]} - {first.code})
        text = first.text.strip().rstrip(".")
        others = f"; {join_words(more)} failed too" if more else ""
        return f"{variant} and {baseline} are not comparable: {text} ({first.code}){others}"
    if comparison.variants_without_metric:
        names = list(comparison.variants_without_metric)
        metric, servers = comparison.scale.metric, "the server" if len(names) == 1 else "the servers"
        why = f"dbdyno could not read the CPU time of {servers} of {join_words(names)}"
        if metric != CPU:
            why = f"the records of {join_words(names)} do not contain it"
        return f"{metric_text(metric)} unknown, so {variant} and {baseline} cannot be compared by it: {why}"
    missing = [pair.at for pair in comparison.pairs if not pair.baseline]
    names = [name for name in (variant, baseline) if name in comparison.incomplete_variants]
    subject = join_words(names) if names else f"{variant} and {baseline}"
    have = "have" if len(names) != 1 else "has"
    in_one_block = "" if names else " in the same block"
    if missing:
        return (
            f"{subject} {have} no result {loads(missing)}{in_one_block}, so {variant} and {baseline} cannot "
            "be compared over the whole range (R04)"
        )
    return f"No block holds {variant} and {baseline} at every load, so they cannot be compared (R04)"


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
    return f"{metric_text(comparison.scale.metric)} {change(effect)}" if effect else "no result"


def _where(comparison: Comparison) -> str:
    """Workload and loads; with a promise, workload, promise and capacities."""
    if comparison.capacities is not None:
        capacities = comparison.capacities
        known = f" ({capacities.text()})" if capacities.baseline else ""
        return f"{comparison.workload} while {capacities.promise.text()}{known}"
    return f"{comparison.workload} {loads([pair.at for pair in comparison.pairs])}"


def _blocks(comparison: Comparison, effect: Effect, detail: str = "") -> str:
    return blocks_clause(effect.blocks, comparison.blocks, comparison.blocks_at_most, detail)
