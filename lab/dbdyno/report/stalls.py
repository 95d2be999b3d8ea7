"""The longest gaps without a completed transaction, for the page and the charts of stalls."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.report import formatting
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# Prefix of the names of the charts.
STALLS = "stalls-"
# A gap from which on the charts are unfolded, in microseconds.
GAP_US_MIN = 500_000


def longest_gaps(trials: Sequence[MeasuredTrial]) -> dict[str, tuple[MeasuredTrial, int]]:
    """Variant -> the trial with its longest gap, and the gap in microseconds; only of 1 ms or more."""
    longest: dict[str, tuple[MeasuredTrial, int]] = {}
    for trial in trials:
        gap_us = (trial.figures.longest_gap_us if trial.figures else None) or 0
        if gap_us > longest.get(trial.variant, (trial, 0))[1]:
            longest[trial.variant] = trial, gap_us
    return longest


def gap_text(trials: Sequence[MeasuredTrial]) -> str:
    """The longest gap without a completed transaction, and the trial that has it; empty if none is known."""
    longest = longest_gaps(trials)
    if not longest:
        return ""
    trial, gap_us = max(longest.values(), key=lambda one: one[1])
    return compose(
        "Stalls: the longest gap without a completed transaction is {gap} ms ({variant}, trial {number})",
        gap=formatting.milliseconds(gap_us),
        variant=trial.variant,
        number=trial.index + 1,
    )


def has_stall(trials: Sequence[MeasuredTrial]) -> bool:
    """Whether a gap is so long that the charts are unfolded."""
    return any(gap_us >= GAP_US_MIN for _, gap_us in longest_gaps(trials).values())
