"""Which sentences a run will end with: the comparisons and contrasts that its verdict words are about.

They are known before the run, since the chance of a false word is shared among all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.experiment.model import Experiment, Factor, Variant


@dataclass(frozen=True)
class Contrast:
    """A signed mean over the combinations of levels: a main effect, or an interaction of two factors."""

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    # Combination of levels -> its weight; the weights add up to 0.
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


def is_factorial(experiment: Experiment) -> bool:
    """Whether the words are about factors. A single factor is what the comparisons are about already."""
    return len(experiment.factors) > 1


def is_identical(experiment: Experiment, variant: Variant) -> bool:
    """Whether a variant is the baseline once more, under another name (an A/A comparison)."""
    return variant.server == experiment.variants[0].server


def family_size(experiment: Experiment) -> int:
    """How many verdict sentences share the chance of a false word; at least 1."""
    if is_factorial(experiment):
        sentences = sum(1 for order in (1, 2) for _ in contrasts(experiment.factors, order))
    else:
        sentences = sum(not is_identical(experiment, variant) for variant in experiment.variants[1:])
    return max(1, sentences * len(experiment.workloads))
