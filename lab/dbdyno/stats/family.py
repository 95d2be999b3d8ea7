"""Decides which effects of a run are significant, so that the family-wise error rate is at most alpha (5 %).

Each of K comparisons has a budget, at first alpha / K. Within a comparison the effect over all loads is
tested first, then those at single loads, at these significance levels:

::

    over all loads    4/5 of the budget; the whole budget if there is only one load
    single loads      alpha / K if the effect over all loads is significant;
                      1/5 of alpha / K if it is not (an effect at a single load is a result too)

If all effects of a comparison are significant, its budget is divided equally among the other comparisons, as
in Holm's procedure (1979, Scand. J. Stat. 6:65); if there is only one load, this is Holm's procedure. A
comparison passes its budget on only if it has nothing left to test. So the chance of a false result stays
below alpha whichever effects are real, and the order of the comparisons does not matter (the graphical
procedures of Bretz et al. 2009, Stat. Med. 28:586).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import blocks_needed

# A p-value that is equal to a budget must not be above it by a rounding error.
ROUNDING = 1e-9
# Share of a comparison's budget for single loads, if the effect over all loads is not significant.
SINGLE_LOADS_SHARE = 0.2


@dataclass(frozen=True)
class ComparisonTests:
    """The p-values of one comparison."""

    # P-value over all loads, from the signed-rank test.
    p_value: float
    # None if the p-values allow for a look after every block: the budgets must not depend on the number of
    # blocks then.
    blocks: int | None
    # P-value at each load, adjusted for all loads of the comparison; None without a result. Empty for a
    # comparison with only one load.
    loads: Sequence[float | None] = ()


@dataclass
class SignificantEffects:
    """Which effects of one comparison are significant: over all loads, and at each load."""

    overall: bool = False
    loads: list[bool] = field(default_factory=list)


def decide(family: Sequence[ComparisonTests], alpha: float = ALPHA) -> list[SignificantEffects]:
    """Decide which effects are significant; one result per comparison, in the order of `family`."""
    share = alpha / max(1, len(family))
    results = [SignificantEffects(loads=[False] * len(tests.loads)) for tests in family]
    undecided = set(range(len(family)))
    # Number of comparisons that have passed their budget on.
    finished = 0
    while undecided:
        # Budget of each comparison that still has tests left.
        budget = alpha / (len(family) - finished)
        rejected = next(
            (i for i in undecided if _is_within(family[i].p_value, _overall_budget(family[i], budget))), None
        )
        if rejected is None:
            break
        undecided.discard(rejected)
        results[rejected].overall = True
        results[rejected].loads = [_is_within(p, share) for p in family[rejected].loads]
        finished += all(results[rejected].loads)
    for i in undecided:
        limit = share - _overall_budget(family[i], share)
        results[i].loads = [_is_within(p, limit) for p in family[i].loads]
    return results


def _is_within(p_value: float | None, budget: float) -> bool:
    return p_value is not None and p_value <= budget * (1.0 + ROUNDING)


def _overall_budget(tests: ComparisonTests, budget: float) -> float:
    """The part of a budget for the effect over all loads.

    It is the whole budget if there is only one load, or if the blocks are too few to reach a smaller
    significance level.
    """
    part = budget * (1.0 - SINGLE_LOADS_SHARE)
    has_enough_blocks = tests.blocks is None or tests.blocks >= blocks_needed(part)
    return part if tests.loads and has_enough_blocks else budget


def overall_levels(comparisons: int, loads: int) -> tuple[float, ...]:
    """The levels at which `decide` may test an effect over all loads, relative to alpha / K, and 1."""
    part = 1.0 - SINGLE_LOADS_SHARE if loads > 1 else 1.0
    levels = {1.0, *(part * comparisons / left for left in range(1, comparisons + 1))}
    return tuple(sorted(levels, reverse=True))


def load_levels() -> tuple[float, ...]:
    """The levels at which `decide` may test an effect at a single load, relative to alpha / K."""
    return 1.0, SINGLE_LOADS_SHARE
