"""Takes the load of other processes out of paired differences.

Each block has a difference of the logarithms of two measurements, and during each of the two other processes
used a share of the CPU time. x is the difference of the two shares. If the variants are equal and meet other
processes alike, exchanging them in a block changes the signs of difference and x and nothing else. There are
four rules:

- `EQUAL`: no x is above `RESOLUTION`. Nothing changes.
- `BOUNDED`: the variants did not meet, or not feel, other processes alike: x is above or below zero
  (signed-rank test), or what the differences have beyond x depends on the sum of the shares (t-test of its
  coefficient in a regression). Which part of a difference is the load's is then unknown: a variant that
  leaves more CPU time to others has a larger x, though nobody slowed it down. So each difference is only
  known within bounds: the load of others cost between nothing and the most that the differences permit. That
  is the end of the interval of a slope in a linear regression, at most `harm_max`. What all blocks have in
  common, the centre of x, shows in no slope; it may have cost `harm_max`.
- `BURSTS`: x is about zero in at least half of the blocks. The differences d become residuals d - b x, where
  the slope b is that of a regression of the other blocks through the centre of the residuals (Hodges &
  Lehmann), at least 0 and at most `harm_max`. Exchanging the variants keeps the slope, so tests by signs stay
  valid, whatever the relation of d and x (Rosenbaum 2002, Stat. Sci. 17:286). A block does not choose its own
  slope: its residual would be too small where few blocks have a burst.
- `UNEVEN`: x differs in most blocks, or has no slope. The differences stay as they are, with x as a part of
  their noise: a neighbour that takes what a server leaves has such an x, and residuals would hide the effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from dbdyno.stats.signed_rank import hodges_lehmann, interval

Array = NDArray[np.float64]
# Significance level of the two tests whether the variants met other processes alike, and of the intervals of
# slopes.
ALPHA = 0.05
# Shares that differ by less are equal: CPU time is not accounted more exactly.
RESOLUTION = 0.005
# Part of the largest x below which another one is about zero.
NEGLIGIBLE = 0.1
# Maximum number of steps in which slope and centre are found; each makes the error several times smaller.
STEPS = 30


class Rule(StrEnum):
    """How differences were adjusted."""

    EQUAL = "equal"
    BOUNDED = "bounded"
    BURSTS = "bursts"
    UNEVEN = "uneven"


@dataclass(frozen=True)
class Adjusted:
    """Differences without the load of others: block -> lower and upper bound."""

    lows: dict[int, float]
    highs: dict[int, float]
    rule: Rule


def adjust(
    lows: Mapping[int, float],
    highs: Mapping[int, float],
    shares: Mapping[int, tuple[float, float]],
    harm_max: float,
) -> Adjusted:
    """The differences of the blocks, adjusted for the shares of CPU time that other processes used.

    `lows` and `highs` bound each difference and are equal if it is known. `shares` has, for each block, the
    share during the measurement that is subtracted, and during the other one; a block without is not
    adjusted. Other processes change the logarithm of a measurement by at most `harm_max` (negative if they
    lower it) per share.
    """
    least = min((min(pair) for pair in shares.values()), default=0.0)
    # Above the smallest share, which every measurement met.
    above = {
        block: (entry - least, met_by_variant - least)
        for block, (entry, met_by_variant) in shares.items()
        if block in lows
    }
    x = {block: above[block][1] - above[block][0] if block in above else 0.0 for block in lows}
    x = {block: entry if abs(entry) >= RESOLUTION else 0.0 for block, entry in x.items()}
    if not any(x.values()):
        return Adjusted(dict(lows), dict(highs), Rule.EQUAL)
    exact = [block for block in above if np.isfinite(lows[block]) and lows[block] == highs[block]]
    differences, of_known = (np.array([of[block] for block in exact]) for of in (lows, x))
    of_x = interval(list(x.values()), ALPHA)
    if of_x is not None and of_x.excludes(0.0):
        centre = hodges_lehmann(list(x.values()))
        (slope,) = _largest_slopes(differences, of_known, [harm_max])
        return _bounded(
            lows,
            highs,
            {block: (slope * (entry - centre) + harm_max * centre,) for block, entry in x.items()},
        )
    both = np.array([above[block] for block in exact]).reshape(-1, 2)
    if _depends(differences, of_known, both.sum(axis=1)):
        slope_of_baseline, of_other = _largest_slopes(differences, both, [-harm_max, harm_max])
        return _bounded(
            lows,
            highs,
            {
                block: (slope_of_baseline * entry, of_other * met_by_variant)
                for block, (entry, met_by_variant) in above.items()
            },
        )
    small = NEGLIGIBLE * max(map(abs, x.values()))
    if 2 * sum(abs(entry) > small for entry in x.values()) > len(x) or not of_known.any():
        return Adjusted(dict(lows), dict(highs), Rule.UNEVEN)
    slopes = dict(zip(exact, _slopes(differences, of_known, harm_max), strict=True))
    if not any(slope * x[block] for block, slope in slopes.items()):
        return Adjusted(dict(lows), dict(highs), Rule.UNEVEN)

    def residual(value: float, block: int) -> float:
        return value - slopes.get(block, 0.0) * x[block]

    return Adjusted(
        {block: residual(low, block) for block, low in lows.items()},
        {block: residual(high, block) for block, high in highs.items()},
        Rule.BURSTS,
    )


def _bounded(
    lows: Mapping[int, float], highs: Mapping[int, float], costs: Mapping[int, Sequence[float]]
) -> Adjusted:
    """The differences if each of the costs of a block changed its difference by nothing, by all of itself, or
    by something between.
    """
    return Adjusted(
        {block: low - sum(max(0.0, cost) for cost in costs.get(block, ())) for block, low in lows.items()},
        {block: high - sum(min(0.0, cost) for cost in costs.get(block, ())) for block, high in highs.items()},
        Rule.BOUNDED,
    )


@dataclass(frozen=True)
class _Regression:
    """A linear regression with an intercept: its slopes, their standard errors and degrees of freedom."""

    slopes: Array
    errors: Array
    freedom: int


def _regress(differences: Array, columns: Array) -> _Regression | None:
    """The regression on the columns; None with too few differences for it, or if they do not vary apart."""
    design = np.column_stack([np.ones(len(differences)), columns])
    freedom = len(differences) - design.shape[1]
    if freedom < 2 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ differences
    residuals = differences - design @ coefficients
    variances = float(residuals @ residuals) / freedom * np.diag(inverse)
    return _Regression(coefficients[1:], np.sqrt(variances)[1:], freedom)


def _depends(differences: Array, x: Array, sums: Array) -> bool:
    """Whether the differences depend on the sums of the shares, given x (t-test in a linear regression)."""
    fit = _regress(differences, np.column_stack([x, sums]))
    if fit is None or not fit.errors[1] > 0.0:
        return False
    return bool(2.0 * stdtr(fit.freedom, -abs(fit.slopes[1]) / fit.errors[1]) <= ALPHA)


def _largest_slopes(differences: Array, columns: Array, most: Sequence[float]) -> list[float]:
    """For each column, the farthest slope from zero towards `most` that the differences permit, and at most
    that: an end of its interval in a linear regression (t distribution).
    """
    fit = _regress(differences, columns)
    if fit is None:
        return list(most)
    ends = np.sign(most) * fit.slopes + stdtrit(fit.freedom, 1.0 - ALPHA / 2.0) * fit.errors
    return [float(end) for end in np.sign(most) * np.clip(ends, 0.0, np.abs(most))]


def _slopes(differences: Array, x: Array, harm_max: float) -> list[float]:
    """For each block, the slope through the centre of the residuals, from all other blocks."""
    least, most = min(0.0, harm_max), max(0.0, harm_max)
    slopes, centre = np.zeros(len(x)), hodges_lehmann(differences)
    squares = float(x @ x) - x * x
    for _ in range(STEPS):
        products = x * (differences - centre)
        others = float(products.sum()) - products
        slopes = np.clip(np.divide(others, squares, out=np.zeros(len(x)), where=squares > 0.0), least, most)
        before, centre = centre, hodges_lehmann(differences - slopes * x)
        if centre == before:
            break
    return [float(slope) for slope in slopes]
