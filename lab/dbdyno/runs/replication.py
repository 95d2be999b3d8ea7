"""Whether the effects of one run are in another one: replicates, does not replicate, cannot tell.

::

    replicates           the first effect has a direction, the second significantly has the same one, and the
                         interval of their difference lies within half of the first effect
    does not replicate   the second effect significantly has the opposite direction; or the interval lies
    wholly on
                         the side of a weaker effect; or wholly beyond half of the first effect
    cannot tell          neither; or one of the runs has no verdict

This is the distinction of Anderson & Maxwell (2016, Psychol. Methods 21:1): a replication is consistent if
the interval of the difference lies within a region of equivalence, and inconsistent if it leaves zero out.
The difference is that of the two log ratios (`stats.difference`), so half of an effect is its square root:
half of 1.21 times is 1.1 times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.problem import ExitCode, Problem
from dbdyno.result_text import WITHOUT_EFFECT, signed
from dbdyno.runs.comparable import Side, has_same_points
from dbdyno.say.wording import effect_text, finite, interval, join_words, loads, size_text
from dbdyno.stats.difference import difference, is_exact_ratio, log_ratio
from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.signed_rank import percent
from dbdyno.stats.verdict_rule import DIRECTIONS
from dbdyno.store import verdict
from dbdyno.store.measured import Point
from dbdyno.store.several_runs import (
    RepeatedComparison,
    RepeatedEffect,
    RepeatedFactor,
    RepeatedPoint,
    RepeatedSentence,
    Replication,
    Word,
)
from dbdyno.text import compose, join

REPLICATES: Word = "replicates"
NOT_REPLICATED: Word = "does-not-replicate"
CANNOT_TELL: Word = "cannot-tell"
# Word -> the beginning of its sentence.
TITLES: dict[Word, str] = {
    REPLICATES: "Replicates",
    NOT_REPLICATED: compose("Does not replicate"),
    CANNOT_TELL: compose("Cannot tell"),
}


# design.delta_percent of the two runs; None without.
Zones = tuple[float | None, float | None]


@dataclass(frozen=True)
class Names:
    """What sentences call the two runs, and the effect of the first."""

    first: str = compose("the first run")
    second: str = compose("the second run")
    effect: str = compose("the first effect")


def compare_runs(first: Side, second: Side, notes: list[str], names: Names) -> Replication:
    """The effects of a comparison with those of another one; `notes` are the differences between the runs.
    Raises Problem if there is nothing to compare.
    """
    same_points = has_same_points(first.experiment, second.experiment)
    answer = Replication(
        first=first.place,
        second=second.place,
        baseline=first.verdict.baseline,
        notes=notes,
        comparisons=compare_comparisons(first.verdict, second.verdict, names, same_points=same_points),
        factors=compare_factors(first.verdict, second.verdict, names) if same_points else [],
    )
    if not (answer.factors or any(part.curve or part.points for part in answer.comparisons)):
        raise Problem(
            f"{first.name} and {second.name} have no effect in common",
            "Compare runs with different variants",
            ExitCode.NOT_COMPARABLE,
        )
    return answer


def compare_effects(
    first: verdict.Effect, second: verdict.Effect, names: Names, zones: Zones = (None, None)
) -> RepeatedEffect:
    """One effect with the same effect of another run."""
    both = _Pair(_plain(first), _plain(second), zones, names)
    word, reason = both.answer()
    effect_difference, half = both.difference, both.half
    ends = effect_difference.interval_percent if effect_difference else None
    return RepeatedEffect(
        word=word,
        reason=reason,
        first=_stored(first),
        second=_stored(second),
        difference_percent=finite(effect_difference.effect_percent) if effect_difference else None,
        difference_interval_percent=ends and (ends[0] if ends[0] > -100.0 else None, finite(ends[1])),
        confidence=min(first.confidence, second.confidence),
        half_percent=None if half is None else (percent(-half), percent(half)),
    )


def compare_comparisons(
    first: verdict.VerdictFile, second: verdict.VerdictFile, names: Names, *, same_points: bool
) -> list[RepeatedComparison]:
    """The comparisons that both runs have, by every metric that both have, in the order of the first.

    `same_points`: both runs have the same loads; otherwise the effect over all loads is left out.
    """
    entries = {(comparison.variant, comparison.workload): comparison for comparison in second.comparisons}
    repeated_all = []
    for comparison in first.comparisons:
        repeated = entries.get((comparison.variant, comparison.workload))
        if repeated is None or comparison.identical or repeated.identical:
            continue
        by_metric = {entry.curve.metric: entry for entry in _metrics(repeated)}
        for entry in _metrics(comparison):
            if (same := by_metric.get(entry.curve.metric)) is not None:
                versus = compose(
                    "{variant} against {baseline}", variant=comparison.variant, baseline=first.baseline
                )
                repeated_all.append(
                    _comparison(comparison, entry, same, names, versus, same_points=same_points)
                )
    return repeated_all


def compare_factors(
    first: verdict.VerdictFile, second: verdict.VerdictFile, names: Names
) -> list[RepeatedFactor]:
    """The effects of factors that both runs have."""
    entries = {_factor_key(factor): factor for factor in second.factors or ()}
    repeated_all = []
    for factor_effect in first.factors or ():
        if (entry := entries.get(_factor_key(factor_effect))) is None:
            continue
        pairs = zip(factor_effect.factors, factor_effect.levels, factor_effect.against, strict=True)
        versus = " with ".join(
            compose("{factor} {level} against {against}", factor=factor, level=level, against=against)
            for factor, level, against in pairs
        )
        repeated = compare_effects(factor_effect, entry, names, (_zone(first), _zone(second)))
        repeated_all.append(
            RepeatedFactor(
                **dict(repeated),
                factors=factor_effect.factors,
                levels=factor_effect.levels,
                against=factor_effect.against,
                workload=factor_effect.workload,
                sentence=_sentence(repeated, versus, factor_effect.workload),
            )
        )
    return repeated_all


def _comparison(
    entry: verdict.Comparison,
    first: verdict.Comparison | verdict.MetricComparison,
    second: verdict.Comparison | verdict.MetricComparison,
    names: Names,
    versus: str,
    *,
    same_points: bool,
) -> RepeatedComparison:
    by_load = {Point.of(point.at): point for point in second.points}
    both = [(point, by_load[load]) for point in first.points if (load := Point.of(point.at)) in by_load]
    points = [
        RepeatedPoint(
            **dict(
                compare_effects(point, second_point, names, (point.delta_percent, second_point.delta_percent))
            ),
            at=point.at,
        )
        for point, second_point in both
        # The rates of a latency objective have no verdicts of their own.
        if point.verdict or second_point.verdict
    ]
    # Comparisons of a factorial run have no verdict.
    is_compared = same_points and (first.curve.verdict or second.curve.verdict)
    curve = _curve(first.curve, second.curve, points, names) if is_compared else None
    at = loads([point.at for point in first.points])
    where = compose("{workload} {loads}", workload=entry.workload, loads=at)
    return RepeatedComparison(
        variant=entry.variant,
        workload=entry.workload,
        metric=first.curve.metric,
        points=points,
        curve=RepeatedSentence(**dict(curve), sentence=_sentence(curve, versus, where)) if curve else None,
    )


def _curve(
    first: verdict.CombinedEffect,
    second: verdict.CombinedEffect,
    points: Sequence[RepeatedPoint],
    names: Names,
) -> RepeatedEffect:
    """The effect over all loads. One that depends on the load is in the second run if its directions are."""
    repeated = compare_effects(first, second, names, (first.delta_percent, second.delta_percent))
    if first.verdict != "mixed" or second.verdict in WITHOUT_EFFECT:
        return repeated
    significant = [point for point in points if point.first.verdict in DIRECTIONS]
    words = {point.word for point in significant}
    word = NOT_REPLICATED if NOT_REPLICATED in words else REPLICATES if words == {REPLICATES} else CANNOT_TELL
    which = [point for point in significant if point.word == word] or significant
    text = TITLES[word].lower()
    reason = compose(
        "{effect} depends on the load, and {text} {loads}",
        effect=names.effect,
        text=text,
        loads=loads([point.at for point in which]),
    )
    return repeated.model_copy(update={"word": word, "reason": reason})


class _Pair:
    """The same effect in two runs."""

    def __init__(
        self,
        first: tuple[Effect, str],
        second: tuple[Effect, str],
        zones: Zones,
        names: Names,
    ) -> None:
        (self.first, self.word), (self.second, self.other_word) = first, second
        self.delta, self.other_delta = (zone or 0.0 for zone in zones)
        self.names = names
        self.half = abs(log_ratio(self.first.effect_percent)) / 2.0 if is_exact_ratio(self.first) else None
        self.sign = math.copysign(1.0, self.first.effect_percent)
        self.difference = difference(self.first, self.second)

    def answer(self) -> tuple[Word, str]:
        """Word and reason."""
        for word, name in ((self.word, self.names.first), (self.other_word, self.names.second)):
            if word in WITHOUT_EFFECT:
                return CANNOT_TELL, join(" ", (name, WITHOUT_EFFECT[word]))
        if self.word == "equivalent":
            return self._of_equivalence()
        if self.word not in DIRECTIONS:
            text = compose("depends on the load") if self.word == "mixed" else compose("is undecided")
            return CANNOT_TELL, compose(
                "{first} {text}, so it has no effect to replicate", first=self.names.first, text=text
            )
        if self.other_word in DIRECTIONS and self.other_word != self.word:
            return NOT_REPLICATED, compose(
                "the direction is the opposite in {second}", second=self.names.second
            )
        if self.other_word == "undecided" and self.second.is_significant:
            return CANNOT_TELL, (
                compose(
                    "the interval of {second} leaves zero out, but its verdict is undecided (its caveats say "
                    "why)",
                    second=self.names.second,
                )
            )
        if self.difference is None or self.half is None:
            return CANNOT_TELL, compose("of one of the effects only a bound is known")
        return self._by_difference(self.difference, self.half)

    def _by_difference(self, effect_difference: Effect, half: float) -> tuple[Word, str]:
        shown = compose("the difference {shown}", shown=self._shown(effect_difference))
        limits = compose(
            "half of {effect} ({interval} %)",
            effect=self.names.effect,
            interval=interval((percent(-half), percent(half))),
        )
        # Positive: towards a stronger effect.
        weakest, strongest = sorted(self.sign * log_ratio(end) for end in _ends(effect_difference))
        if -half <= weakest and strongest <= half:
            if self._has_same_direction():
                return REPLICATES, compose("{shown} is within {limits}", shown=shown, limits=limits)
            return (
                CANNOT_TELL,
                compose(
                    "{shown} is within {limits}, but the direction is not significant in {second}",
                    shown=shown,
                    limits=limits,
                    second=self.names.second,
                ),
            )
        if strongest < 0.0:
            return NOT_REPLICATED, compose(
                "the effect is weaker in {second}: {shown} leaves zero out",
                second=self.names.second,
                shown=shown,
            )
        if weakest > half:
            return NOT_REPLICATED, compose(
                "the effect is stronger in {second}: {shown} exceeds {limits}",
                second=self.names.second,
                shown=shown,
                limits=limits,
            )
        return CANNOT_TELL, compose("{shown} may be more or less than {limits}", shown=shown, limits=limits)

    def _has_same_direction(self) -> bool:
        is_significant = self.other_word == self.word or self.second.is_significant
        return is_significant and self.second.effect_percent * self.sign > 0.0

    def _of_equivalence(self) -> tuple[Word, str]:
        zone = f"±{self.delta:g} %"
        if self.other_word == "equivalent" and self.other_delta == self.delta:
            return REPLICATES, compose("in both runs any difference is within {zone}", zone=zone)
        if self.second.lies_outside(self.delta):
            return NOT_REPLICATED, compose(
                "the effect in {second} is significantly beyond {zone}", second=self.names.second, zone=zone
            )
        return CANNOT_TELL, compose(
            "the effect in {second} may be within {zone} or not", second=self.names.second, zone=zone
        )

    def _shown(self, effect: Effect) -> str:
        """Estimate and interval; its level of confidence if the first effect has another one."""
        if math.isclose(effect.alpha, self.first.alpha):
            return compose(
                "{percent} % ({ends})",
                percent=signed(effect.effect_percent),
                ends=interval(_ends(effect)),
            )
        return compose(
            "{percent} % ({level:g} % interval {ends})",
            percent=signed(effect.effect_percent),
            level=round(100.0 * (1.0 - effect.alpha), 1),
            ends=interval(_ends(effect)),
        )


def _sentence(repeated: RepeatedEffect, versus: str, where: str) -> str:
    """Word, what was compared, both effects, and the reason."""
    (first, _), (second, _) = _plain(repeated.first), _plain(repeated.second)
    metric = repeated.first.metric
    second_size = size_text(second, with_level=not math.isclose(second.alpha, first.alpha)) or effect_text(
        metric, second
    )
    return compose(
        "{titles}: {versus}, {effect_text}, then {other}; {reason}; {where}.",
        titles=TITLES[repeated.word],
        versus=versus,
        effect_text=effect_text(metric, first),
        other=second_size,
        reason=repeated.reason,
        where=where,
    )


def _plain(entry: verdict.Effect) -> tuple[Effect, str]:
    """The effect with infinite instead of unknown ends, and its verdict."""
    ends = entry.interval_percent
    value = entry.effect_percent
    if value is None:
        # verdict.json has no infinity; its interval tells which end the ratio is at.
        value = math.inf if ends is None or ends[1] is None else -100.0
    bound = Bound(entry.bound) if entry.bound else Bound.EXACT
    plain = Effect(
        effect_percent=value,
        interval_percent=None
        if ends is None
        else (-100.0 if ends[0] is None else ends[0], math.inf if ends[1] is None else ends[1]),
        alpha=1.0 - entry.confidence,
        p_value=1.0,
        blocks=entry.blocks,
        bound=bound,
    )
    return plain, entry.verdict or "undecided"


def _ends(effect: Effect) -> tuple[float, float]:
    """The interval; an unknown end without one."""
    return effect.interval_percent or (-100.0, math.inf)


def _zone(of: verdict.VerdictFile) -> float | None:
    """The zone of equivalence of an experiment with factors, whose effects have none of their own."""
    return next((comparison.curve.delta_percent for comparison in of.comparisons), None)


def _stored(entry: verdict.Effect) -> verdict.Effect:
    return verdict.Effect(**{name: getattr(entry, name) for name in verdict.Effect.model_fields})


def _metrics(entry: verdict.Comparison) -> Sequence[verdict.Comparison | verdict.MetricComparison]:
    return [entry, *(entry.metrics or ())]


def _factor_key(effect: verdict.FactorEffect) -> tuple[str, ...]:
    return (
        effect.workload,
        join_words(effect.factors),
        join_words(effect.levels),
        join_words(effect.against),
    )
