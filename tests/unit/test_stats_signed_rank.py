"""The signed-rank machinery against independent implementations and complete enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dbdyno.stats.signed_rank import (
    EXACT_MAX,
    blocks_needed,
    hodges_lehmann,
    interval,
    null_counts,
    p_value,
    percent,
    walsh_averages,
)

INF = math.inf


def enumerated_counts(n: int) -> list[int]:
    """The null distribution by writing down all 2^n sign patterns."""
    counts = [0] * (n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(rank * sign for rank, sign in zip(range(1, n + 1), signs, strict=True))] += 1
    return counts


@pytest.mark.parametrize("n", range(1, 13))
def test_null_distribution_equals_enumeration(n: int) -> None:
    assert list(null_counts(n)) == enumerated_counts(n)


def test_null_distribution_is_complete_at_the_largest_exact_size() -> None:
    counts = null_counts(EXACT_MAX)
    assert sum(counts) == 2**EXACT_MAX
    assert counts == counts[::-1]


def test_up_to_100_blocks_are_counted_exactly() -> None:
    assert EXACT_MAX == 100


@pytest.mark.parametrize("n", [5, 6, 8, 11, 19, 25, 26, 40, 73, 100])
def test_exact_p_values_equal_scipys(n: int) -> None:
    generator = np.random.default_rng(n)
    for shift in (0.0, 0.3, 1.5):
        differences = generator.normal(shift, 1.0, n)
        assert p_value(differences) == pytest.approx(
            scipy_stats.wilcoxon(differences, method="exact").pvalue, rel=1e-12
        )


@pytest.mark.parametrize("n", [101, 120, 400])
def test_approximate_p_values_equal_scipys(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.2, 1.0, n)
    expected = scipy_stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert p_value(differences) == pytest.approx(expected, rel=1e-9)


def test_ties_lessen_the_variance_as_in_scipy() -> None:
    differences = np.concatenate([np.tile([0.5, 1.0, 1.5, -0.6, -1.1, -0.7], 20), [0.2]])
    expected = scipy_stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert p_value(differences) == pytest.approx(expected, rel=1e-9)
    # The same without the ties' share of the variance would be larger.
    spread = differences + np.linspace(0, 1e-6, differences.size)
    assert p_value(spread) > p_value(differences)


def test_averages_of_zero_count_against_the_result() -> None:
    differences = np.tile([0.5, 1.0, -0.5, -0.9], 30)
    assert (
        p_value(differences) > scipy_stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    )


def test_smallest_p_values() -> None:
    assert p_value([0.1, 0.2, 0.3, 0.4, 0.5]) == 0.0625
    assert p_value([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) == 0.03125
    assert p_value([0.0, 0.0, 0.0]) == 1.0


def test_hodges_lehmann_by_hand() -> None:
    # Walsh averages of 1, 2, 4: 1, 1.5, 2, 2.5, 3, 4.
    assert list(walsh_averages([4.0, 1.0, 2.0])) == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
    assert hodges_lehmann([4.0, 1.0, 2.0]) == 2.25
    assert hodges_lehmann([7.0]) == 7.0


def test_interval_by_hand() -> None:
    """Eight differences at 5 %: k = 4, because P(T <= 3) = 5 / 256 and P(T <= 4) = 7 / 256 > 0.025."""
    differences = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    averages = sorted((a + b) / 2 for i, a in enumerate(differences) for b in differences[i:])
    found = interval(differences, 0.05)
    assert found is not None
    assert (found.low, found.high) == (averages[3], averages[-4]) == (2.5, 72.0)


@pytest.mark.parametrize(
    ("n", "alpha", "reachable"),
    [(5, 0.05, False), (6, 0.05, True), (6, 0.05 / 3, False), (7, 0.05 / 3, True)],
)
def test_an_interval_that_cannot_be_reached_is_none(n: int, alpha: float, reachable: bool) -> None:
    assert (interval([0.01 * i for i in range(1, n + 1)], alpha) is not None) == reachable


@pytest.mark.parametrize("n", [6, 9, 14, 25, 40, 120])
@pytest.mark.parametrize("rounded", [False, True])
def test_interval_and_p_value_never_disagree(n: int, rounded: bool) -> None:
    generator = np.random.default_rng(1000 + n)
    decided = 0
    for alpha in (0.2, 0.05, 0.05 / 3, 0.01):
        for _ in range(60):
            differences = generator.normal(1.4 / math.sqrt(n), 1.0, n)
            if rounded:
                differences = np.round(differences * 2) / 2
            found = interval(differences, alpha)
            excluded = found is not None and found.excludes(0.0)
            assert excluded == (p_value(differences) <= alpha)
            decided += excluded
    assert 0 < decided < 240


def test_exact_interval_is_the_inverted_test() -> None:
    """A shift is inside exactly when the enumerated test of the shifted values does not reject it."""
    differences = np.array([-0.31, 0.12, 0.45, 0.78, 1.02, 1.9, 2.2])
    found = interval(differences, 0.05)
    assert found is not None
    counts = enumerated_counts(7)
    for shift in np.linspace(-1.0, 3.0, 401) + 1e-4:
        shifted = differences - shift
        ranks = scipy_stats.rankdata(np.abs(shifted))
        smaller = int(min(ranks[shifted > 0].sum(), ranks[shifted < 0].sum()))
        rejected = 2 * sum(counts[: smaller + 1]) / 2**7 <= 0.05
        assert found.excludes(shift) == rejected


@pytest.mark.parametrize("n", [30, 60])
def test_the_exact_interval_beyond_25_blocks_inverts_scipys_test(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.1, 1.0, n)
    found = interval(differences, 0.05)
    assert found is not None
    outside = 0
    for shift in np.linspace(-0.6, 0.8, 101):
        rejected = bool(scipy_stats.wilcoxon(differences - shift, method="exact").pvalue <= 0.05)
        assert found.excludes(shift) == rejected
        outside += rejected
    assert 0 < outside < 101


@pytest.mark.parametrize("seed", range(6))
def test_with_ties_the_exact_test_is_conservative(seed: int) -> None:
    """Under every pattern of signs of the same absolute differences, p <= a is as rare as a or rarer."""
    sizes = np.random.default_rng(seed).integers(0, 4, 8) / 100.0
    p_values = [p_value(sizes * np.array(signs)) for signs in itertools.product((1.0, -1.0), repeat=8)]
    for level in set(p_values):
        assert np.mean([p <= level for p in p_values]) <= level + 1e-12


class TestInfiniteDifferences:
    """A variant whose server failed differs by minus infinity, a baseline whose server failed by infinity."""

    def test_one_sign_needs_nothing(self) -> None:
        assert list(walsh_averages([-INF, 1.0])) == [-INF, -INF, 1.0]
        assert hodges_lehmann([-INF, 1.0, 2.0]) == -INF
        assert hodges_lehmann([-INF, 1.0, 2.0, 3.0, 4.0]) == 2.0
        assert p_value([-INF] * 6) == 2 / 2**6
        # An infinite difference has the largest rank.
        assert p_value([-INF, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == p_value([-7.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def test_means_of_both_signs_are_unknown(self) -> None:
        with pytest.raises(ValueError, match="infinite differences of both signs"):
            walsh_averages([INF, -INF, 1.0])
        assert list(walsh_averages([INF, -INF, 1.0], -INF)) == [-INF, -INF, -INF, 1.0, INF, INF]
        assert list(walsh_averages([INF, -INF, 1.0], INF)) == [-INF, -INF, 1.0, INF, INF, INF]
        assert hodges_lehmann([INF, -INF], -3.0) == -3.0

    @pytest.mark.parametrize("unknown", [-INF, INF])
    def test_a_median_between_both_infinities_is_unknown(self, unknown: float) -> None:
        # Three averages: minus infinity, the unknown one, infinity.
        assert hodges_lehmann([INF, -INF], unknown) == unknown
        # Six: three times minus infinity, two unknown ones, infinity. The third and fourth are the middle.
        assert hodges_lehmann([INF, -INF, -INF], unknown) == unknown

    @pytest.mark.parametrize("seed", range(20))
    def test_whatever_the_failures_are_worth_the_bounds_hold(self, seed: int) -> None:
        """Any large values in place of the infinite ones give results between the two unknowns'."""
        random = np.random.default_rng(seed)
        values = random.normal(0.3, 0.5, 9)
        values[:2], values[2] = INF, -INF
        low, high = interval(values, 0.05, -INF), interval(values, 0.05, INF)
        assert low is not None
        assert high is not None
        for _ in range(30):
            finite = np.where(np.isinf(values), np.sign(values) * 10 ** random.uniform(1.0, 4.0, 9), values)
            assert hodges_lehmann(values, -INF) <= hodges_lehmann(finite) <= hodges_lehmann(values, INF)
            assert p_value(finite) <= max(p_value(values, -INF), p_value(values, INF))
            found = interval(finite, 0.05)
            assert found is not None
            assert low.low <= found.low
            assert found.high <= high.high


