"""Simultaneous intervals of effects at several loads that may be looked at after every block.

The test of one look is the joint sign-flip test (`stats/joint.py`). A pattern of signs over n blocks begins
with a pattern over the blocks of each earlier look, so what the looks spend can be counted in the patterns
themselves: patterns that an earlier look has rejected are removed, and the threshold of this look is the
smallest |t| with which the removed and the newly rejected patterns together are at most the share of alpha
that is spent by then (`Looks.spent`). If swapping the variants of a block changes nothing, every pattern is
as likely as the observed one, so this share bounds the chance that any look so far misses the true value.

An interval contains every theta that no look has rejected. Its ends are found by bisection, because the
patterns that earlier looks reject depend on theta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from dbdyno.stats.joint import SEED, Array, JointInterval, sign_patterns
from dbdyno.stats.repeated import ROUNDING, Looks, rounded

# Up to this number of blocks all patterns are enumerated; beyond it, random patterns are used, of which each
# look sees the first signs.
EXACT_BLOCKS = 13
RANDOM_PATTERNS = 4096
# The search for an end begins at this many standard errors, doubles the distance until the test rejects, and
# then halves the step.
START_ERRORS, DOUBLINGS, HALVINGS = 4.0, 40, 16
# Share of the sum of squares below which the variation around the mean is a rounding error.
VARIATION_MIN = 1e-12


def repeated_joint_intervals(
    rows: Sequence[Sequence[float]], alpha: float, looks: Looks
) -> list[JointInterval | None]:
    """One interval per row, in the same order, as `joint_intervals`, but for looks after every block.

    The blocks are in the order in which they ran. The result is None for a row before the first look that can
    exclude a value. The p-value is the smallest level of `looks` at which a look excludes zero, or 1.
    """
    values = np.asarray(rows, dtype=np.float64)
    if values.size == 0:
        return [None] * len(rows)
    of_rows = [[_Look(row[:count]) for count in looks.counts(values.shape[1])] for row in values]
    centred = [[look.statistics(look.mean) for look in of_row] for of_row in of_rows]
    return [
        _invert(
            of_row,
            [others[:index] + others[index + 1 :] for others in zip(*centred, strict=True)],
            alpha,
            looks,
        )
        for index, of_row in enumerate(of_rows)
    ]


class _Look:
    """One row at one look."""

    def __init__(self, row: Array) -> None:
        present = ~np.isnan(row)
        self.blocks, self.count = len(row), int(present.sum())
        self.mean = float(row[present].mean()) if self.count else 0.0
        centred = np.where(present, row - self.mean, 0.0)
        self._variance = float(centred @ centred) / max(self.count, 1)
        signs = _patterns(self.blocks)
        self._means, self._means_of_signs = (
            signs @ each / max(self.count, 1) for each in (centred, present.astype(np.float64))
        )

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(self._variance / max(self.count - 1, 1))

    def statistics(self, theta: float) -> Array:
        """The square of t of the row less theta, under every pattern; the first is the observed one."""
        if self.count < 2:
            return np.zeros(len(self._means))
        shift = self.mean - theta
        squares = self._variance + shift**2
        means = (self._means + shift * self._means_of_signs) ** 2
        # A pattern of signs changes the mean of a row but not its sum of squares.
        rest = squares - means
        is_rounding = rest <= VARIATION_MIN * squares
        rest[is_rounding] = 1.0
        statistics = means * (self.count - 1) / rest
        statistics[is_rounding] = np.where(means[is_rounding] > 0.0, np.inf, 0.0)
        return np.asarray(statistics)


@lru_cache(maxsize=64)
def _patterns(blocks: int) -> Array:
    """Patterns of signs, one per row; the first is the observed one, and the first sign is always +1."""
    if blocks <= EXACT_BLOCKS:
        return sign_patterns(blocks, EXACT_BLOCKS)
    # One row per block, so that more blocks have the same first signs.
    later = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(blocks - 1, RANDOM_PATTERNS))
    later[:, 0] = 1.0
    return np.column_stack([np.ones(RANDOM_PATTERNS), later.T])


@lru_cache(maxsize=64)
def _first_signs(blocks: int, earlier: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """For each pattern, the number of the pattern of its first signs among those of an earlier look."""
    if earlier > EXACT_BLOCKS:
        return np.arange(RANDOM_PATTERNS)
    # sign_patterns numbers the patterns by their signs after the first: bit 0 is the second sign, 1 for -1.
    bits = (_patterns(blocks)[:, 1:earlier] < 0.0).astype(np.intp)
    return np.asarray(bits @ (1 << np.arange(earlier - 1, dtype=np.intp)))


def _invert(
    row: Sequence[_Look], others: Sequence[Sequence[Array]], alpha: float, looks: Looks
) -> JointInterval | None:
    """The interval of one row; `others` are the statistics of the other rows at each look."""
    largest = [np.max(each, axis=0) if each else np.zeros(1) for each in others]
    is_possible = any(
        math.floor(alpha * looks.spent(look.blocks) * len(_patterns(look.blocks)) * (1.0 + ROUNDING))
        and look.count >= 2
        for look in row
    )
    if not is_possible:
        return None
    levels = sorted(looks.levels(alpha), reverse=True)

    def rejected(theta: float, levels: Sequence[float] = (alpha,), first: int = 0) -> list[bool]:
        statistics = [
            np.maximum(look.statistics(theta), others) for look, others in zip(row, largest, strict=True)
        ]
        return _rejected(row, statistics, levels, looks, first=first)

    p_value = min(
        (level for level, is_rejected in zip(levels, rejected(0.0, levels), strict=True) if is_rejected),
        default=1.0,
    )
    # If all looks together leave nothing near the mean, they contradict each other; the latest one counts.
    centre, first = row[-1].mean, 0
    if rejected(centre)[0]:
        candidates = [one for look in row for one in (look.mean, (look.mean + centre) / 2.0)]
        left = next((one for one in candidates if not rejected(one)[0]), None)
        centre, first = (centre, len(row) - 1) if left is None else (left, 0)

    def is_outside(theta: float) -> bool:
        return rejected(theta, first=first)[0]

    distance = START_ERRORS * max(row[-1].error, 1e-12)
    low, high = (_end(is_outside, centre, side * distance) for side in (-1.0, 1.0))
    if not is_outside(0.0):
        low, high = min(low, 0.0), max(high, 0.0)
    return JointInterval(low, high, rounded(p_value))


def _end(is_outside: Callable[[float], bool], centre: float, distance: float) -> float:
    """The end of the interval around `centre` on the side of `distance`; infinite if there is none."""
    inside = centre
    for _ in range(DOUBLINGS):
        outside = inside + distance
        if inside * outside < 0.0:
            # Interval and p-value agree if the search does not step over zero.
            outside = 0.0
        if is_outside(outside):
            break
        inside, distance = outside, 2.0 * distance
    else:
        return math.copysign(math.inf, distance)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2.0
        if is_outside(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _rejected(
    row: Sequence[_Look], statistics: Sequence[Array], levels: Sequence[float], looks: Looks, *, first: int
) -> list[bool]:
    """Whether any look from number `first` on rejects theta, at each of the levels, which descend.

    `statistics` has the largest statistic of all rows under every pattern, at each look, for that theta. A
    threshold at a level is not below that at a higher one, so what a level rejects, all higher ones reject.
    """
    thresholds = np.zeros(len(row))
    rejections = []
    for level in levels:
        is_rejected = False
        alive = np.ones(len(statistics[0]), dtype=bool)
        for number, (look, of_patterns) in enumerate(zip(row, statistics, strict=True)):
            if number:
                alive = alive[_first_signs(look.blocks, row[number - 1].blocks)]
            removed = len(alive) - int(np.count_nonzero(alive))
            allowed = math.floor(level * looks.spent(look.blocks) * len(alive) * (1.0 + ROUNDING)) - removed
            threshold = math.inf
            if allowed > 0:
                left = of_patterns[alive]
                # At most `allowed` of the patterns that are left have a larger statistic than this one.
                threshold = float(np.partition(left, -allowed - 1)[-allowed - 1]) * (1.0 + ROUNDING)
            threshold = thresholds[number] = max(threshold, thresholds[number])
            is_rejected |= number >= first and bool(of_patterns[0] > threshold)
            alive &= of_patterns <= threshold
        rejections.append(is_rejected)
    return rejections
