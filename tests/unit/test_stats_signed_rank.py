"""The signed-rank machinery against independent implementations and complete enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dbdyno.stats.signed_rank import (
    EXACT_MAX,
    hodges_lehmann,
    interval,
    log_ratios,
    null_counts,
    p_value,
    percent,
    walsh_averages,
)


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


@pytest.mark.parametrize("n", [5, 6, 8, 11, 19, 25])
def test_exact_p_values_equal_scipys(n: int) -> None:
    generator = np.random.default_rng(n)
    for shift in (0.0, 0.3, 1.5):
        differences = generator.normal(shift, 1.0, n)
        assert p_value(differences) == pytest.approx(
            scipy_stats.wilcoxon(differences, method="exact").pvalue, rel=1e-12
        )


@pytest.mark.parametrize("n", [26, 40, 120])
def test_approximate_p_values_equal_scipys(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.2, 1.0, n)
    expected = scipy_stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert p_value(differences) == pytest.approx(expected, rel=1e-9)


def test_ties_lessen_the_variance_as_in_scipy() -> None:
    differences = np.concatenate([np.tile([0.5, 1.0, 1.5, -0.6], 10), [0.2]])
    expected = scipy_stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert p_value(differences) == pytest.approx(expected, rel=1e-9)
    # The same without the ties' share of the variance would be larger.
    spread = differences + np.linspace(0, 1e-6, differences.size)
    assert p_value(spread) > p_value(differences)


def test_averages_of_zero_count_against_the_result() -> None:
    differences = np.concatenate([np.tile([0.5, 1.0, -0.5], 12)])
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


@pytest.mark.parametrize("n", [6, 9, 14, 25, 26, 40])
@pytest.mark.parametrize("rounded", [False, True])
def test_interval_and_p_value_never_disagree(n: int, rounded: bool) -> None:
    generator = np.random.default_rng(1000 + n)
    decided = 0
    for alpha in (0.2, 0.05, 0.05 / 3, 0.01):
        for _ in range(60):
            differences = generator.normal(0.35, 1.0, n)
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


def test_log_ratios_are_antisymmetric_and_read_as_percent() -> None:
    forward, back = log_ratios([190.3, 100.0], [172.8, 110.0]), log_ratios([172.8, 110.0], [190.3, 100.0])
    assert list(forward) == [-value for value in back]
    assert percent(forward[1]) == pytest.approx(10.0)
    assert percent(-math.log(2)) == pytest.approx(-50.0)


@pytest.mark.parametrize("pair", [([0.0], [1.0]), ([1.0], [math.nan]), ([1.0, 2.0], [1.0])])
def test_no_ratio_without_two_positive_values(pair: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match=r"ratio|pairs"):
        log_ratios(*pair)
