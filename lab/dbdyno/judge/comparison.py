"""One variant against the baseline on one workload: which blocks make pairs, and the ratios in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dbdyno.finding import Finding
from dbdyno.judge.effects import Judged
from dbdyno.judge.measured import THROUGHPUT, Measured
from dbdyno.judge.order import Order
from dbdyno.judge.wording import finite
from dbdyno.stats.paired import Bound, Effect, Ratios
from dbdyno.stats.signed_rank import percent
from dbdyno.stats.words import Verdict


@dataclass(frozen=True)
class Scale:
    """What is compared and how it is judged; the same for all comparisons of an experiment."""

    # A closed loop is judged by its throughput; with rates given the throughput is set, and the latency
    # answers.
    metric: str
    # None where the experiment declares no zone of equivalence: the word is then never used.
    delta_percent: float | None
    # Level of each printed interval: the chance of a false word, shared among the run's sentences.
    alpha: float

    @property
    def higher_is_faster(self) -> bool:
        """Whether more of the metric is better."""
        return self.metric == THROUGHPUT


@dataclass(frozen=True)
class Pairs:
    """The blocks of one load in which both variants have a result."""

    at: Mapping[str, float]
    # Block -> trial.
    baseline: Mapping[int, Measured]
    variant: Mapping[int, Measured]

    def ratios(self, metric: str) -> Ratios:
        """Block -> log ratio of variant to baseline, by its bounds."""
        lows: dict[int, float] = {}
        highs: dict[int, float] = {}
        for block, base in self.baseline.items():
            lows[block], highs[block] = _ratio(
                base.log_bounds(metric), self.variant[block].log_bounds(metric)
            )
        return Ratios(lows, highs)


def _ratio(base: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Bounds of a difference of logarithms; infinite where nothing is known."""
    low, high = other[0] - base[1], other[1] - base[0]
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def pair(trials: Sequence[Measured], at: Mapping[str, float], baseline: str, variant: str) -> Pairs:
    """The pairs of one workload's load; a block in which a variant has no result is left out."""
    arms: dict[str, dict[int, Measured]] = {baseline: {}, variant: {}}
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
    """One variant against the baseline on one workload, with its words."""

    baseline: str
    variant: str
    workload: str
    scale: Scale
    pairs: tuple[Pairs, ...]
    judged: Judged
    # The two variants differ in nothing but their names.
    identical: bool = False
    # Another sentence of the run gives the word: that of a factor.
    wordless: bool = False
    # Other processes disturbed blocks that count, and nobody overrode it.
    disturbed: bool = False
    stops: tuple[Finding, ...] = ()
    # Blocks of this comparison whose trials have all run, and those that were planned.
    blocks: tuple[int, int] = (0, 0)
    # Why trials failed by their server: variant -> how many of how many, and the reasons.
    failures: Mapping[str, str] = field(default_factory=dict)
    # What identical variants of the run differ by over all loads, and at each load.
    floor_percent: float | None = None
    level_floors: tuple[float | None, ...] = ()
    order: Order | None = None
    # Variant -> the loads, by their index, at which it has a result.
    present: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, str, str]:
        """Baseline, variant and workload."""
        return self.baseline, self.variant, self.workload

    @property
    def verdict(self) -> Verdict | None:
        """The word; None where the factors have it."""
        return None if self.wordless and self.judged.verdict not in _WITHOUT_NUMBERS else self.judged.verdict


# Verdicts that no factor's sentence replaces.
_WITHOUT_NUMBERS = (Verdict.NOT_COMPARABLE, Verdict.UNFINISHED, Verdict.TOO_FEW_BLOCKS)


