"""The six words a comparison can end with, and the one rule that picks among them.

In order of precedence: not comparable > exploratory > equivalent > faster / slower > not distinguishable.
The words are generated from numbers alone; nobody types them.
"""

from __future__ import annotations

from enum import StrEnum

# Blocks below which a result is called exploratory: 5 pairs cannot reach p < 0.05 (2 / 2^5 = 0.0625).
EXPLORATORY_BELOW = 6

# Half-width of the zone of equivalence where nothing was calibrated or declared.
DEFAULT_DELTA_PERCENT = 2.0


class Verdict(StrEnum):
    """Verdict codes as they stand in verdict.json."""

    NOT_COMPARABLE = "not-comparable"
    EXPLORATORY = "exploratory"
    EQUIVALENT = "equivalent"
    FASTER = "faster"
    SLOWER = "slower"
    NOT_DISTINGUISHABLE = "not-distinguishable"


def choose(
    *,
    blocks: int,
    interval_percent: tuple[float, float] | None,
    delta_percent: float,
    higher_is_faster: bool,
    stopped: bool = False,
) -> Verdict:
    """The word for an effect of variant against baseline.

    `interval_percent` is the interval that is printed, already adjusted for the number of points; None where
    so few blocks allow none. `stopped` says that a check of level stop failed and was not overridden.
    """
    if stopped or blocks == 0:
        return Verdict.NOT_COMPARABLE
    if blocks < EXPLORATORY_BELOW:
        return Verdict.EXPLORATORY
    if interval_percent is None:
        return Verdict.NOT_DISTINGUISHABLE
    low, high = interval_percent
    if -delta_percent <= low and high <= delta_percent:
        return Verdict.EQUIVALENT
    if low <= 0.0 <= high:
        return Verdict.NOT_DISTINGUISHABLE
    return Verdict.FASTER if (low > 0.0) == higher_is_faster else Verdict.SLOWER
