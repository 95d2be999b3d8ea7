"""Simultaneous intervals of effects at several loads that may be looked at after every block.

The test of one look is the joint sign-flip test (`stats/joint.py`). A pattern of signs over n blocks begins
with a pattern over the blocks of each earlier look, so what the looks spend can be counted in the patterns
themselves: patterns that an earlier look has rejected are removed, and the threshold of this look is the
smallest |t| with which the removed and the newly rejected patterns together are at most the share of alpha
that is spent by then (`Looks.spent`). If swapping the variants of a block changes nothing, every pattern is
as likely as the observed one, so this share bounds the chance that any look so far misses the true value.

An interval contains every theta that no look has rejected. Its ends are found by bisection, because the
patterns that earlier looks reject depend on theta. Few patterns matter in this search: at most `allowed` are
rejected, so no threshold is below the statistic that as many patterns of the other rows exceed, whatever
theta is. A look whose observed statistic is not above this floor rejects nothing, and patterns below it are
left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dbdyno.stats.joint import (
    RANDOM_PATTERNS,
    SEED,
    VARIATION_MIN,
    Array,
    JointInterval,
    finite_row,
    mean,
    sign_patterns,
    squares_of_t,
)
from dbdyno.stats.repeated import ROUNDING, Looks, rounded

# Up to this number of blocks all patterns are enumerated; beyond it, random patterns are used, of which each
# look sees the first signs.
EXACT_BLOCKS = 13
# The search for an end begins at this many standard errors, doubles the distance until the test rejects, and
# then halves the step.
START_ERRORS, DOUBLINGS, HALVINGS = 4.0, 40, 16
# More patterns are left out when the bracket of the search has this share of its former width.
NARROWED = 0.25

Numbers = NDArray[np.intp]


def repeated_joint_intervals(
    rows: Sequence[Sequence[float]], alpha: float, looks: Looks, selected: Collection[int] | None = None
) -> list[JointInterval | None]:
    """One interval per row, in the same order, as `joint_intervals`, but for looks after every block.

    The blocks are in the order in which they ran. The result is None for a row before the first look that can
    exclude a value, and for those not `selected`, if given. The p-value is the smallest level of `looks` at
    which a look excludes zero, or 1.
    """
    values = np.asarray(rows, dtype=np.float64)
    if values.size == 0:
        return [None] * len(rows)
    highest = max(alpha, *looks.levels(alpha))
    counts = looks.counts(values.shape[1])
    # The other looks cannot reject a pattern.
    deciding = [count for count in counts if _allowed(highest, looks, count)]
    of_rows = [[_Look(row[:count]) for count in deciding] for row in values]
    centred = [np.array([of_row[look].centred() for of_row in of_rows]) for look in range(len(deciding))]
    others = [_largest_of_others(statistics) for statistics in centred]
    return [
        _invert(
            _Search(of_row, [look[index] for look in others], alpha, looks),
            [mean(finite_row(values[index, :count])) for count in counts],
        )
        if selected is None or index in selected
        else None
        for index, of_row in enumerate(of_rows)
    ]


def _allowed(level: float, looks: Looks, blocks: int) -> int:
    """The number of patterns that the looks so far may reject at this level."""
    return math.floor(level * looks.spent(blocks) * len(_patterns(blocks)) * (1.0 + ROUNDING))


def _largest_of_others(statistics: Array) -> Array:
    """For each row, the largest statistic of the other rows under each pattern; 0 without other rows."""
    if len(statistics) == 1:
        return np.zeros_like(statistics)
    second, first = np.partition(statistics, -2, axis=0)[-2:]
    return np.asarray(np.where(statistics == first, second, first))


class _Look:
    """One row at one look."""

    def __init__(self, row: Array) -> None:
        row, present = finite_row(row), ~np.isnan(row)
        self.blocks, self.count = len(row), int(present.sum())
        self.mean = mean(row)
        centred = np.where(present, row - self.mean, 0.0)
        self.variance = float(centred @ centred) / max(self.count, 1)
        # Of the row less its mean, and of the signs alone, under every pattern; the first is the observed.
        self.means = _patterns(self.blocks) @ centred / max(self.count, 1)
        self.means_of_signs = _means_of_signs(tuple(map(bool, present)))
        if self.count < 2:
            # There is no t.
            self.means, self.means_of_signs = np.zeros((2, len(self.means)))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(self.variance / max(self.count - 1, 1))

    def centred(self) -> Array:
        """The square of t of the row less its mean, under every pattern."""
        if self.count < 2:
            return np.zeros(len(self.means))
        return squares_of_t(self.means**2, np.float64(self.variance), self.count - 1)

    def observed(self, theta: float) -> float:
        """The square of t of the row less theta, under the observed pattern."""
        shift = self.mean - theta
        mean = float(self.means[0]) + shift * float(self.means_of_signs[0])
        squares = self.variance + shift**2
        rest = squares - mean * mean
        if rest <= VARIATION_MIN * squares:
            return math.inf if mean else 0.0
        return mean * mean * (self.count - 1) / rest


@lru_cache(maxsize=64)
def _means_of_signs(present: tuple[bool, ...]) -> Array:
    """The mean of the signs of the blocks that are present, under every pattern."""
    return np.asarray(_patterns(len(present)) @ np.array(present, dtype=np.float64) / max(sum(present), 1))


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
def _first_signs(blocks: int, earlier: int) -> Numbers:
    """For each pattern, the number of the pattern of its first signs among those of an earlier look."""
    if earlier > EXACT_BLOCKS:
        return np.arange(RANDOM_PATTERNS)
    # sign_patterns numbers the patterns by their signs after the first: bit 0 is the second sign, 1 for -1.
    bits = (_patterns(blocks)[:, 1:earlier] < 0.0).astype(np.intp)
    return np.asarray(bits @ (1 << np.arange(earlier - 1, dtype=np.intp)))


def _continuations(removed: Numbers, earlier: int, blocks: int) -> Numbers:
    """The numbers of the patterns that begin with one that an earlier look has removed."""
    if not len(removed) or earlier > EXACT_BLOCKS:
        return removed
    if blocks <= EXACT_BLOCKS:
        for count in range(earlier, blocks):
            removed = np.concatenate([removed, removed + (1 << (count - 1))])
        return removed
    return np.flatnonzero(_is_in(removed, len(_patterns(earlier)))[_first_signs(blocks, earlier)])


def _is_in(numbers: Numbers, count: int) -> NDArray[np.bool_]:
    """For each of so many numbers, whether it is one of `numbers`."""
    is_in = np.zeros(count, dtype=bool)
    is_in[numbers] = True
    return is_in


@dataclass(frozen=True)
class _Candidates:
    """Patterns of all looks, one look after the other, without those that do not matter."""

    numbers: Numbers
    # Number of patterns of each look.
    counts: Numbers
    means: Array
    means_of_signs: Array
    # Largest statistic of the other rows.
    others: Array
    # The floor of the thresholds, and the degrees of freedom, of the pattern's look.
    floors: Array
    freedom: Array

    def only(self, is_kept: NDArray[np.bool_]) -> _Candidates:
        """Some of these patterns."""
        look = np.repeat(np.arange(len(self.counts)), self.counts)[is_kept]
        return _Candidates(
            self.numbers[is_kept],
            np.bincount(look, minlength=len(self.counts)),
            self.means[is_kept],
            self.means_of_signs[is_kept],
            self.others[is_kept],
            self.floors[is_kept],
            self.freedom[is_kept],
        )


class _Search:
    """The test of one row at all looks, and the search for the ends of its interval."""

    def __init__(self, row: Sequence[_Look], others: Sequence[Array], alpha: float, looks: Looks) -> None:
        self.row, self.alpha = row, alpha
        self.levels = sorted(looks.levels(alpha), reverse=True)
        # Number of patterns that each look may have rejected, by level.
        self._allowed = {
            level: [_allowed(level, looks, look.blocks) for look in row] for level in {alpha, *self.levels}
        }
        most = [max(of_levels) for of_levels in zip(*self._allowed.values(), strict=True)]
        self._floors = [
            float(np.partition(of_look, -allowed - 1)[-allowed - 1])
            for of_look, allowed in zip(others, most, strict=True)
        ]
        self._observed_others = [float(of_look[0]) for of_look in others]
        self._others = others
        self._all: _Candidates | None = None

    def may_reject(self, number: int) -> bool:
        """Whether this look can reject a pattern at the level of the interval."""
        return self._allowed[self.alpha][number] > 0

    def rejected(
        self,
        theta: float,
        levels: Sequence[float] | None = None,
        first: int = 0,
        among: Callable[[], _Candidates] | None = None,
    ) -> list[bool]:
        """Whether any look from number `first` on rejects theta, at each of the levels, which descend.

        `among` gives patterns that include all that matter for this theta; by default these are all.
        """
        levels = levels or (self.alpha,)
        observed = [
            max(look.observed(theta) if look.count >= 2 else 0.0, of_others)
            for look, of_others in zip(self.row, self._observed_others, strict=True)
        ]
        above = [number for number, floor in enumerate(self._floors) if observed[number] > floor]
        if not above or above[-1] < first:
            return [False] * len(levels)
        candidates = among() if among else self.near(theta, theta)
        statistics = self._statistics(candidates, theta)
        ends = np.cumsum(candidates.counts).tolist()
        patterns = [
            (candidates.numbers[start:end], statistics[start:end])
            for start, end in zip([0, *ends], ends[: above[-1] + 1], strict=False)
        ]
        return self._decide(observed, patterns, levels, first)

    def _decide(
        self,
        observed: Sequence[float],
        patterns: Sequence[tuple[Numbers, Array]],
        levels: Sequence[float],
        first: int,
    ) -> list[bool]:
        """The results of `rejected`. A threshold at a level is not below that at a higher one, so what a
        level rejects, all higher ones reject.
        """
        thresholds = [0.0] * len(patterns)
        rejections = []
        for level in levels:
            is_rejected, blocks = False, 0
            removed: Numbers = np.zeros(0, dtype=np.intp)
            for number, (all_numbers, all_statistics) in enumerate(patterns):
                numbers, statistics = all_numbers, all_statistics
                removed = _continuations(removed, blocks, self.row[number].blocks)
                blocks = self.row[number].blocks
                allowed = self._allowed[level][number] - len(removed)
                if allowed <= 0:
                    thresholds[number] = math.inf
                    continue
                if len(removed):
                    is_left = ~_is_in(removed, len(_patterns(blocks)))[numbers]
                    numbers, statistics = numbers[is_left], statistics[is_left]
                # At most `allowed` of the patterns that are left have a larger statistic than this one.
                ordered = statistics.copy()
                ordered.partition(-allowed - 1)
                threshold = float(ordered[-allowed - 1]) * (1.0 + ROUNDING)
                threshold = thresholds[number] = max(threshold, thresholds[number])
                is_rejected |= number >= first and observed[number] > threshold
                if is_rejected and level == levels[-1]:
                    # Nothing depends on the later looks.
                    break
                removed = np.concatenate([removed, numbers[statistics > threshold]])
            rejections.append(is_rejected)
        return rejections

    def near(self, first: float, second: float, among: _Candidates | None = None) -> _Candidates:
        """The patterns that may matter for a theta between two values, out of some or of all."""
        if among is None:
            among = self._all = self._all or self._every()
        shifts = [[look.mean - theta for look in self.row] for theta in (first, second)]
        least = [
            look.variance + (0.0 if a * b < 0.0 else min(a * a, b * b))
            for look, a, b in zip(self.row, *shifts, strict=True)
        ]
        means = [
            np.abs(among.means + np.repeat(shift, among.counts) * among.means_of_signs) for shift in shifts
        ]
        # |mean| is convex in theta, and the mean square is least at one of the ends, or between them.
        with np.errstate(invalid="ignore"):
            # An infinite floor times a mean square of 0 is NaN, which leaves no pattern out.
            needed = among.floors * np.repeat(least, among.counts) * (1.0 - ROUNDING)
            is_below = np.maximum(*means) ** 2 * (among.freedom + among.floors) < needed
        return among.only(~is_below | (among.others >= among.floors))

    def _every(self) -> _Candidates:
        counts = np.array([len(look.means) for look in self.row])
        return _Candidates(
            np.concatenate([np.arange(count) for count in counts]),
            counts,
            np.concatenate([look.means for look in self.row]),
            np.concatenate([look.means_of_signs for look in self.row]),
            np.concatenate(self._others),
            np.repeat(self._floors, counts),
            np.repeat([look.count - 1.0 for look in self.row], counts),
        )

    def _statistics(self, of: _Candidates, theta: float) -> Array:
        """The largest statistic of all rows under each of the patterns."""
        shifts = [look.mean - theta for look in self.row]
        squares = [look.variance + shift**2 for look, shift in zip(self.row, shifts, strict=True)]
        means = (of.means + np.repeat(shifts, of.counts) * of.means_of_signs) ** 2
        return np.maximum(squares_of_t(means, np.repeat(squares, of.counts), of.freedom), of.others)


def _invert(search: _Search, means: Sequence[float]) -> JointInterval | None:
    """The interval of one row; `means` are those at each look."""
    row, levels = search.row, search.levels
    if not any(look.count >= 2 and search.may_reject(number) for number, look in enumerate(row)):
        return None
    at_zero = search.rejected(0.0, levels)
    p_value = min(
        (level for level, is_rejected in zip(levels, at_zero, strict=True) if is_rejected), default=1.0
    )
    # If all looks together leave nothing near the mean, they contradict each other; the latest one counts.
    centre, first = row[-1].mean, 0
    if search.rejected(centre)[0]:
        candidates = [entry for mean in means for entry in (mean, (mean + centre) / 2.0)]
        left = next((candidate for candidate in candidates if not search.rejected(candidate)[0]), None)
        centre, first = (centre, len(row) - 1) if left is None else (left, 0)
    distance = START_ERRORS * max(row[-1].error, 1e-12)
    low, high = (_end(search, centre, side * distance, first) for side in (-1.0, 1.0))
    if not search.rejected(0.0, first=first)[0]:
        low, high = min(low, 0.0), max(high, 0.0)
    return JointInterval(low, high, rounded(p_value))


def _end(search: _Search, centre: float, distance: float, first: int) -> float:
    """The end of the interval around `centre` on the side of `distance`; infinite if there is none."""
    inside = centre
    for _ in range(DOUBLINGS):
        outside = inside + distance
        if inside * outside < 0.0:
            # Interval and p-value agree if the search does not step over zero.
            outside = 0.0
        if search.rejected(outside, first=first)[0]:
            break
        inside, distance = outside, 2.0 * distance
    else:
        return math.copysign(math.inf, distance)
    bracket = _Bracket(search, inside, outside)
    for _ in range(HALVINGS):
        middle = (bracket.inside + bracket.outside) / 2.0
        if search.rejected(middle, first=first, among=bracket.candidates)[0]:
            bracket.outside = middle
        else:
            bracket.inside = middle
    return bracket.outside


@dataclass
class _Bracket:
    """Two values with the end of an interval between them."""

    search: _Search
    inside: float
    outside: float
    _candidates: _Candidates | None = None
    _width: float = math.inf

    def candidates(self) -> _Candidates:
        """The patterns that may matter for a theta between the two."""
        width = abs(self.outside - self.inside)
        if self._candidates is None or width <= NARROWED * self._width:
            self._candidates = self.search.near(self.inside, self.outside, self._candidates)
            self._width = width
        return self._candidates