@pytest.mark.parametrize("differences", [[], [0.1, math.nan], [[0.1, 0.2], [0.3, 0.4]]])
def test_no_estimate_without_numbers(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one difference"):
        hodges_lehmann(differences)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_a_level_lies_between_0_and_1(alpha: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        interval([0.1] * 8, alpha)
    with pytest.raises(ValueError, match="between 0 and 1"):
        blocks_needed(alpha)


@pytest.mark.parametrize(
    ("sentences", "blocks"), [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (10, 9), (12, 9), (13, 10)]
)
def test_blocks_that_a_share_of_the_level_needs(sentences: int, blocks: int) -> None:
    alpha = 0.05 / sentences
    assert blocks_needed(alpha) == blocks
    # The claim itself: that many unanimous blocks have an interval, one less has none.
    assert interval([0.1 + 0.01 * block for block in range(blocks)], alpha) is not None
    assert interval([0.1 + 0.01 * block for block in range(blocks - 1)], alpha) is None


@pytest.mark.parametrize("n", [6, 7, 8])
def test_a_level_that_is_reached_exactly_is_reached(n: int) -> None:
    unanimous = [0.1 + 0.01 * block for block in range(n)]
    found = interval(unanimous, 2.0 / 2**n)
    assert p_value(unanimous) == 2.0 / 2**n
    assert found is not None
    assert (found.low, found.high) == (unanimous[0], unanimous[-1])


def test_blocks_needed_where_the_level_is_reached_exactly() -> None:
    assert [blocks_needed(2.0 / 2**n) for n in range(2, 12)] == list(range(2, 12))


def test_log_ratios_read_as_percent() -> None:
    assert percent(math.log(1.1)) == pytest.approx(10.0)
    assert percent(-math.log(2)) == pytest.approx(-50.0)
    assert (percent(-INF), percent(INF), percent(1e5)) == (-100.0, INF, INF)
