"""One variant against the baseline on one workload: an effect per point, and one over the curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbdyno.judge.measured import Measured
from dbdyno.stats.paired import ALPHA, Bound, Effect, curve_effect, curve_log_ratios, effects
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

    def censored(self, arm: Mapping[int, Measured], metric: str) -> bool:
        """Whether the metric is more than what stands there in any block of one arm."""
        return any(metric in trial.figures.censored for trial in arm.values() if trial.figures is not None)

    def log_ratios(self, metric: str) -> tuple[dict[int, float], dict[int, float]]:
        """Block -> log ratio of variant to baseline: its lower and upper bound, equal where it is known."""
        lows: dict[int, float] = {}
        highs: dict[int, float] = {}
        for block, base in self.baseline.items():
            other = self.variant[block]
            assert base.figures is not None
            assert other.figures is not None
            below, above = base.figures.bounds(metric), other.figures.bounds(metric)
            (least,) = log_ratios([below[0]], [above[0]])
            lows[block] = float(least) if below[1] == below[0] else -math.inf
            highs[block] = float(least) if above[1] == above[0] else math.inf
        return dict(sorted(lows.items())), dict(sorted(highs.items()))


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
    # Block -> lower and upper bound of the curve's log ratio.
    curve_ratios: tuple[Mapping[int, float], Mapping[int, float]]
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
    lows, highs = [low for low, _ in ratios], [high for _, high in ratios]
    found = effects(
        [list(values.values()) for values in lows], upper=[list(values.values()) for values in highs]
    )
    curve_lows, curve_highs = curve_log_ratios(lows), curve_log_ratios(highs)
    curve = curve_effect(list(curve_lows.values()), upper=list(curve_highs.values()))

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
        curve_ratios=(curve_lows, curve_highs),
        verdict=word(curve),
        stops=tuple(stops),
    )


def point_json(result: PointResult, scale: Scale) -> dict[str, Any]:
    """One entry of `points` in verdict.json. The two levels are medians over the blocks.

    `censored` is there where one of them is only a lower bound, `bound` where the effect is one.
    """
    pairs, effect = result.pairs, result.effect
    levels = [pairs.values(arm, scale.metric) for arm in (pairs.baseline, pairs.variant)]
    baseline, variant = (float(np.median(values)) if values else None for values in levels)
    arms = {"baseline": pairs.baseline, "variant": pairs.variant}
    censored = {name: pairs.censored(arm, scale.metric) for name, arm in arms.items()}
    return {
        "at": dict(pairs.at),
        "metric": scale.metric,
        "baseline": baseline,
        "variant": variant,
        **effect_json(effect),
        "confidence": scale.confidence,
        "floor_percent": scale.floor_percent,
        "delta_percent": scale.delta_percent,
        "blocks": effect.blocks if effect else 0,
        "trials": {
            "baseline": [trial.place.index for trial in pairs.baseline.values()],
            "variant": [trial.place.index for trial in pairs.variant.values()],
        },
        "verdict": str(result.verdict),
        **({"censored": censored} if any(censored.values()) else {}),
    }


def curve_json(comparison: Comparison, sentence: str) -> dict[str, Any]:
    """`curve` in verdict.json."""
    return {
        "metric": comparison.scale.metric,
        **effect_json(comparison.curve),
        "blocks": comparison.curve.blocks if comparison.curve else 0,
        "verdict": str(comparison.verdict),
        "sentence": sentence,
    }


def effect_json(effect: Effect | None) -> dict[str, Any]:
    """Estimate and interval as verdict.json keeps them."""
    if effect is None:
        return {"effect_percent": None, "interval_percent": None}
    return {
        "effect_percent": _finite(effect.effect_percent),
        "interval_percent": effect.interval_percent and [_finite(end) for end in effect.interval_percent],
        **({"bound": str(effect.bound)} if effect.bound != Bound.EXACT else {}),
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity: null is an end that nothing is known of."""
    return value if math.isfinite(value) else None


def _blocks_percent(ratios: tuple[Mapping[int, float], Mapping[int, float]]) -> dict[str, float | None]:
    """Block -> change in percent: the finite bound, or null where there is none."""
    lows, highs = ratios
    nearer = {block: low if math.isfinite(low) else highs[block] for block, low in lows.items()}
    return {str(block): percent(r) if math.isfinite(r) else None for block, r in nearer.items()}


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
                "percent": _blocks_percent(point.pairs.log_ratios(comparison.scale.metric)),
            }
            for point in comparison.points
        ],
        "curve": {
            "p_value": comparison.curve.p_value if comparison.curve else None,
            "percent": _blocks_percent(comparison.curve_ratios),
        },
    }
