"""Signed-rank intervals that may be looked at after every block, however the run ends.

An ordinary 95 % interval that is looked at after each block misses the true value at some look in 16 % of the
runs. A *repeated* interval (Jennison & Turnbull 1989, J. R. Stat. Soc. B 51:305) uses a smaller cut-off k(n)
at each look, so that the chance that any look so far misses is at most the part of alpha that is spent by
then (Lan & DeMets 1983, Biometrika 70:659):

::

    open end       alpha (1 - 5 / n)        blocks may be added at any time
    closed end     alpha (n / last)^2       no more than `last` blocks will ever run

With a closed end, tests that have only a share s of alpha spend alpha ((n / last)^2 - (1 - s) (n / last)^8),
which is almost all at first: s alpha (n / last)^2 would be too little for the first looks, at which few
patterns decide.

k(n) is exact. If the differences are symmetric and exchangeable, the absolute value of a new one has each of
the n ranks with the same probability, its sign is fair, and neither depends on the past. So the pattern of
signs in order of the absolute values is a Markov chain, whose distribution without the patterns that were
rejected at earlier looks is known. k(n) is the largest number that keeps the chance of a miss within what is
spent. Beyond `EXACT_BLOCKS` there is a look whenever there are a quarter more blocks, and one at the planned
end, at the level of the increment of the spending; the sum of the levels bounds the chance of a miss.

The interval after n blocks is the intersection of those of all looks so far, so that a result does not
disappear when blocks are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dbdyno.stats.signed_rank import Interval, cut_off, walsh_averages

# Maximum number of blocks for the distribution of the sign patterns, of which there are 2^n.
EXACT_BLOCKS = 20
# Up to this number the distribution takes milliseconds, so its cut-offs are computed together.
_SMALL = 15
# Looks beyond EXACT_BLOCKS are at multiples of this number.
LATER_LOOKS = 5
# Half the width of an interval, in standard deviations of the differences, is about this constant times
# (M / 2 - k) / (D sqrt(n)), with M Walsh averages and the standard deviation D of the signed-rank statistic.
_HALF_WIDTH = 1.12
# No look is earlier: with fewer blocks no significance level of 5 % can be reached.
FIRST_LOOK = 6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Looks:
    """The plan of the looks at the results of a run that may stop after any block."""

    # Number of blocks that are never exceeded; None if blocks may be added at any time.
    last: int | None = None
    # The significance levels of the tests, relative to that of the interval. The cut-off of each level is not
    # above that of a higher level, so that a result at one level is a result at every higher one.
    factors: tuple[float, ...] = (1.0,)
    # Largest number of blocks of the plan, at which there is a look. It is fixed before the run.
    planned: int | None = None
    # With a closed end, the share of the significance level that these tests have.
    share: float = 1.0

    def spent(self, blocks: int) -> float:
        """The share of the significance level that may be spent by the look after so many blocks."""
        if self.last is None:
            return max(0.0, 1.0 - 5.0 / blocks)
        done = min(1.0, blocks / self.last)
        return (done**2 - (1.0 - self.share) * done**8) / self.share

    def counts(self, blocks: int) -> list[int]:
        """The numbers of blocks at all looks up to `blocks`."""
        counts = set(range(FIRST_LOOK, min(blocks, EXACT_BLOCKS) + 1))
        later = EXACT_BLOCKS
        while (later := _next_look(later)) <= blocks:
            counts.add(later)
        ends = (self.last or 0, self.planned or 0)
        return sorted(counts.union(end for end in ends if EXACT_BLOCKS < end <= blocks))

    def levels(self, alpha: float) -> list[float]:
        """The significance levels of the tests of an effect whose interval has the level `alpha`."""
        return [alpha * factor for factor in self.factors]

    def cut_off(self, blocks: int, level: float, alpha: float) -> int:
        """The k of the interval from the k-th smallest to the k-th largest Walsh average; 0 for none.

        `level` is its significance level, and `alpha` that of the effect's interval.
        """
        return _cut_off(self, blocks, level, alpha)

    def own_cut_off(self, blocks: int, alpha: float) -> int:
        """The same for one level, without regard to the others."""
        if blocks <= EXACT_BLOCKS:
            # Equal levels that are computed in different ways share their cut-offs.
            most = _SMALL if blocks <= _SMALL else EXACT_BLOCKS
            return _exact_cut_offs(self.last, self.share, rounded(alpha), most)[blocks]
        earlier, latest = self.counts(blocks)[-2:]
        level = alpha * (self.spent(blocks) - self.spent(earlier))
        return cut_off(blocks, level, 0.0) if latest == blocks and level > 0.0 else 0

    def half_width(self, blocks: int, alpha: float, level: float | None = None) -> float:
        """About half the width of the interval at `level` (default `alpha`), in standard deviations of normal
        differences.
        """
        widths = [math.inf]
        for count in self.counts(blocks):
            if k := self.cut_off(count, level or alpha, alpha):
                deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24.0)
                widths.append(_HALF_WIDTH * (count * (count + 1) / 4.0 - k) / (deviation * math.sqrt(count)))
        return min(widths, default=math.inf)

    def blocks_needed(self, alpha: float, level: float | None = None) -> int:
        """The minimum number of blocks with which a test at `level` can exclude a value. `alpha` is the
        significance level of the interval, and that of the test by default.
        """
        blocks = FIRST_LOOK
        while self.cut_off(blocks, level or alpha, alpha) == 0:
            blocks += 1
        return blocks


@lru_cache(maxsize=4096)
def _cut_off(looks: Looks, blocks: int, level: float, alpha: float) -> int:
    higher = {candidate for candidate in looks.levels(alpha) if candidate > level * (1.0 + ROUNDING)}
    return min(looks.own_cut_off(blocks, entry) for entry in {level, *higher})


def _next_look(blocks: int) -> int:
    """The next regular look beyond `EXACT_BLOCKS`: 25, 30, 40, 50, 60, 75 blocks and so on."""
    return LATER_LOOKS * round(1.25 * blocks / LATER_LOOKS)


@lru_cache(maxsize=1024)
def _exact_cut_offs(last: int | None, share: float, alpha: float, blocks: int) -> tuple[int, ...]:
    """k(n) for n = 0 .. `blocks`."""
    looks, spent, cut_offs = Looks(last, share=share), 0.0, [0]
    # Probability of each pattern that no look has rejected: bit r of its number is the sign of rank r + 1.
    # Its statistic is the sum of the ranks with positive signs.
    alive, statistics = np.ones(1), np.zeros(1, dtype=np.int64)
    for count in range(1, blocks + 1):
        longer = np.zeros(2**count)
        for rank in range(count):
            # A new value with this rank and either sign is inserted into each pattern.
            longer.reshape(-1, 2, 2**rank)[:] += alive.reshape(-1, 1, 2**rank)
        alive = longer / (2.0 * count)
        statistics = np.concatenate([statistics, statistics + count])
        if count < FIRST_LOOK:
            cut_offs.append(0)
            continue
        smaller = np.minimum(statistics, count * (count + 1) // 2 - statistics)
        misses = spent + np.cumsum(np.bincount(smaller, weights=alive))
        k = int(np.searchsorted(misses, alpha * looks.spent(count) * (1.0 + ROUNDING), side="right"))
        if k:
            spent = float(misses[k - 1])
            alive[smaller < k] = 0.0
        cut_offs.append(k)
    return tuple(cut_offs)


@dataclass(frozen=True)
class Repeated:
    """The result of all looks at one effect."""

    # None before the first look that can exclude a value.
    interval: Interval | None
    # The smallest of the significance levels at which the looks say that the centre is above zero, and below
    # zero; 1 if there is none.
    p_above: float
    p_below: float


def repeated(lows: Sequence[float], highs: Sequence[float], alpha: float, looks: Looks) -> Repeated:
    """The result for differences that are known within bounds, in the order of the blocks.

    The probability that the interval after any number of blocks misses the true centre is at most `alpha`.
    """
    averages = [
        (blocks, walsh_averages(lows[:blocks], -math.inf), walsh_averages(highs[:blocks], math.inf))
        for blocks in looks.counts(len(lows))
    ]

    def at(level: float) -> Interval | None:
        ends = [
            (float(low[k - 1]), float(high[-k]))
            for blocks, low, high in averages
            if (k := looks.cut_off(blocks, level, alpha))
        ]
        low = max((end for end, _ in ends), default=math.nan)
        high = min((end for _, end in ends), default=math.nan)
        # If the looks contradict each other, at least one has missed the centre. The latest one counts.
        low, high = ends[-1] if low > high else (low, high)
        return Interval(low, high, level) if ends else None

    intervals = [(level, interval) for level in looks.levels(alpha) if (interval := at(level)) is not None]
    return Repeated(
        at(alpha),
        p_above=rounded(min((level for level, entry in intervals if entry.low > 0.0), default=1.0)),
        p_below=rounded(min((level for level, entry in intervals if entry.high < 0.0), default=1.0)),
    )


def rounded(level: float) -> float:
    """A significance level without the rounding errors of its computation."""
    return float(f"{level:.12g}")
