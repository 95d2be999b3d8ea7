"""The difference of two effects, against scipy and by simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dbdyno.decide.order_effect import shift
from dbdyno.stats.difference import difference, log_ratio
from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.signed_rank import hodges_lehmann, interval, percent

EXPERIMENTS = 1_500


def test_with_intervals_by_t_it_is_that_of_cochran_and_cox() -> None:
    """scipy's interval of Welch has the same standard error; theirs has the quantile of a single sample."""
    random = np.random.default_rng(1)
    first, second = random.normal(0.1, 0.02, 8), random.normal(0.3, 0.05, 8)
    low, high = _ends(_by_t(first), _by_t(second))
    welch = stats.ttest_ind(second, first, equal_var=False)
    error = math.sqrt(first.var(ddof=1) / 8 + second.var(ddof=1) / 8)
    assert (low + high) / 2 == pytest.approx(second.mean() - first.mean())
    assert high - low == pytest.approx(2.0 * stats.t.ppf(0.975, 7) * error)
    assert low < welch.confidence_interval().low
    assert welch.confidence_interval().high < high


def test_with_many_blocks_it_is_that_of_welch() -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(0.1, 0.02, 400), random.normal(0.3, 0.05, 300)
    found = _ends(_by_t(first), _by_t(second))
    welch = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert found == pytest.approx((welch.low, welch.high), abs=1e-4)


def test_it_contains_the_truth_with_unequal_noise_and_blocks_and_the_rank_sum_does_not() -> None:
    """A replication runs on another machine, which has another noise."""
    random = np.random.default_rng(3)
    covered = by_ranks = 0
    for _ in range(EXPERIMENTS):
        first, second = random.normal(0.1, 0.02, 20), random.normal(0.2, 0.06, 8)
        low, high = _ends(_by_ranks(first), _by_ranks(second))
        covered += low <= 0.1 <= high
        shifted = shift(second.tolist(), first.tolist(), 0.05)
        assert shifted is not None
        by_ranks += shifted.low <= 0.1 <= shifted.high
    assert covered / EXPERIMENTS >= 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)
    assert by_ranks / EXPERIMENTS < 0.92


@pytest.mark.parametrize("blocks", [6, 8, 10, 16])
def test_it_contains_the_truth_with_heavy_tails(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    covered = 0
    for _ in range(EXPERIMENTS):
        first, second = (_by_ranks(random.standard_t(3, blocks) * 0.03) for _ in range(2))
        low, high = _ends(first, second)
        covered += low <= 0.0 <= high
    assert covered / EXPERIMENTS >= 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)


def test_an_unknown_end_is_unknown_in_the_difference() -> None:
    known, open_end = _effect(0.1, 0.05, 0.2), _effect(0.3, 0.2, math.inf)
    low, high = _ends(known, open_end)
    assert (low > -math.inf, high) == (True, math.inf)
    assert _ends(open_end, known)[0] == -math.inf


def test_without_an_interval_the_difference_has_none() -> None:
    found = difference(_effect(0.1, 0.05, 0.2), replace(_effect(0.3, 0.2, 0.4), interval_percent=None))
    assert found is not None
    assert found.interval_percent is None
    assert found.effect_percent == pytest.approx(percent(0.2))


@pytest.mark.parametrize("estimate", [-100.0, math.inf])
def test_a_ratio_of_zero_or_infinity_has_no_difference(estimate: float) -> None:
    known = _effect(0.1, 0.0, 0.2)
    assert difference(known, replace(known, effect_percent=estimate)) is None
    assert difference(known, replace(known, bound=Bound.AT_LEAST)) is None


def test_changes_in_percent() -> None:
    assert log_ratio(100.0) == pytest.approx(math.log(2.0))
    assert (log_ratio(-100.0), log_ratio(math.inf)) == (-math.inf, math.inf)


def _effect(value: float, low: float, high: float) -> Effect:
    """An effect from log ratios."""
    return Effect(percent(value), (percent(low), percent(high)), alpha=0.05, p_value=1.0, blocks=8)


def _ends(first: Effect, second: Effect) -> tuple[float, float]:
    """The interval of the difference, as log ratios."""
    found = difference(first, second)
    assert found is not None
    assert found.interval_percent is not None
    return log_ratio(found.interval_percent[0]), log_ratio(found.interval_percent[1])


def _by_t(values: np.ndarray) -> Effect:
    ends = stats.t.interval(0.95, values.size - 1, values.mean(), stats.sem(values))
    return _effect(float(values.mean()), *map(float, ends))


def _by_ranks(values: np.ndarray) -> Effect:
    ends = interval(values, 0.05)
    assert ends is not None
    return _effect(hodges_lehmann(values), ends.low, ends.high)
