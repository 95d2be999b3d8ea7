"""Change points of a series: the places at which its level has changed.

Apache Otava finds them: it splits the series where the energy distance of both sides is largest (E-divisive,
Matteson & James 2014, J. Am. Stat. Assoc. 109:334) while a t-test finds that the sides differ (Fleming et
al. 2023, ICPE, doi 10.1145/3578244.3583719). A place that was searched for has more than its share of such
p-values, so these change points are candidates, and a comparison of its own has to confirm each.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

# Fewer values have no change points.
VALUES_MIN = 8
# Largest p-value of a candidate. It is high, because a confirmation follows, and a change of one and a half
# times the noise must be a candidate within six values.
P_VALUE = 0.1
# Values in which Otava looks for change points at once.
WINDOW = 50
# How much worse than the best split, in squared standard deviations, one may be to be a possible place of the
# change too. For a single place given in advance, 6 would be the quantile of 98.6 % of its chi-square.
PLACES = 6.0


@dataclass(frozen=True)
class ChangePoint:
    """A change of the level before the value `index`."""

    index: int
    # The change may be before any of the values from `first` to `last`.
    first: int
    last: int
    # Difference of the means after and before, and its 95 % interval for a place that is given in advance.
    step: float
    interval: tuple[float, float]


def find_change_points(values: Sequence[float], settled: Collection[int] = ()) -> list[ChangePoint]:
    """The change points of a series, in order. `settled` are places at which the level changes, as is known:
    the level before a change point is that of the values since the last of them.

    Raises ModuleNotFoundError without the extra `history`.
    """
    # Optional, and slow to import.
    from otava.analysis import compute_change_points  # noqa: PLC0415

    if len(values) < VALUES_MIN:
        return []
    points, _ = compute_change_points([float(value) for value in values], WINDOW, P_VALUE)
    places = [int(entry.index) for entry in points]
    changes = [
        _change_point(values, max((place for place in settled if place < index), default=0), index, end)
        for index, end in itertools.pairwise([*places, len(values)])
    ]
    # A level that differs from the one before it alone, as after an outlier, is no change.
    return [change for change in changes if not change.interval[0] <= 0.0 <= change.interval[1]]


def _change_point(values: Sequence[float], begin: int, index: int, end: int) -> ChangePoint:
    """The change before `index` within values[begin:end]."""
    part = np.asarray(values[begin:end])
    before, after = part[: index - begin], part[index - begin :]
    step = float(after.mean() - before.mean())
    ends = (step, step)
    if before.std() > 0.0 or after.std() > 0.0:
        interval = stats.ttest_ind(after, before).confidence_interval()
        ends = (float(interval.low), float(interval.high))
    places = np.array([_residuals(part, place) for place in range(1, len(part))])
    limit = places[index - begin - 1] * (1.0 + PLACES / max(1, len(part) - 2))
    possible = np.flatnonzero(places <= limit) + begin + 1
    return ChangePoint(index, int(possible[0]), int(possible[-1]), step, ends)


def _residuals(part: np.ndarray, place: int) -> float:
    """The sum of the squared distances from the means of both sides."""
    return float(part[:place].var() * place + part[place:].var() * (len(part) - place))
