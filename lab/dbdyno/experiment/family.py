"""The family of verdict sentences of a run, about comparisons of variants or about contrasts of factors.

The number of sentences must be known before the run, because they share the family-wise error rate. The
workloads of one variant share their part of it by one joint test; the variants divide it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.model import Experiment, Factor


@dataclass(frozen=True)
class Contrast:
    """A weighted sum over the combinations of factor levels: a main effect, or an interaction
    of two factors.
    """

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    baseline_levels: tuple[str, ...]
    # Combination of factor levels -> its weight; the weights add up to 0.
    weights: Mapping[tuple[str, ...], float]


def contrasts(factors: Sequence[Factor], order: int) -> Iterator[Contrast]:
    """Main effects (order 1) or two-factor interactions (order 2); each level is compared with the factor's
    first.
    """
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
    """Whether the verdicts are about factors. With a single factor, the comparisons of variants
    are enough.
    """
    return len(experiment.factors) > 1


def has_verdict(experiment: Experiment) -> bool:
    """Whether a verdict of the run may have a direction: not with one variant, or identical variants only."""
    return any(not is_identical(experiment, variant) for variant in experiment.variants[1:])


def different_variants(experiment: Experiment) -> int:
    """Number of variants that are compared with the baseline and differ from it."""
    return sum(not is_identical(experiment, variant) for variant in experiment.variants[1:])


def allows_false_discoveries(experiment: Experiment) -> bool:
    """Whether the false discovery rate of the verdicts is limited, not their family-wise error rate."""
    return experiment.design.error_rate == "false-discovery"


def error_shares(experiment: Experiment, metrics: int = 1) -> float:
    """The number by which an error rate of so many metrics is divided for one verdict; at least 1.

    The family-wise error rate has an equal part for each variant, whose workloads are tested jointly, or for
    each sentence about factors. The part of a false discovery rate is that of an only effect with a direction
    among m: m (1 + 1/2 + ... + 1/m), see `judge.decision`.
    """
    if allows_false_discoveries(experiment):
        tests = family_size(experiment) * metrics
        return tests * sum(1.0 / number for number in range(1, tests + 1))
    variants = max(1, different_variants(experiment))
    return metrics * (family_size(experiment) if is_factorial(experiment) else variants)


def family_size(experiment: Experiment) -> int:
    """Number of verdict sentences that share the family-wise error rate; at least 1."""
    if is_factorial(experiment):
        sentences = sum(1 for order in (1, 2) for _ in contrasts(experiment.factors, order))
    else:
        sentences = different_variants(experiment)
    return max(1, sentences * len(experiment.workloads))
