"""Computes effects from log ratios, and verdicts from effects, for comparisons and for contrasts of factors.

`assess` computes the effects of one comparison. `judge_family` decides for all comparisons of a run together
which effects are significant, so that the family-wise error rate holds, and makes interval and verdict agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbdyno.stats.family import (
    ComparisonTests,
    blocks_for_verdict,
    decide,
    is_within,
    load_levels,
    overall_levels,
)
from dbdyno.stats.paired import Effect, Ratios, effect, joint_effects, mean_ratios
from dbdyno.stats.repeated import Looks
from dbdyno.stats.verdict_rule import DIRECTIONS, RESULTS, Circumstances, Verdict, choose, is_mixed


@dataclass(frozen=True)
class Assessment:
    """The effects of one comparison or contrast: at each load, and over all loads."""

    # Log ratios at each load; empty if there is no result.
    ratios: tuple[Ratios, ...]
    overall_ratios: Ratios
    # Effect at each load, with intervals that are simultaneous over all loads of all tests. If there is only
    # one load, it is equal to `overall`.
    load_effects: tuple[Effect | None, ...]
    overall: Effect | None
    # Effect at each load with its interval at `level` for the equivalence test: individual, or simultaneous
    # over several tests. Empty without that test.
    separate_effects: tuple[Effect | None, ...]
    # Significance level of every other interval.
    alpha: float
    # Significance level of the tests. It is below alpha if secondary metrics share the error rate.
    level: float
    # Minimum number of blocks with which there can be a verdict. With fewer, no effect has an interval.
    blocks_needed: int
    # The looks at the effect over all loads; None if the number of blocks was fixed before the run.
    looks: Looks | None = None
    # The log ratios over all loads of all tests (workloads) of the variant, whose intervals are simultaneous,
    # and the place of this test among them.
    tests: tuple[Ratios, ...] = ()
    place: int = 0


@dataclass(frozen=True)
class Stopping:
    """What the statistics of a run that may stop after any block depend on."""

    # Number of blocks that are never exceeded; None if blocks may be added at any time.
    last: int | None
    # Number of tests that share the family-wise error rate.
    family: int
    # Largest number of blocks of the plan.
    planned: int


@dataclass(frozen=True)
class Conditions:
    """All inputs of a verdict other than the effects."""

    # Whether a higher value of the metric is better.
    higher_is_faster: bool
    circumstances: Circumstances = field(default_factory=Circumstances)
    delta_percent: float | None = None
    # Noise floors at each load and over all loads; None if the run has no identical variants.
    load_floors: Sequence[float | None] = ()
    floor_percent: float | None = None
    # The change of the metric that the gate allows; None without a gate.
    limit_percent: float | None = None
    # The variant whose tests (workloads) are one group of the family; None for a group of its own.
    group: str | None = None


@dataclass(frozen=True)
class Judged:
    """The effects of one comparison or contrast, with their verdicts.

    If the verdict of an effect has no direction, its interval contains zero.
    """

    assessment: Assessment
    load_effects: tuple[Effect | None, ...]
    overall: Effect | None
    load_verdicts: tuple[Verdict, ...]
    verdict: Verdict
    # Whether the effect over all loads is on one side of what the gate allows, beyond chance.
    is_gate_decided: bool = False
    # The same, for the claim about all tests (workloads) of the variant.
    is_gate_decided_alone: bool = False
    # Whether every test of the comparison has a result.
    is_complete: bool = False

    @property
    def significant_loads(self) -> list[int]:
        """The indices of the loads at which the effect has a direction."""
        return [index for index, verdict in enumerate(self.load_verdicts) if verdict in DIRECTIONS]


def overall_looks(stopping: Stopping, loads: int, share: float) -> Looks:
    """The looks at an effect over all loads, whose tests have this share of the error rate."""
    return Looks(stopping.last, overall_levels(stopping.family, loads, share), stopping.planned, share)


def assess(
    ratios: Sequence[Ratios], alpha: float, stopping: Stopping | None = None, share: float = 1.0
) -> Assessment:
    """The effects of one comparison or contrast, from the ratios at each load; see `assess_jointly`."""
    (assessment,) = assess_jointly([ratios], alpha, stopping, share)
    return assessment


def assess_jointly(
    tests: Sequence[Sequence[Ratios]],
    alpha: float,
    stopping: Stopping | None = None,
    share: float = 1.0,
    *,
    has_zone: bool = True,
) -> list[Assessment]:
    """The effects of one variant in each test (workload), from the ratios at each load.

    `alpha` is its share of the family-wise error rate. The intervals over all loads of all tests are
    simultaneous, and so are those at all loads of all tests. The tests of the verdict have the level `share`
    x `alpha`. With `stopping`, the effects allow for a look after every block. `has_zone`: a zone of
    equivalence is declared; else there are no effects for that test.
    """
    over_loads = tuple(mean_ratios(ratios) for ratios in tests)
    every = [ratio for ratios in tests for ratio in ratios]
    # All tests of an experiment have the same loads.
    loads, level = len(tests[0]), share * alpha
    looks = overall_looks(stopping, loads, share) if stopping else None
    of_loads = Looks(stopping.last, load_levels(share), stopping.planned, share) if stopping else None
    separate = Looks(stopping.last, planned=stopping.planned, share=share) if stopping else None
    if len(tests) == 1:
        overall: Sequence[Effect | None] = (effect(over_loads[0], alpha, looks),)
        alone: Sequence[Effect | None] = [effect(entry, level, separate) for entry in every]
    else:
        overall = joint_effects(over_loads, alpha, looks)
        alone = joint_effects(every, level, separate) if has_zone else ()
    load_effects = joint_effects(every, alpha, of_loads) if loads > 1 else overall
    return [
        _without_early_intervals(
            Assessment(
                ratios=tuple(ratios),
                overall_ratios=over_loads[place],
                load_effects=tuple(load_effects[place * loads : (place + 1) * loads]),
                overall=overall[place],
                separate_effects=tuple(alone[place * loads : (place + 1) * loads]),
                alpha=alpha,
                level=level,
                blocks_needed=blocks_for_verdict(alpha, loads, share, looks),
                looks=looks,
                tests=over_loads,
                place=place,
            )
        )
        for place, ratios in enumerate(tests)
    ]


def _without_early_intervals(assessment: Assessment) -> Assessment:
    """The assessment, without intervals if the blocks are too few for a verdict."""
    if len(assessment.overall_ratios.lows) >= assessment.blocks_needed:
        return assessment
    return replace(
        assessment,
        load_effects=tuple(each and replace(each, interval_percent=None) for each in assessment.load_effects),
        overall=assessment.overall and replace(assessment.overall, interval_percent=None),
    )


def judge_family(family: Sequence[tuple[Assessment, Conditions]], alpha: float) -> list[Judged]:
    """The verdicts of all members of `family`, which share the family-wise error rate, in the same order.

    Members whose conditions name the same group have been assessed together.
    """
    significant = decide([_tests(assessment, conditions) for assessment, conditions in family], alpha)
    return [
        replace(
            _judge(assessment, conditions, entry.overall, entry.loads),
            is_gate_decided=entry.gate,
            is_gate_decided_alone=entry.gate_alone,
            is_complete=entry.is_complete,
        )
        for (assessment, conditions), entry in zip(family, significant, strict=True)
    ]


def _tests(assessment: Assessment, conditions: Conditions) -> ComparisonTests:
    """The p-values of one member of the family. A member that cannot get a verdict still keeps its share of
    alpha.
    """
    effects = assessment.load_effects if len(assessment.load_effects) > 1 else ()
    overall = assessment.overall
    blocks = overall.blocks if overall and not assessment.looks else None
    limit = conditions.limit_percent
    group = conditions.group
    if overall is None or conditions.circumstances.is_stopped or conditions.circumstances.is_unfinished:
        none = None if limit is None else 1.0
        return ComparisonTests(1.0, blocks, loads=[None] * len(effects), gate=none, group=group)
    of_limit = alone = None
    if limit is not None:
        alone = effect(assessment.overall_ratios.against(limit), assessment.alpha, assessment.looks)
        of_limit = alone
    if limit is not None and len(assessment.tests) > 1:
        shifted = [test.against(limit) for test in assessment.tests]
        place = assessment.place
        of_limit = joint_effects(shifted, assessment.alpha, assessment.looks, only=place)[place]
    return ComparisonTests(
        overall.p_value,
        blocks,
        [entry.p_value if entry else None for entry in effects],
        of_limit.p_value if of_limit else None,
        alone.p_value if alone else None,
        has_open_equivalence=not _is_equivalence_decided(assessment, conditions.delta_percent),
        group=group,
    )


def _is_equivalence_decided(assessment: Assessment, delta_percent: float | None) -> bool:
    """Whether the effect at each load is within ±delta, or outside, beyond chance; always without a delta."""
    return delta_percent is None or all(
        separate_effect is not None
        and (separate_effect.lies_within(delta_percent) or separate_effect.lies_outside(delta_percent))
        for separate_effect in assessment.separate_effects
    )


def judge_identical(assessment: Assessment, conditions: Conditions) -> Judged:
    """The verdicts of a comparison of identical variants, which never have a direction."""
    circumstances = replace(conditions.circumstances, is_identical=True)
    conditions = replace(conditions, circumstances=circumstances)
    loads = [
        load_effect is not None and load_effect.is_significant for load_effect in assessment.load_effects
    ]
    overall = assessment.overall is not None and assessment.overall.is_significant
    return _judge(assessment, conditions, overall, loads if len(loads) > 1 else [])


def _judge(
    assessment: Assessment,
    conditions: Conditions,
    overall_is_significant: bool,
    loads_significant: Sequence[bool],
) -> Judged:
    delta, circumstances = conditions.delta_percent, conditions.circumstances
    floors = conditions.load_floors or [None] * len(assessment.load_effects)
    is_equivalent = delta is not None and all(
        separate_effect is not None and separate_effect.lies_within(delta)
        for separate_effect in assessment.separate_effects
    )
    exceeds_noise = [
        load_effect is not None
        and load_effect.is_significant
        and is_within(load_effect.p_value, assessment.level)
        and (floor is None or abs(load_effect.effect_percent) > floor)
        for load_effect, floor in zip(assessment.load_effects, floors, strict=True)
    ]
    has_mixed_signs = not circumstances.is_identical and is_mixed(
        list(itertools.compress(assessment.load_effects, exceeds_noise))
    )
    if has_mixed_signs:
        # The verdict "mixed" needs the direction at every load whose simultaneous interval excludes zero.
        loads_significant = exceeds_noise
    verdict = choose(
        assessment.overall,
        is_significant=overall_is_significant,
        higher_is_faster=conditions.higher_is_faster,
        is_equivalent=is_equivalent,
        floor_percent=conditions.floor_percent,
        circumstances=circumstances,
    )
    if has_mixed_signs and verdict in RESULTS:
        verdict = Verdict.MIXED
    overall = _effect_to_show(assessment.overall, circumstances, is_significant=overall_is_significant)
    if len(assessment.load_effects) == 1:
        return Judged(assessment, (overall,), overall, (verdict,), verdict)
    load_verdicts = [
        choose(
            load_effect,
            is_significant=is_significant,
            higher_is_faster=conditions.higher_is_faster,
            delta_percent=delta,
            is_equivalent=False if has_mixed_signs and is_significant else True if is_equivalent else None,
            floor_percent=floor,
            circumstances=circumstances,
        )
        for load_effect, is_significant, floor in zip(
            assessment.load_effects, loads_significant, floors, strict=True
        )
    ]
    load_effects = [
        _effect_to_show(load_effect, circumstances, is_significant=is_significant)
        for load_effect, is_significant in zip(assessment.load_effects, loads_significant, strict=True)
    ]
    return Judged(assessment, tuple(load_effects), overall, tuple(load_verdicts), verdict)


def _effect_to_show(
    separate: Effect | None, circumstances: Circumstances, *, is_significant: bool
) -> Effect | None:
    """The effect with an interval that agrees with the verdict: it contains zero unless the effect is
    significant.

    An unfinished run has no intervals, because users would stop it after a block with a lucky result.
    """
    if separate is None:
        return None
    if circumstances.is_unfinished:
        return replace(separate, interval_percent=None)
    if is_significant or circumstances.is_identical:
        return separate
    return separate.with_zero()
