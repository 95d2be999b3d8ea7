"""The possible verdicts of a comparison, and the rule that selects one.

In order of precedence: not comparable > unfinished > too few blocks > mixed > equivalent > faster / slower >
undecided. They follow from numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dbdyno.stats.paired import ALPHA, Effect
from dbdyno.stats.signed_rank import blocks_needed

# Blocks below which no interval is possible: 5 pairs cannot reach p < 0.05 (2 / 2^5 = 0.0625).
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


@dataclass(frozen=True)
class Circumstances:
    """What decides about a word besides the numbers."""

    # A check of level stop failed and was not overridden.
    stopped: bool = False
    # Trials are planned that have not run.
    unfinished: bool = False
    # Other processes disturbed the trials: they show neither a direction nor an equivalence.
    disturbed: bool = False
    # The variants are identical: no direction may be named.
    identical: bool = False


def choose(
    effect: Effect | None,
    *,
    differs: bool,
    higher_is_faster: bool,
    delta_percent: float | None = None,
    equivalent: bool | None = None,
    floor_percent: float | None = None,
    circumstances: Circumstances | None = None,
) -> Verdict:
    """The word for one effect of variant against baseline.

    `differs` says whether the family's procedure lets the effect have a direction. `equivalent` says whether
    it is within ±delta, where its own interval does not decide. An effect within the noise floor
    has no direction.
    """
    around = circumstances or Circumstances()
    if around.stopped:
        return Verdict.NOT_COMPARABLE
    if around.unfinished:
        return Verdict.UNFINISHED
    if effect is None:
        return Verdict.NOT_COMPARABLE
    if effect.interval_percent is None:
        return Verdict.TOO_FEW_BLOCKS
    if equivalent is None:
        equivalent = delta_percent is not None and effect.lies_within(delta_percent)
    if equivalent and not around.disturbed:
        return Verdict.EQUIVALENT
    too_small = floor_percent is not None and abs(effect.effect_percent) <= floor_percent
    if around.disturbed or around.identical or too_small or not differs:
        return Verdict.UNDECIDED
    return direction(effect, higher_is_faster=higher_is_faster)


def direction(effect: Effect, *, higher_is_faster: bool) -> Verdict:
    """Faster or slower, by the sign of the estimate."""
    return Verdict.FASTER if (effect.effect_percent > 0.0) == higher_is_faster else Verdict.SLOWER


def is_mixed(levels: Sequence[Effect | None]) -> bool:
    """Whether the joint intervals of two levels exclude zero on opposite sides."""
    ends = [level.interval_percent for level in levels if level is not None and level.interval_percent]
    return any(low > 0.0 for low, _ in ends) and any(high < 0.0 for _, high in ends)