def comparison_json(comparison: Comparison, sentence: str) -> dict[str, Any]:
    """One entry of `comparisons` in verdict.json."""
    points = [_point_json(comparison, index) for index in range(len(comparison.pairs))]
    overall = comparison.judged.overall
    return {
        "variant": comparison.variant,
        "workload": comparison.workload,
        **({"identical": True} if comparison.identical else {}),
        "points": points,
        "curve": {
            "metric": comparison.scale.metric,
            **effect_json(overall),
            "confidence": 1.0 - comparison.judged.assessment.alpha,
            "noise_floor_percent": finite(comparison.floor_percent),
            "delta_percent": comparison.scale.delta_percent,
            "blocks": overall.blocks if overall else 0,
            "p_value": p_value_json(comparison.judged),
            "verdict": comparison.verdict and str(comparison.verdict),
            "sentence": sentence,
        },
        **({"order": comparison.order.as_json()} if comparison.order else {}),
    }


def _point_json(comparison: Comparison, index: int) -> dict[str, Any]:
    """One entry of `points`. The two values are medians over the blocks.

    `censored` is there where one of them is only a lower bound, `bound` where the effect is one.
    """
    scale, pairs, found = comparison.scale, comparison.pairs[index], comparison.judged.levels[index]
    verdict = comparison.judged.level_verdicts[index]
    arms = {"baseline": pairs.baseline, "variant": pairs.variant}
    censored = {
        name: any(t.figures is not None and scale.metric in t.figures.censored for t in arm.values())
        for name, arm in arms.items()
    }
    floors = comparison.level_floors
    return {
        "at": dict(pairs.at),
        "metric": scale.metric,
        **{name: _median(arm, scale.metric) for name, arm in arms.items()},
        **effect_json(found),
        "confidence": 1.0 - comparison.judged.assessment.alpha,
        "noise_floor_percent": finite(floors[index]) if floors else None,
        "delta_percent": scale.delta_percent,
        "blocks": found.blocks if found else 0,
        "trials": {name: [trial.place.index for trial in arm.values()] for name, arm in arms.items()},
        "verdict": None if comparison.wordless and verdict not in _WITHOUT_NUMBERS else str(verdict),
        **({"censored": censored} if any(censored.values()) else {}),
    }


def _median(arm: Mapping[int, Measured], metric: str) -> float | None:
    """The median over the blocks; None where it is not finite: most trials failed by their server."""
    values = [trial.value(metric) for trial in arm.values()]
    median = float(np.median(values)) if values else math.nan
    return median if math.isfinite(median) else None


def effect_json(found: Effect | None) -> dict[str, Any]:
    """Estimate and interval as verdict.json keeps them."""
    if found is None:
        return {"effect_percent": None, "interval_percent": None}
    return {
        "effect_percent": finite(found.effect_percent),
        "interval_percent": found.interval_percent and [finite(end) for end in found.interval_percent],
        **({"bound": str(found.bound)} if found.bound != Bound.EXACT else {}),
    }


def p_value_json(judged: Judged) -> float | None:
    """The p-value over all loads. An unfinished run has none, as it has no interval: see `Judged`."""
    unfinished = judged.verdict == Verdict.UNFINISHED
    return judged.overall.p_value if judged.overall and not unfinished else None


def _blocks_percent(ratios: Ratios) -> dict[str, float | None]:
    """Block -> change in percent: the finite bound, or null where there is none."""
    nearer = {b: low if math.isfinite(low) else ratios.highs[b] for b, low in ratios.lows.items()}
    return {str(block): percent(r) if math.isfinite(r) else None for block, r in nearer.items()}


def blocks_json(comparison: Comparison) -> dict[str, Any]:
    """The effect of every single block, in percent, for the charts."""
    assessment = comparison.judged.assessment
    finished = comparison.judged.verdict != Verdict.UNFINISHED
    return {
        "variant": comparison.variant,
        "workload": comparison.workload,
        "points": [
            {
                "at": dict(pairs.at),
                "p_value": level.p_value if level and finished else None,
                "percent": _blocks_percent(ratios),
            }
            for pairs, level, ratios in zip(
                comparison.pairs, assessment.levels, assessment.ratios, strict=True
            )
        ],
        "curve": {
            "p_value": p_value_json(comparison.judged),
            "percent": _blocks_percent(assessment.overall_ratios),
        },
    }
