"""One variant against the baseline on one workload: an effect per point, and one over the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbdyno.judge.measured import Measured
from dbdyno.stats.paired import ALPHA, Effect, curve_effect, curve_log_ratios, effects
from dbdyno.stats.signed_rank import log_ratios, percent
from dbdyno.stats.words import DEFAULT_DELTA_PERCENT, Verdict, choose

THROUGHPUT, LATENCY_P95 = "throughput", "latency_p95_us"


@dataclass(frozen=True)
class Scale:
    """What is compared and how it is judged; the same for all comparisons of an experiment."""

    # A closed loop is judged by its throughput; with rates given the throughput is set, and the latency
    # answers.
    metric: str
    delta_percent: float
    # Largest effect seen between two identical set-ups; None where no such calibration was run.
    floor_percent: float | None = None
    confidence: float = 1.0 - ALPHA

    @property
    def higher_is_faster(self) -> bool:
        """Whether more of the metric is better."""
        return self.metric == THROUGHPUT


def scale(*, open_loop: bool, delta_percent: float | None) -> Scale:
    """The scale of an experiment: its loop decides the metric, its design the zone of equivalence."""
    return Scale(
        metric=LATENCY_P95 if open_loop else THROUGHPUT,
        delta_percent=DEFAULT_DELTA_PERCENT if delta_percent is None else delta_percent,
    )


@dataclass(frozen=True)
class Pairs:
    """The blocks of one point in which both arms have figures."""

    at: Mapping[str, float]
    # Block -> trial.
    baseline: Mapping[int, Measured]
    variant: Mapping[int, Measured]

    def values(self, arm: Mapping[int, Measured], metric: str) -> list[float]:
        """The metric of one arm, in order of blocks."""
        return [trial.figures.metric(metric) for _, trial in sorted(arm.items()) if trial.figures is not None]

    def log_ratios(self, metric: str) -> dict[int, float]:
        """Block -> log ratio of variant to baseline."""
        ratios = log_ratios(self.values(self.baseline, metric), self.values(self.variant, metric))
        return {block: float(ratio) for block, ratio in zip(sorted(self.baseline), ratios, strict=True)}


def pair(trials: Sequence[Measured], at: Mapping[str, float], baseline: str, variant: str) -> Pairs:
    """The pairs of one workload's point; a block that lacks an arm is left out."""
    arms: dict[str, dict[int, Measured]] = {baseline: {}, variant: {}}
    for trial in trials:
        if trial.place.at == at and trial.figures is not None and trial.place.variant in arms:
            arms[trial.place.variant][trial.place.block] = trial
    both = arms[baseline].keys() & arms[variant].keys()
    return Pairs(
        at=at,
        baseline={block: arms[baseline][block] for block in sorted(both)},
        variant={block: arms[variant][block] for block in sorted(both)},
    )


@dataclass(frozen=True)
class PointResult:
    """The effect at one load level."""

    pairs: Pairs
    # None where no block has both arms.
    effect: Effect | None
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """One variant against the baseline on one workload."""

    baseline: str
    variant: str
    workload: str
    scale: Scale
    points: tuple[PointResult, ...]
    curve: Effect | None
    curve_ratios: Mapping[int, float]
    verdict: Verdict
    # Stops that were not overridden, as stored findings.
    stops: tuple[Mapping[str, Any], ...] = ()


def compare(
    pairs: Sequence[Pairs],
    names: tuple[str, str, str],
    scale: Scale,
    stops: Sequence[Mapping[str, Any]] = (),
) -> Comparison:
    """Judge all points of a comparison and its curve. `names` are baseline, variant and workload."""
    ratios = [point.log_ratios(scale.metric) for point in pairs]
    found = effects([list(values.values()) for values in ratios])
    curve_ratios = curve_log_ratios(ratios)
    curve = curve_effect(list(curve_ratios.values()))

    def word(effect: Effect | None) -> Verdict:
        return choose(
            blocks=effect.blocks if effect else 0,
            interval_percent=effect.interval_percent if effect else None,
            delta_percent=scale.delta_percent,
            higher_is_faster=scale.higher_is_faster,
            stopped=bool(stops),
        )

    return Comparison(
        *names,
        scale=scale,
        points=tuple(
            PointResult(point, effect, word(effect)) for point, effect in zip(pairs, found, strict=True)
        ),
        curve=curve,
        curve_ratios=curve_ratios,
        verdict=word(curve),
        stops=tuple(stops),
    )


def point_json(result: PointResult, scale: Scale) -> dict[str, Any]:
    """One entry of `points` in verdict.json. The two levels are medians over the blocks."""
    pairs, effect = result.pairs, result.effect
    levels = [pairs.values(arm, scale.metric) for arm in (pairs.baseline, pairs.variant)]
    baseline, variant = (float(np.median(values)) if values else None for values in levels)
    return {
        "at": dict(pairs.at),
        "metric": scale.metric,
        "baseline": baseline,
        "variant": variant,
        **_effect_json(effect),
        "confidence": scale.confidence,
        "floor_percent": scale.floor_percent,
        "delta_percent": scale.delta_percent,
        "blocks": effect.blocks if effect else 0,
        "trials": {
            "baseline": [trial.place.index for trial in pairs.baseline.values()],
            "variant": [trial.place.index for trial in pairs.variant.values()],
        },
        "verdict": str(result.verdict),
    }


def curve_json(comparison: Comparison, sentence: str) -> dict[str, Any]:
    """`curve` in verdict.json."""
    return {
        "metric": comparison.scale.metric,
        **_effect_json(comparison.curve),
        "blocks": comparison.curve.blocks if comparison.curve else 0,
        "verdict": str(comparison.verdict),
        "sentence": sentence,
    }


def _effect_json(effect: Effect | None) -> dict[str, Any]:
    if effect is None:
        return {"effect_percent": None, "interval_percent": None}
    interval = effect.interval_percent
    return {
        "effect_percent": effect.effect_percent,
        "interval_percent": None if interval is None else list(interval),
    }


def blocks_json(comparison: Comparison) -> dict[str, Any]:
    """The effect of every single block, in percent, for the charts."""
    return {
        "variant": comparison.variant,
        "workload": comparison.workload,
        "points": [
            {
                "at": dict(point.pairs.at),
                "alpha": point.effect.alpha if point.effect else None,
                "p_value": point.effect.p_value if point.effect else None,
                "percent": {
                    str(block): percent(ratio)
                    for block, ratio in point.pairs.log_ratios(comparison.scale.metric).items()
                },
            }
            for point in comparison.points
        ],
        "curve": {
            "p_value": comparison.curve.p_value if comparison.curve else None,
            "percent": {str(block): percent(ratio) for block, ratio in comparison.curve_ratios.items()},
        },
    }
