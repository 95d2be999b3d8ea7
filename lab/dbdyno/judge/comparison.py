"""One variant against the baseline on one workload: pairs of trials within blocks, and their ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dbdyno.finding import Finding
from dbdyno.judge.effects import Judged
from dbdyno.judge.measured import THROUGHPUT
from dbdyno.judge.wording import finite
from dbdyno.stats.paired import Bound, Effect, Ratios
from dbdyno.stats.signed_rank import percent
from dbdyno.stats.words import Verdict
from dbdyno.store import verdict
from dbdyno.store.document import At, Metric
from dbdyno.store.measured import Blocks, BlocksAt, ComparisonBlocks, MeasuredTrial
from dbdyno.store.verdict import Order


@dataclass(frozen=True)
class Scale:
    """The metric and the limits of the verdict; the same for all comparisons of an experiment."""

    # Throughput in a closed loop. In an open loop the rate fixes the throughput, so latency is compared.
    metric: Metric
    # None if the experiment declares no zone of equivalence; the verdict is then never "equivalent".
    delta_percent: float | None
    # Significance level of each printed interval: the family-wise error rate divided by the number of
    # sentences.
    alpha: float

    @property
    def higher_is_faster(self) -> bool:
        """Whether more of the metric is better."""
        return self.metric == THROUGHPUT


@dataclass(frozen=True)
class Pairs:
    """The blocks of one load in which both variants have results."""

    at: At
    # Block -> trial.
    baseline: Mapping[int, MeasuredTrial]
    variant: Mapping[int, MeasuredTrial]

    def ratios(self, metric: str) -> Ratios:
        """Block -> bounds of the log ratio of variant to baseline."""
        lows: dict[int, float] = {}
        highs: dict[int, float] = {}
        for block, base in self.baseline.items():
            lows[block], highs[block] = _ratio(
                base.log_bounds(metric), self.variant[block].log_bounds(metric)
            )
        return Ratios(lows, highs)


def _ratio(base: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Bounds of a difference of logarithms; infinite where they are unknown."""
    low, high = other[0] - base[1], other[1] - base[0]
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def pair(trials: Sequence[MeasuredTrial], at: At, baseline: str, variant: str) -> Pairs:
    """The pairs at one load of a workload; blocks without a result of both variants are left out."""
    arms: dict[str, dict[int, MeasuredTrial]] = {baseline: {}, variant: {}}
    for trial in trials:
        if trial.place.at == at and trial.is_result and trial.place.variant in arms:
            arms[trial.place.variant][trial.place.block] = trial
    both = sorted(arms[baseline].keys() & arms[variant].keys())
    return Pairs(
        at=at,
        baseline={block: arms[baseline][block] for block in both},
        variant={block: arms[variant][block] for block in both},
    )


