"""The possible verdicts of a comparison, and the rule that selects one.

In order of precedence: not comparable, unfinished, too few blocks, mixed, equivalent, faster or slower,
undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dbdyno.stats.paired import ALPHA, Effect
from dbdyno.stats.signed_rank import blocks_needed

# Minimum number of blocks for an interval: 5 pairs cannot reach p < 0.05, because 2 / 2^5 is 0.0625.
BLOCKS_MIN = blocks_needed(ALPHA)


class Verdict(StrEnum):
    """Verdict codes of verdict.json."""

    NOT_COMPARABLE = "not-comparable"
    UNFINISHED = "unfinished"
    TOO_FEW_BLOCKS = "too-few-blocks"
    MIXED = "mixed"
    EQUIVALENT = "equivalent"
    FASTER = "faster"
    SLOWER = "slower"
    UNDECIDED = "undecided"


# Those with a direction, those that answer the question of a comparison, and those about a difference. The
# others are about the data. Codes of verdict.json can be looked up in them.
DIRECTIONS = frozenset({Verdict.FASTER, Verdict.SLOWER})
ANSWERS = DIRECTIONS | {Verdict.EQUIVALENT, Verdict.MIXED}
RESULTS = ANSWERS | {Verdict.UNDECIDED}


@dataclass(frozen=True)
class Circumstances:
    """What a verdict depends on besides the effect."""

    # A check found a stop, and no override permits it.
    is_stopped: bool = False
    # Planned trials have not run.
    is_unfinished: bool = False
    # The variants are identical, so the verdict cannot be a direction.
    is_identical: bool = False


def choose(
    effect: Effect | None,
    *,
    is_significant: bool,
    higher_is_faster: bool,
    delta_percent: float | None = None,
    is_equivalent: bool | None = None,
    floor_percent: float | None = None,
    circumstances: Circumstances | None = None,
) -> Verdict:
    """The verdict on one effect of variant against baseline.

    `is_significant` is the result of the test of all effects of the run (stats/family.py). `is_equivalent`
    says whether the effect is within ±delta; None to decide that by its interval. An effect within the noise
    floor has no direction.
    """
    circumstances = circumstances or Circumstances()
    if circumstances.is_stopped:
        return Verdict.NOT_COMPARABLE
    if circumstances.is_unfinished:
        return Verdict.UNFINISHED
    if effect is None:
        return Verdict.NOT_COMPARABLE
    if effect.interval_percent is None:
        return Verdict.TOO_FEW_BLOCKS
    if is_equivalent is None:
        is_equivalent = delta_percent is not None and effect.lies_within(delta_percent)
    if is_equivalent:
        return Verdict.EQUIVALENT
    is_noise = floor_percent is not None and abs(effect.effect_percent) <= floor_percent
    if circumstances.is_identical or is_noise or not is_significant:
        return Verdict.UNDECIDED
    return direction(effect, higher_is_faster=higher_is_faster)


def direction(effect: Effect, *, higher_is_faster: bool) -> Verdict:
    """Faster or slower, by the sign of the estimate."""
    return Verdict.FASTER if (effect.effect_percent > 0.0) == higher_is_faster else Verdict.SLOWER


def is_mixed(effects: Sequence[Effect | None]) -> bool:
    """Whether the simultaneous intervals of two loads exclude zero on opposite sides."""
    ends = [effect.interval_percent for effect in effects if effect is not None and effect.interval_percent]
    return any(low > 0.0 for low, _ in ends) and any(high < 0.0 for _, high in ends)
