"""From log ratios to verdicts, for comparisons and for contrasts of factors.

`assess` computes effects. `give_words` decides for all questions of a run together which of them may have a
direction, so that verdict and printed interval agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbdyno.stats.family import Tests, decide
from dbdyno.stats.paired import Effect, Ratios, effect, joint_effects, mean_ratios
from dbdyno.stats.words import Circumstances, Verdict, choose, is_mixed


@dataclass(frozen=True)
class Assessment:
    """The effects of one question: at each load, and over all loads."""

    # One per load; empty if there is no result.
    ratios: tuple[Ratios, ...]
    overall_ratios: Ratios
    # Effects with simultaneous intervals. With one load, this is the effect over all loads.
    levels: tuple[Effect | None, ...]
    overall: Effect | None
    # Effects with an individual test of each load, as an equivalence test over all loads requires.
    alone: tuple[Effect | None, ...]
    # Significance level of every interval.
    alpha: float


@dataclass(frozen=True)
class Conditions:
    """Conditions of one question's verdict other than the measured values."""

    circumstances: Circumstances = field(default_factory=Circumstances)
    delta_percent: float | None = None
    # Noise floors at each load and over all loads; None without identical variants.
    level_floors: Sequence[float | None] = ()
    floor_percent: float | None = None


@dataclass(frozen=True)
class Judged:
    """Effects with their verdicts. An effect without a direction has an interval that contains zero."""

    assessment: Assessment
    levels: tuple[Effect | None, ...]
    overall: Effect | None
    level_verdicts: tuple[Verdict, ...]
    verdict: Verdict

    @property
    def sure_levels(self) -> list[int]:
        """The loads at which the effect has a direction."""
        sure = (Verdict.FASTER, Verdict.SLOWER)
        return [index for index, verdict in enumerate(self.level_verdicts) if verdict in sure]


def assess(ratios: Sequence[Ratios], alpha: float) -> Assessment:
    """The effects of one question, at its share of the family-wise error rate."""
    overall_ratios = mean_ratios(ratios)
    overall = effect(overall_ratios, alpha)
    return Assessment(
        ratios=tuple(ratios),
        overall_ratios=overall_ratios,
        levels=joint_effects(ratios, alpha) if len(ratios) > 1 else (overall,),
        overall=overall,
        alone=tuple(effect(level, alpha) for level in ratios),
        alpha=alpha,
    )


def give_words(
    family: Sequence[tuple[Assessment, Conditions]], *, higher_is_faster: bool, alpha: float
) -> list[Judged]:
    """The verdicts of all questions that share the family-wise error rate, in the order of `family`."""
    words = decide([_tests(assessment, conditions) for assessment, conditions in family], alpha)
    return [
        _give(assessment, conditions, one.overall, one.levels, higher_is_faster=higher_is_faster)
        for (assessment, conditions), one in zip(family, words, strict=True)
    ]


def _tests(assessment: Assessment, conditions: Conditions) -> Tests:
    """The input of the family's procedure. A question without a verdict keeps its share of the level."""
    levels = assessment.levels if len(assessment.levels) > 1 else ()
    overall = assessment.overall
    if overall is None or conditions.circumstances.stopped or conditions.circumstances.unfinished:
        return Tests(p_value=1.0, blocks=overall.blocks if overall else 0, levels=[None] * len(levels))
    return Tests(overall.p_value, overall.blocks, [level.p_value if level else None for level in levels])


def judge_identical(assessment: Assessment, conditions: Conditions, *, higher_is_faster: bool) -> Judged:
    """The verdicts of a comparison of identical variants: never a direction."""
    identical = replace(conditions.circumstances, identical=True)
    conditions = replace(conditions, circumstances=identical)
    sure = [level is not None and level.is_sure for level in assessment.levels]
    overall = assessment.overall is not None and assessment.overall.is_sure
    levels = sure if len(sure) > 1 else []
    return _give(assessment, conditions, overall, levels, higher_is_faster=higher_is_faster)


def _give(
    assessment: Assessment,
    conditions: Conditions,
    overall_differs: bool,
    levels_differ: Sequence[bool],
    *,
    higher_is_faster: bool,
) -> Judged:
    delta, around = conditions.delta_percent, conditions.circumstances
    floors = conditions.level_floors or [None] * len(assessment.levels)
    equivalent = delta is not None and all(
        level is not None and level.lies_within(delta) for level in assessment.alone
    )
    beyond = [
        level is not None and level.is_sure and (floor is None or abs(level.effect_percent) > floor)
        for level, floor in zip(assessment.levels, floors, strict=True)
    ]
    mixed = not (around.disturbed or around.identical) and is_mixed(
        list(itertools.compress(assessment.levels, beyond))
    )
    if mixed:
        # Opposite signs are a stronger result than a single sign: every significant load gets its direction.
        levels_differ = beyond
    verdict = choose(
        assessment.overall,
        differs=overall_differs,
        higher_is_faster=higher_is_faster,
        equivalent=equivalent,
        floor_percent=conditions.floor_percent,
        circumstances=around,
    )
    if mixed and verdict not in (Verdict.NOT_COMPARABLE, Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS):
        verdict = Verdict.MIXED
    overall = _agreeing(assessment.overall, around, differs=overall_differs)
    if len(assessment.levels) == 1:
        return Judged(assessment, (overall,), overall, (verdict,), verdict)
    level_verdicts = [
        choose(
            level,
            differs=differs,
            higher_is_faster=higher_is_faster,
            delta_percent=delta,
            equivalent=False if mixed and differs else True if equivalent else None,
            floor_percent=floor,
            circumstances=around,
        )
        for level, differs, floor in zip(assessment.levels, levels_differ, floors, strict=True)
    ]
    levels = [
        _agreeing(level, around, differs=differs)
        for level, differs in zip(assessment.levels, levels_differ, strict=True)
    ]
    return Judged(assessment, tuple(levels), overall, tuple(level_verdicts), verdict)


def _agreeing(one: Effect | None, around: Circumstances, *, differs: bool) -> Effect | None:
    """The effect to print: its interval contains zero unless the effect may have a direction.

    An unfinished run gets no interval: a user who looks after each block would stop the run after a lucky
    one.
    """
    if one is None:
        return None
    if around.unfinished:
        return replace(one, interval_percent=None)
    return one if differs or around.disturbed or around.identical else one.with_zero()
