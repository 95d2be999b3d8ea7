"""Which effects of a run may have a verdict: the family-wise error rate is at most 5 %.

Each of K comparisons gets alpha / K. Inside a comparison the effect over all loads comes first; the words at
single loads follow:

::

    over all loads    at 4/5 of the budget         (the whole budget where there is one load)
    single loads      at alpha / K, once the effect over all loads has its word;
                      else at 1/5 of alpha / K     (a change at one load alone is a result too)

A comparison whose words are all given passes its budget on to the others in equal parts, as in Holm's
procedure (1979, Scand. J. Stat. 6:65); with one load it is Holm's procedure. A budget is only passed on when
nothing of the comparison is left to test, so the chance of a false word stays below alpha whichever effects
are real, and the order of the comparisons does not matter (the graphical procedures of Bretz et al. 2009,
Stat. Med. 28:586).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import blocks_needed

# Share of a comparison's budget for single loads if the effect over all loads is not significant.
LEVELS_SHARE = 0.2


@dataclass(frozen=True)
class Tests:
    """The p-values of one comparison."""

    # P-value over all loads, from the signed-rank test.
    p_value: float
    blocks: int
    # P-value at each load, adjusted for all loads of the comparison; None if there is no result. One load:
    # ().
    levels: Sequence[float | None] = ()


@dataclass
class Words:
    """Which of one comparison's effects are significant, so that they may have a verdict word."""

    overall: bool = False
    levels: list[bool] = field(default_factory=list)


def decide(family: Sequence[Tests], alpha: float = ALPHA) -> list[Words]:
    """For each comparison, in the order given, which effects differ from zero."""
    share = alpha / max(1, len(family))
    words = [Words(levels=[False] * len(tests.levels)) for tests in family]
    undecided = set(range(len(family)))
    complete = 0
    while undecided:
        # The budget of each comparison that still has tests left.
        budget = alpha / (len(family) - complete)
        rejected = next(
            (i for i in undecided if family[i].p_value <= _overall_budget(family[i], budget)), None
        )
        if rejected is None:
            break
        undecided.discard(rejected)
        words[rejected].overall = True
        words[rejected].levels = [p is not None and p <= share for p in family[rejected].levels]
        complete += all(words[rejected].levels)
    for i in undecided:
        limit = share - _overall_budget(family[i], share)
        words[i].levels = [p is not None and p <= limit for p in family[i].levels]
    return words


def _overall_budget(tests: Tests, budget: float) -> float:
    """The part of a budget for the test of the effect over all loads: all of it, if the test could not become
    significant with a part.
    """
    part = budget * (1.0 - LEVELS_SHARE)
    return part if tests.levels and tests.blocks >= blocks_needed(part) else budget
