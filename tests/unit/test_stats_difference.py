"""The difference of two estimates, against scipy and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dbdyno.stats.difference import Estimate, difference
from dbdyno.stats.rank_sum import shift
from dbdyno.stats.signed_rank import hodges_lehmann, interval

EXPERIMENTS = 1_500


def test_with_intervals_by_t_it_is_that_of_cochran_and_cox() -> None:
    """scipy's interval of Welch has the same standard error; theirs has the quantile of a single sample."""
    random = np.random.default_rng(1)
    first, second = random.normal(0.1, 0.02, 8), random.normal(0.3, 0.05, 8)
    low, high = difference(_by_t(first), _by_t(second)).low, difference(_by_t(first), _by_t(second)).high
    welch = stats.ttest_ind(second, first, equal_var=False)
    error = math.sqrt(first.var(ddof=1) / 8 + second.var(ddof=1) / 8)
    assert (low + high) / 2 == pytest.approx(second.mean() - first.mean())
    assert high - low == pytest.approx(2.0 * stats.t.ppf(0.975, 7) * error)
    assert low < welch.confidence_interval().low
    assert welch.confidence_interval().high < high


def test_with_many_blocks_it_is_that_of_welch() -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(0.1, 0.02, 400), random.normal(0.3, 0.05, 300)
    found = difference(_by_t(first), _by_t(second))
    welch = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((welch.low, welch.high), abs=1e-4)


def test_it_contains_the_truth_with_unequal_noise_and_blocks_and_the_rank_sum_does_not() -> None:
    """A replication runs on another machine, which has another noise."""
    random = np.random.default_rng(3)
    covered = by_ranks = 0
    for _ in range(EXPERIMENTS):
        first, second = random.normal(0.1, 0.02, 20), random.normal(0.2, 0.06, 8)
        found = difference(_by_ranks(first), _by_ranks(second))
        covered += found.low <= 0.1 <= found.high
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
        covered += difference(first, second).low <= 0.0 <= difference(first, second).high
    assert covered / EXPERIMENTS >= 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)


def test_an_unknown_end_is_unknown_in_the_difference() -> None:
    known, open_end = Estimate(0.1, 0.05, 0.2), Estimate(0.3, 0.2, math.inf)
    assert difference(known, open_end).high == math.inf
    assert difference(known, open_end).low > -math.inf
    assert difference(open_end, known).low == -math.inf


@pytest.mark.parametrize("wrong", [Estimate(math.inf, 0.0, math.inf), Estimate(0.3, 0.0, 0.2)])
def test_an_estimate_outside_its_interval_is_refused(wrong: Estimate) -> None:
    with pytest.raises(ValueError, match="finite estimates"):
        difference(wrong, Estimate(0.1, 0.0, 0.2))


def test_changes_in_percent() -> None:
    one = Estimate.of_percent(100.0, -100.0, math.inf)
    assert one.value == pytest.approx(math.log(2.0))
    assert (one.low, one.high) == (-math.inf, math.inf)


def _by_t(values: np.ndarray) -> Estimate:
    ends = stats.t.interval(0.95, values.size - 1, values.mean(), stats.sem(values))
    return Estimate(float(values.mean()), *map(float, ends))


def _by_ranks(values: np.ndarray) -> Estimate:
    ends = interval(values, 0.05)
    assert ends is not None
    return Estimate(hodges_lehmann(values), ends.low, ends.high)
