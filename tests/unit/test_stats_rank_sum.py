"""The shift of two samples against scipy, complete enumeration, and numbers by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from dbdyno.decide.order_effect import EXACT_MAX, null_counts, shift

Sample = NDArray[np.float64]


def samples(first: int, second: int, seed: int) -> tuple[Sample, Sample]:
    """Two samples without ties; the first lies higher by half a standard deviation."""
    random = np.random.default_rng(seed)
    return random.normal(0.5, 1.0, first), random.normal(0.0, 1.0, second)


def enumerated_counts(small: int, large: int) -> list[int]:
    """The null distribution of U by writing down which ranks the first sample has."""
    counts = [0] * (small * large + 1)
    for ranks in itertools.combinations(range(1, small + large + 1), small):
        counts[sum(ranks) - small * (small + 1) // 2] += 1
    return counts


@pytest.mark.parametrize(("small", "large"), [(1, 1), (1, 6), (2, 3), (3, 3), (4, 4), (4, 7), (5, 6)])
def test_null_distribution_equals_enumeration(small: int, large: int) -> None:
    assert list(null_counts(small, large)) == enumerated_counts(small, large)


def test_null_distribution_is_complete_at_the_largest_exact_size() -> None:
    counts = null_counts(50, 50)
    assert EXACT_MAX == 50 * 50
    assert sum(counts) == math.comb(100, 50)
    assert counts == counts[::-1]


def test_by_hand() -> None:
    # Differences of {5, 7} and {1, 2, 4}: 1, 3, 3, 4, 5, 6.
    found = shift([5.0, 7.0], [1.0, 2.0, 4.0], 0.4)
    assert found is not None
    assert found.estimate == 3.5
    # Of the ten arrangements one has U = 0 and one U = 1: 2 * 2 / 10 <= 0.4, so the second from either end.
    assert (found.low, found.high) == (3.0, 5.0)
    assert shift([5.0, 7.0], [1.0, 2.0, 4.0], 0.05) is None


def test_four_and_four_blocks_reach_97_percent() -> None:
    first, second = samples(4, 4, 1)
    differences = np.sort((first[:, None] - second[None, :]).ravel())
    found = shift(first.tolist(), second.tolist(), 0.05)
    assert found is not None
    # 2 / 70 = 2.9 %: the outermost differences. A level of 2.8 % is out of reach.
    assert (found.low, found.high) == (differences[0], differences[-1])
    assert shift(first.tolist(), second.tolist(), 0.028) is None


@pytest.mark.parametrize("sizes", [(3, 3), (3, 4), (2, 6), (0, 5), (5, 0)])
def test_too_few_blocks_have_no_interval(sizes: tuple[int, int]) -> None:
    first, second = samples(*sizes, 2)
    assert shift(first.tolist(), second.tolist(), 0.05) is None


@pytest.mark.parametrize(("first", "second"), [(4, 4), (5, 4), (3, 9), (8, 8), (12, 10), (20, 20)])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_interval_inverts_scipys_exact_test(first: int, second: int, alpha: float) -> None:
    one, other = samples(first, second, first * second)
    found = shift(one.tolist(), other.tolist(), alpha)
    assert found is not None
    outside = 0
    for theta in np.linspace(-4.0, 5.0, 301):
        p = scipy_stats.mannwhitneyu(one - theta, other, method="exact").pvalue
        assert (theta < found.low or theta > found.high) == bool(p <= alpha)
        outside += bool(p <= alpha)
    assert 0 < outside < 301
    assert found.estimate == np.median(one[:, None] - other[None, :])


@pytest.mark.parametrize(("first", "second"), [(51, 50), (60, 60), (20, 200)])
def test_beyond_the_exact_size_the_cut_is_the_exact_one_or_one_off(first: int, second: int) -> None:
    one, other = samples(first, second, first)
    found = shift(one.tolist(), other.tolist(), 0.05)
    assert found is not None
    differences = np.sort((one[:, None] - other[None, :]).ravel())
    k = int(np.searchsorted(differences, found.low)) + 1
    below = np.cumsum(
        [float(count / math.comb(first + second, first)) for count in null_counts(first, second)]
    )
    exact = int(np.searchsorted(2.0 * below, 0.05, side="right"))
    assert exact - 1 <= k <= exact


def test_exchanging_the_samples_changes_the_sign_alone() -> None:
    one, other = (sample.tolist() for sample in samples(7, 5, 3))
    forward, back = shift(one, other, 0.05), shift(other, one, 0.05)
    assert forward is not None
    assert back is not None
    assert (forward.estimate, forward.low, forward.high) == (-back.estimate, -back.high, -back.low)


def test_coverage_is_what_the_exact_level_says() -> None:
    """8 and 8 skewed values whose true shift is 1: 95 % less three standard errors, and not 100 %."""
    random, covered, count = np.random.default_rng(8), 0, 2_000
    for _ in range(count):
        found = shift((random.exponential(size=8) + 1.0).tolist(), random.exponential(size=8).tolist(), 0.05)
        assert found is not None
        covered += found.low <= 1.0 <= found.high
    assert 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / count) <= covered / count <= 0.975


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_shift_needs_finite_values(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        shift([value, 1.0], [2.0], 0.05)
