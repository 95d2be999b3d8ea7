"""What each factor does on average over the others, and whether it does the same everywhere.

::

    version x threads          main effect of 8.4      = mean over threads of (8.4 - 8.0)
                               main effect of pool     = mean over versions of (pool - per-connection)
                               interaction of the two  = (pool - per-connection on 8.4) - (… on 8.0)

Every one is a contrast of the log metric, taken inside each block and averaged over the points, so that the
same one-number-per-block machinery judges it (Box, Hunter & Hunter 2005, Statistics for Experimenters, ch.
5). All main effects of a workload hold together (Holm), and so do all its interactions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.model import Experiment, Factor
from dbdyno.judge.comparison import Scale, effect_json
from dbdyno.judge.measured import Measured
from dbdyno.judge.sentence import decimals_for, size_words
from dbdyno.stats.paired import Effect, effects
from dbdyno.stats.words import Verdict, choose

# Block -> lower and upper bound of the log metric, averaged over the points; of one variant on one workload.
Curve = Mapping[int, tuple[float, float]]
# Variant's levels -> its curve.
Cells = Mapping[tuple[str, ...], Curve]


@dataclass(frozen=True)
class Contrast:
    """A signed mean over cells: what is to be estimated, and what it is called."""

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    # Cell -> its weight; the weights add up to 0.
    weights: Mapping[tuple[str, ...], float]


def contrasts(factors: Sequence[Factor], order: int) -> Iterator[Contrast]:
    """Main effects (order 1) or two-factor interactions (order 2), each level against the factor's first."""
    cells = list(itertools.product(*(factor.levels for factor in factors)))
    for chosen in itertools.combinations(range(len(factors)), order):
        for levels in itertools.product(*(factors[index].levels[1:] for index in chosen)):
            first = tuple(factors[index].levels[0] for index in chosen)
            signs = {
                cell: math.prod(
                    1.0 if cell[index] == level else -1.0 if cell[index] == base else 0.0
                    for index, level, base in zip(chosen, levels, first, strict=True)
                )
                for cell in cells
            }
            involved = sum(map(abs, signs.values())) / 2**order
            weights = {cell: sign / involved for cell, sign in signs.items() if sign}
            yield Contrast(tuple(factors[index].name for index in chosen), levels, first, weights)


def judged(
    trials: Sequence[Measured], experiment: Experiment, scale: Scale, *, stopped: bool
) -> list[dict[str, Any]]:
    """`factors` in verdict.json: main effects, then interactions, of each workload."""
    found: list[dict[str, Any]] = []
    for workload, order in itertools.product(experiment.workloads, (1, 2)):
        cells = _cells(
            [trial for trial in trials if trial.place.workload == workload.title], experiment, scale
        )
        wanted = list(contrasts(experiment.factors, order))
        bounds = [_per_block(contrast, cells) for contrast in wanted]
        found_effects = effects([lows for lows, _ in bounds], upper=[highs for _, highs in bounds])
        for contrast, effect in zip(wanted, found_effects, strict=True):
            found.append(_json(contrast, effect, workload.title, scale, stopped=stopped))
    return found


def _cells(trials: Sequence[Measured], experiment: Experiment, scale: Scale) -> Cells:
    """The mean log metric of each block that has all points, per combination of levels, by its bounds: where
    a latency is only known to be more than something, the upper one is infinite.
    """
    points = len(experiment.load.points())
    cells: dict[tuple[str, ...], Curve] = {}
    for variant in experiment.variants:
        logs: dict[int, list[tuple[float, float]]] = {}
        for trial in trials:
            if trial.place.variant == variant.name and trial.figures is not None:
                low, high = map(math.log, trial.figures.bounds(scale.metric))
                logs.setdefault(trial.place.block, []).append((low, high))
        levels = tuple(variant.levels[factor.name] for factor in experiment.factors)
        cells[levels] = {
            block: (sum(low for low, _ in of) / points, sum(high for _, high in of) / points)
            for block, of in logs.items()
            if len(of) == points
        }
    return cells


def _per_block(contrast: Contrast, cells: Cells) -> tuple[list[float], list[float]]:
    """Lower and upper bounds of the contrast, by block: what is subtracted is largest where that is least."""
    complete = sorted(set.intersection(*(set(cells[cell]) for cell in contrast.weights)))

    def bound(block: int, *, upper: bool) -> float:
        return sum(
            weight * cells[cell][block][(weight > 0) == upper] for cell, weight in contrast.weights.items()
        )

    return [bound(block, upper=False) for block in complete], [bound(block, upper=True) for block in complete]


def _json(
    contrast: Contrast, effect: Effect | None, workload: str, scale: Scale, *, stopped: bool
) -> dict[str, Any]:
    verdict = choose(
        blocks=effect.blocks if effect else 0,
        interval_percent=effect.interval_percent if effect else None,
        delta_percent=scale.delta_percent,
        higher_is_faster=scale.higher_is_faster,
        stopped=stopped,
    )
    return {
        "factors": list(contrast.factors),
        "levels": list(contrast.levels),
        "against": list(contrast.against),
        "workload": workload,
        "metric": scale.metric,
        **effect_json(effect),
        "blocks": effect.blocks if effect else 0,
        "verdict": str(verdict),
        "sentence": _sentence(contrast, effect, verdict, workload, scale),
    }


def _sentence(
    contrast: Contrast, effect: Effect | None, verdict: Verdict, workload: str, scale: Scale
) -> str:
    named = [f"{factor} {level}" for factor, level in zip(contrast.factors, contrast.levels, strict=True)]
    if effect is None or verdict == Verdict.NOT_COMPARABLE:
        return f"{' with '.join(named)} on {workload}: not comparable."
    values = (effect.effect_percent, *(effect.interval_percent or ()))
    size = size_words(effect, decimals_for(values, scale.delta_percent))
    if len(named) == 1:
        others = "on average over the other factors"
        word = {
            Verdict.EQUIVALENT: f"is equivalent to {contrast.against[0]}",
            Verdict.NOT_DISTINGUISHABLE: f"is not distinguishable from {contrast.against[0]}",
            Verdict.EXPLORATORY: f"against {contrast.against[0]}, exploratory only",
        }.get(verdict, f"is {verdict} than {contrast.against[0]}")
        return f"{named[0]} {word} {others} on {workload}: {size}."
    told = f"what {named[1]} does on {workload} with {named[0]} instead of {contrast.against[0]}"
    match verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            return f"The factors do not act alone: {told} differs by {size}."
        case Verdict.EQUIVALENT:
            return f"The factors act alone: {told} is the same within ±{scale.delta_percent:g} %: {size}."
        case _:
            return f"Whether the factors act alone is open: {told} differs by {size}."
