"""Histograms and percentiles against the raw values they were made of."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from dbdyno.stats.histogram import HIGHEST_US, Percentile, bucket_lower_us, bucket_width_us, merge, percentile


def counted(values: np.ndarray) -> list[list[int]]:
    counts: dict[int, int] = {}
    for value in values:
        lower = bucket_lower_us(int(value))
        counts[lower] = counts.get(lower, 0) + 1
    return [[lower, count] for lower, count in sorted(counts.items())]


@pytest.mark.parametrize(
    ("value", "lower", "width"),
    [
        (0, 0, 1),
        (1, 1, 1),
        (2047, 2047, 1),
        (2048, 2048, 2),
        (2049, 2048, 2),
        (4095, 4094, 2),
        (4097, 4096, 4),
        (1_000_000, 999_936, 512),
        (HIGHEST_US, 3_598_712_832, 2_097_152),
    ],
)
def test_bucket_rule(value: int, lower: int, width: int) -> None:
    assert bucket_width_us(value) == width
    assert bucket_lower_us(value) == lower
    assert lower <= value < lower + width
    assert lower % width == 0


def test_values_above_the_highest_share_its_bucket() -> None:
    assert bucket_lower_us(HIGHEST_US * 5) == bucket_lower_us(HIGHEST_US)


def test_merge_adds_equal_buckets_and_sorts() -> None:
    merged = merge([[[5, 2], [7, 1]], [], [[1, 1], [5, 3]]])
    assert list(merged.items()) == [(1, 1), (5, 5), (7, 1)]


@pytest.mark.parametrize("percent", [0, 1, 50, 90, 95, 99, 99.9, 100])
@pytest.mark.parametrize("seed", [1, 2])
def test_percentiles_agree_with_the_raw_values(percent: float, seed: int) -> None:
    values = np.floor(np.random.default_rng(seed).lognormal(9.0, 1.2, 20_011))
    halves = merge([counted(values[:7000]), counted(values[7000:])])
    raw = float(np.percentile(values, percent, method="inverted_cdf"))
    found = percentile(halves, percent, float(values.min()), float(values.max()))
    assert found is not None
    assert not found.censored
    assert abs(found.value_us - raw) <= max(0.5, bucket_width_us(int(raw)) / 2)


def test_percentile_is_held_within_what_was_seen() -> None:
    assert percentile({4096: 1}, 50, 4096.2, 4096.9) == Percentile(4096.9)
    assert percentile({100: 10}, 95, 100.7, 100.9) == Percentile(100.7)
    assert percentile({}, 95, 0.0, 0.0) is None


def test_ranks_by_hand() -> None:
    histogram = dict.fromkeys(range(1, 101), 1)
    assert percentile(histogram, 95, 0, 1000) == Percentile(95.0)
    assert percentile(histogram, 95.1, 0, 1000) == Percentile(96.0)
    assert percentile(histogram, 0, 0, 1000) == Percentile(1.0)
    with pytest.raises(ValueError, match="must be from 0 to 100"):
        percentile(histogram, 101, 0, 1000)


def test_a_percentile_that_the_censored_can_change_is_a_lower_bound() -> None:
    known = dict.fromkeys(range(1, 9), 1)
    # Ten values, two of which are at least 5 and at least 100.
    found = {percent: percentile(known, percent, 1, 8, {5: 1, 100: 1}) for percent in (50, 90, 99)}
    assert found == {50: Percentile(5.0), 90: Percentile(8.0, True), 99: Percentile(100.0, True)}
    assert percentile({}, 50, 0, 0, {7: 3}) == Percentile(7.0, True)


def test_a_percentile_is_unknown_only_if_the_censored_reach_its_rank() -> None:
    values = np.floor(np.random.default_rng(3).lognormal(9.0, 0.6, 10_000))
    known = merge([counted(values)])

    def with_censored(number: int, percent: float = 99) -> Percentile:
        found = percentile(known, percent, values.min(), values.max(), {1: number})
        assert found is not None
        return found

    without = percentile(known, 99, values.min(), values.max())
    assert without is not None
    # One transaction that had waited for 1 µs moves each percentile by one value, not to infinity.
    assert without.value_us == pytest.approx(with_censored(1).value_us, rel=0.01)
    assert not any(with_censored(1, percent).censored for percent in (50, 90, 95, 99))
    # The standard error of rank 9,900 of 10,000 is 9.95.
    assert [with_censored(number).censored for number in (9, 10)] == [False, True]
    # 101 transactions are beyond the 99th percentile of 10,101.
    some, most, more = map(with_censored, (50, 101, 102))
    assert some.censored
    assert without.value_us < some.at_most_us < most.at_most_us
    assert most.at_most_us == pytest.approx(values.max(), rel=0.001)
    assert (more.censored, more.at_most_us) == (True, math.inf)


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_is_that_of_every_completion(seed: int) -> None:
    random = np.random.default_rng(seed)
    known = random.integers(1, 12, random.integers(1, 8)).tolist()
    bounds = random.integers(1, 12, random.integers(0, 4)).tolist()
    for percent in (50, 90, 99):
        reached = {
            float(np.percentile([*known, *completion], percent, method="inverted_cdf"))
            for completion in itertools.product(*([*range(bound, 13), 1000] for bound in bounds))
        }
        total, low = len(known) + len(bounds), min(reached)
        error = math.sqrt(total * percent / 100 * (1 - percent / 100))
        is_bound = max(reached) == 1000 or sum(bound <= low for bound in bounds) > error
        expected = Percentile(low)
        if is_bound and len(reached) > 1:
            at_most_us = max(reached) if max(reached) < 1000 else math.inf
            expected = Percentile(low, censored=True, at_most_us=at_most_us)
        assert percentile(Counter(known), percent, 1, 12, Counter(bounds)) == expected
