"""Decides which effects of a run are significant, so that the family-wise error rate is at most alpha (5 %).

Several tests (workloads) of one variant are one comparison here: their p-values over all loads are adjusted
for each other by a joint test, and so are those at all single loads of all tests. Each of K comparisons has a
budget, at first alpha / K. Within a comparison the effects over all loads are tested first, then those at
single loads, at these significance levels:

::

    over all loads    4/5 of the budget; the whole budget if there is only one load
    single loads      alpha / K if the effect over all loads is significant in every test;
                      1/5 of alpha / K if it is not (an effect at a single load is a result too)

A gate (a limit of the loss, declared before the run) is tested at the level of the effect over all loads. An
effect is not both zero and at the limit, so the two tests of one workload together spend no more than one. Of
several workloads, one may have no effect and another one at the limit: there the gate has an error rate of
its own, of the same size. The single loads have their full level only if the gate is decided too. The claim
that all tests of a variant lose less is an intersection-union test (Berger 1982, Technometrics 24:295): each
test has the full level, without adjustment for the others, because the claim is wrong only if it is wrong
about one that loses more.

A zone of equivalence has tests of its own (`decide/effects.py`); an effect is not both zero and at the edge
of the zone.

If all effects of a comparison are significant, and its gate and its equivalence are decided, its budget is
divided equally among the other comparisons, as in Holm's procedure (1979, Scand. J. Stat. 6:65); if there is
only one load, this is Holm's procedure. A comparison passes its budget on only if it has nothing left to
test. So the chance of a false result stays below alpha whichever effects are real, and the order of the
comparisons does not matter (the graphical procedures of Bretz et al. 2009, Stat. Med. 28:586).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.stats.paired import ALPHA
from dbdyno.stats.repeated import Looks
from dbdyno.stats.signed_rank import blocks_needed

# A p-value that is equal to a budget must not be above it by a rounding error.
ROUNDING = 1e-9
# Share of a comparison's budget for single loads, if the effect over all loads is not significant.
SINGLE_LOADS_SHARE = 0.2
# Share of alpha for the verdicts and the gate; the rest is for the secondary metrics, if the run has any.
VERDICTS_SHARE = 0.8
# A report says more than its verdicts and their secondary metrics. Of two equal variants these other
# statements are false in at most alpha of the reports: each of the advisory tests (R01, R10, R12; R05 of
# identical variants, which have no verdict) in this share, and the changed costs of a transaction in the
# rest. Each limit holds over all variants, workloads and loads of a run.
ADVISORY_ALPHA = 0.01
COSTS_ALPHA = ALPHA - 3 * ADVISORY_ALPHA


@dataclass(frozen=True)
class ComparisonTests:
    """The p-values of one comparison."""

    # P-value over all loads, from the signed-rank test.
    p_value: float
    # None if the p-values allow for a look after every block: the budgets must not depend on the number of
    # blocks then. Also None without a result.
    blocks: int | None
    # P-value at each load, adjusted for all loads of the group; None without a result. Empty for a
    # comparison with only one load.
    loads: Sequence[float | None] = ()
    # P-value of the loss that a gate allows, over all loads; None without a gate.
    gate: float | None = None
    # The same without regard to the other members of the group.
    gate_alone: float | None = None
    # Whether it is open if the effects are within the zone of equivalence.
    has_open_equivalence: bool = False
    # Members of the family with an equal group are tested jointly; None: a group of its own.
    group: str | None = None


@dataclass
class SignificantEffects:
    """Which effects of one comparison are significant: over all loads, and at each load."""

    overall: bool = False
    loads: list[bool] = field(default_factory=list)
    # Whether the effect over all loads differs from the loss that the gate allows.
    gate: bool = False
    # The same, if all members of the group are claimed to be on this side, or none is.
    gate_alone: bool = False
    # Whether nothing is left to test.
    is_complete: bool = field(default=False, compare=False)


def decide(family: Sequence[ComparisonTests], alpha: float = ALPHA) -> list[SignificantEffects]:
    """Decide which effects are significant; one result per comparison, in the order of `family`."""
    groups = [tests.group or f"{index}" for index, tests in enumerate(family)]
    count = len(set(groups))
    share = alpha / max(1, count)
    parts = _overall_parts(family, groups, share)
    results = [SignificantEffects(loads=[False] * len(tests.loads)) for tests in family]
    # Number of groups that have passed their budget on.
    finished, is_new = 0, True
    while is_new and finished < count:
        # Budget of each group that still has tests left.
        budget = alpha / (count - finished)
        for tests, group, result in zip(family, groups, results, strict=True):
            result.overall |= is_within(tests.p_value, parts[group] * budget)
            result.gate |= is_within(tests.gate, parts[group] * budget)
            result.gate_alone |= is_within(tests.gate_alone, parts[group] * budget)
        undecided = {
            group
            for tests, group, answer in zip(family, groups, results, strict=True)
            if not (answer.overall and (answer.gate or tests.gate is None))
        }
        for tests, group, answer in zip(family, groups, results, strict=True):
            # What a joint test has used returns only if all its effects are significant.
            limit = share * (1.0 - parts[group] if group in undecided else 1.0)
            answer.loads = [is_within(p, limit) for p in tests.loads]
            is_open = group in undecided or tests.has_open_equivalence
            answer.is_complete = all(answer.loads) and not is_open
        open_groups = {group for group, entry in zip(groups, results, strict=True) if not entry.is_complete}
        complete = count - len(open_groups)
        is_new, finished = complete > finished, complete
    return results


def costs_levels(blocks: int, *, several_loads: bool) -> tuple[float, float]:
    """The significance levels for the changed costs over all loads, and at single loads.

    With fewer blocks than an advisory test needs, no such test can reject, and the costs have all of alpha.
    Single loads have half of the level, unless that is beyond the reach of a joint sign-flip test.
    """
    level = ALPHA if blocks < blocks_needed(ADVISORY_ALPHA) else COSTS_ALPHA
    half = level / 2.0
    is_reachable = blocks > 0 and is_within(0.5 ** (blocks - 1), half)
    return (half, half) if several_loads and is_reachable else (level, 0.0)


def is_within(p_value: float | None, budget: float) -> bool:
    """Whether a p-value is at most its budget, apart from rounding errors; False if it is None."""
    return p_value is not None and p_value <= budget * (1.0 + ROUNDING)


def _overall_parts(
    family: Sequence[ComparisonTests], groups: Sequence[str], share: float
) -> dict[str, float]:
    """For each group, the part of its budget for the effects over all loads.

    It is the whole budget if there is only one load, or if the blocks of any test are too few to reach a
    smaller significance level.
    """
    parts: dict[str, float] = {}
    needed = blocks_needed((1.0 - SINGLE_LOADS_SHARE) * share)
    for tests, group in zip(family, groups, strict=True):
        has_enough_blocks = tests.blocks is None or tests.blocks >= needed
        part = 1.0 - SINGLE_LOADS_SHARE if tests.loads and has_enough_blocks else 1.0
        parts[group] = max(part, parts.get(group, 0.0))
    return parts


def verdicts_share(comparisons: float, blocks: int | None) -> float:
    """The share of alpha for the verdicts. It is 1 if these `blocks` are too few to reach a smaller level;
    None if the run may stop after any block.
    """
    is_reached = blocks is None or blocks >= blocks_needed(VERDICTS_SHARE * ALPHA / comparisons)
    return VERDICTS_SHARE if is_reached else 1.0


def blocks_for_verdict(alpha: float, loads: int, share: float = 1.0, looks: Looks | None = None) -> int:
    """The minimum number of blocks with which the effect over all loads of a comparison can be significant.

    `alpha` is alpha / K, and `share` that of the verdicts. `looks` are None for a fixed number of blocks.
    """
    if looks is None:
        return blocks_needed(share * alpha)
    return looks.blocks_needed(alpha, alpha * overall_levels(1, loads, share)[-1])


def overall_levels(comparisons: int, loads: int, share: float = 1.0) -> tuple[float, ...]:
    """The levels at which `decide` may test an effect over all loads, relative to alpha / K, and 1.

    `share` is that of the verdicts.
    """
    part = share * (1.0 - SINGLE_LOADS_SHARE if loads > 1 else 1.0)
    levels = {1.0, *(part * comparisons / left for left in range(1, comparisons + 1))}
    return tuple(sorted(levels, reverse=True))


def load_levels(share: float = 1.0) -> tuple[float, ...]:
    """The levels at which `decide` may test an effect at a single load, relative to alpha / K, and 1."""
    return tuple(sorted({1.0, share, share * SINGLE_LOADS_SHARE}, reverse=True))


def line_levels() -> tuple[float, ...]:
    """The levels at which secondary metrics may be tested, relative to alpha / K."""
    return 1.0, 1.0 - VERDICTS_SHARE