@dataclass(frozen=True)
class Comparison:
    """One variant against the baseline on one workload, with its verdicts."""

    baseline: str
    variant: str
    workload: str
    scale: Scale
    pairs: tuple[Pairs, ...]
    judged: Judged
    # The two variants differ in nothing but their names.
    identical: bool = False
    # Whether the verdict is in a factor's sentence, so that this comparison has none.
    wordless: bool = False
    # Whether other processes disturbed blocks that count, without an override.
    disturbed: bool = False
    stops: tuple[Finding, ...] = ()
    # Number of blocks of this comparison in which all trials have run, and number of planned blocks.
    blocks: tuple[int, int] = (0, 0)
    # Failures that the server caused, by variant: the number of failed and of all trials, and the reasons.
    failures: Mapping[str, str] = field(default_factory=dict)
    # Noise floors over all loads, and at each load.
    floor_percent: float | None = None
    level_floors: tuple[float | None, ...] = ()
    order: Order | None = None
    # Variants without a result at some load.
    lacking: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, str, str]:
        """Baseline, variant and workload."""
        return self.baseline, self.variant, self.workload

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if the factors have the verdicts."""
        return None if self.wordless and self.judged.verdict not in _WITHOUT_NUMBERS else self.judged.verdict


# Verdicts that a comparison keeps even if the factors have the verdicts.
_WITHOUT_NUMBERS = (Verdict.NOT_COMPARABLE, Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS)


def comparison_entry(comparison: Comparison, sentence: str) -> verdict.Comparison:
    """One entry of `comparisons` in verdict.json."""
    overall = comparison.judged.overall
    return verdict.Comparison(
        variant=comparison.variant,
        workload=comparison.workload,
        identical=True if comparison.identical else None,
        points=[_point(comparison, index) for index in range(len(comparison.pairs))],
        curve=verdict.Curve(
            metric=comparison.scale.metric,
            **change(overall),
            confidence=1.0 - comparison.judged.assessment.alpha,
            noise_floor_percent=finite(comparison.floor_percent),
            delta_percent=comparison.scale.delta_percent,
            blocks=overall.blocks if overall else 0,
            p_value=overall_p_value(comparison.judged),
            verdict=comparison.verdict.value if comparison.verdict else None,
            sentence=sentence,
        ),
        order=comparison.order,
    )


def _point(comparison: Comparison, index: int) -> verdict.Point:
    """One entry of `points`. The two values are medians over the blocks."""
    scale, pairs, level = comparison.scale, comparison.pairs[index], comparison.judged.levels[index]
    word = comparison.judged.level_verdicts[index]
    arms = {"baseline": pairs.baseline, "variant": pairs.variant}
    censored = {
        name: any(t.figures is not None and scale.metric in t.figures.censored for t in arm.values())
        for name, arm in arms.items()
    }
    floors = comparison.level_floors
    return verdict.Point(
        at=pairs.at,
        metric=scale.metric,
        baseline=_median(pairs.baseline, scale.metric),
        variant=_median(pairs.variant, scale.metric),
        **change(level),
        confidence=1.0 - comparison.judged.assessment.alpha,
        noise_floor_percent=finite(floors[index]) if floors else None,
        delta_percent=scale.delta_percent,
        blocks=level.blocks if level else 0,
        trials=verdict.Trials(**{name: [t.place.index for t in arm.values()] for name, arm in arms.items()}),
        verdict=None if comparison.wordless and word not in _WITHOUT_NUMBERS else word.value,
        censored=verdict.Censored(**censored) if any(censored.values()) else None,
    )


def _median(arm: Mapping[int, MeasuredTrial], metric: str) -> float | None:
    """The median over the blocks; None if it is infinite, because the server failed most trials."""
    values = [trial.value(metric) for trial in arm.values()]
    median = float(np.median(values)) if values else math.nan
    return median if math.isfinite(median) else None


def change(effect: Effect | None) -> dict[str, Any]:
    """Estimate, interval and bound in the format of verdict.json and explained.json."""
    if effect is None:
        return {"effect_percent": None, "interval_percent": None}
    ends = effect.interval_percent
    return {
        "effect_percent": finite(effect.effect_percent),
        "interval_percent": ends and (finite(ends[0]), finite(ends[1])),
        "bound": None if effect.bound == Bound.EXACT else effect.bound.value,
    }


def overall_p_value(judged: Judged) -> float | None:
    """The p-value over all loads. An unfinished run has none, and no interval: see `Judged`."""
    unfinished = judged.verdict == Verdict.UNFINISHED
    return judged.overall.p_value if judged.overall and not unfinished else None


def _blocks_percent(ratios: Ratios) -> dict[str, float | None]:
    """Block -> change in percent: the finite bound, or None without one."""
    nearer = {b: low if math.isfinite(low) else ratios.highs[b] for b, low in ratios.lows.items()}
    return {str(block): percent(r) if math.isfinite(r) else None for block, r in nearer.items()}


def comparison_blocks(comparison: Comparison) -> ComparisonBlocks:
    """The effect of every single block, for the charts."""
    assessment = comparison.judged.assessment
    finished = comparison.judged.verdict != Verdict.UNFINISHED
    return ComparisonBlocks(
        variant=comparison.variant,
        workload=comparison.workload,
        points=[
            BlocksAt(
                at=pairs.at,
                p_value=level.p_value if level and finished else None,
                percent=_blocks_percent(ratios),
            )
            for pairs, level, ratios in zip(
                comparison.pairs, assessment.levels, assessment.ratios, strict=True
            )
        ],
        curve=Blocks(
            p_value=overall_p_value(comparison.judged), percent=_blocks_percent(assessment.overall_ratios)
        ),
    )
