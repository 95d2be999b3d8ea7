"""Changes in percent as ratios: one form for verdict sentences, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Beyond these changes in percent, texts give a ratio, which is easier to read.
RATIO_BELOW, RATIO_ABOVE = -50.0, 100.0
# Ratios below this have two significant digits.
SMALL_RATIO = 0.1


def is_ratio(change_percent: float) -> bool:
    """Whether the text gives a ratio (8.0 times, 0.4 times) instead of the change. -100 % is never
    a ratio.
    """
    return -100.0 < change_percent < RATIO_BELOW or RATIO_ABOVE < change_percent < math.inf


def times(change_percent: float, decimals: int = 1) -> str:
    """A change as a ratio: 8.0, 0.41, 0.0055; ∞ if it is infinite."""
    if math.isinf(change_percent):
        return "∞"
    ratio = 1.0 + change_percent / 100.0
    if 0.0 < ratio < SMALL_RATIO:
        return f"{ratio:.2g}"
    return f"{ratio:.{decimals}f}" if ratio >= 1.0 else f"{ratio:.2f}"


def ratio_decimals(ends: Sequence[float]) -> int:
    """Decimals of the ends of an interval as ratios: 1, or 2 if they are equal with one."""
    return 1 if len({times(end) for end in ends}) == len(ends) else 2
