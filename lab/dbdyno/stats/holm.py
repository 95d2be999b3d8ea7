"""Several points at once: Holm's step-down procedure, and the level each printed interval must have.

Testing ten points at 5 % each finds a difference somewhere in two experiments of five when there is none.
Holm (1979, Scand. J. Stat. 6:65) keeps the chance of even one false word at 5 %. What is printed is the
interval at the level that decided the point, so the interval and the word cannot disagree:

- a rejected hypothesis of rank r was decided at alpha / (m - r + 1);
- every other one is printed at the level at which the procedure stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """What Holm's procedure says of one hypothesis."""

    rejected: bool
    # Level to print the interval at.
    alpha: float


def holm(p_values: Sequence[float], alpha: float = 0.05) -> tuple[Decision, ...]:
    """One decision per p-value, in the order given; the family-wise error rate is at most `alpha`."""
    m = len(p_values)
    decisions: list[Decision | None] = [None] * m
    stopped_at: float | None = None
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        level = alpha / (m - rank)
        if stopped_at is None and p_values[index] > level:
            stopped_at = level
        decisions[index] = Decision(True, level) if stopped_at is None else Decision(False, stopped_at)
    return tuple(decision for decision in decisions if decision is not None)


def smallest_blocks(points: int, alpha: float = 0.05) -> int:
    """Blocks a design needs before any of `points` load levels can earn the word faster or slower.

    The smallest two-sided p-value of the signed-rank test over n blocks is 2 / 2^n, and Holm's first step
    asks for alpha / points: 6 blocks for one point, 7 for three, 9 for ten.
    """
    if points < 1:
        raise ValueError(f"points is {points}; it must be at least 1")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it must lie between 0 and 1")
    blocks = 1
    while 2.0 / 2**blocks > alpha / points:
        blocks += 1
    return blocks
