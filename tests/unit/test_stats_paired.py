"""From log ratios to effects: by hand, and by bounds that hold for every value within them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from dbdyno.stats.joint import joint_intervals
from dbdyno.stats.paired import ALPHA, Bound, Effect, Ratios, effect, joint_effects, mean_ratios
from dbdyno.stats.signed_rank import hodges_lehmann, interval, p_value, percent

INF = math.inf
EIGHT = [-0.10, -0.11, -0.09, -0.12, -0.08, -0.105, -0.095, -0.115]
AROUND_ZERO = [0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.015, -0.015]


def ratios(lows: Sequence[float], highs: Sequence[float] | None = None) -> Ratios:
    """Ratios of blocks 0, 1, 2 …"""
    return Ratios(dict(enumerate(lows)), dict(enumerate(lows if highs is None else highs)))


def effect_of(lows: Sequence[float], highs: Sequence[float] | None = None, alpha: float = ALPHA) -> Effect:
    """The effect, which is there."""
    found = effect(ratios(lows, highs), alpha)
    assert found is not None
    return found


def ends(found: Effect | None) -> tuple[float, float]:
    """The interval, which is there."""
    assert found is not None
    assert found.interval_percent is not None
    return found.interval_percent


class TestOneLevel:
    def test_estimate_interval_and_p_value_are_those_of_the_signed_rank(self) -> None:
        found, expected = effect_of(EIGHT, alpha=0.02), interval(EIGHT, 0.02)
        assert expected is not None
        assert found == Effect(
            effect_percent=percent(hodges_lehmann(EIGHT)),
            interval_percent=(percent(expected.low), percent(expected.high)),
            alpha=0.02,
            p_value=p_value(EIGHT),
            blocks=8,
        )
        assert found.is_significant
        assert not effect_of(AROUND_ZERO).is_significant

    def test_few_blocks_have_an_estimate_and_no_interval(self) -> None:
        found = effect_of([0.1, 0.2, 0.3, 0.4, 0.5])
        assert (found.interval_percent, found.blocks, found.is_significant) == (None, 5, False)
        assert found.effect_percent == pytest.approx(percent(0.3))
        assert found.with_zero() == found
        assert not found.lies_within(1e9)
        assert effect(ratios([])) is None

    def test_an_interval_without_a_word_is_extended_to_zero(self) -> None:
        found = effect_of(EIGHT)
        low, high = ends(found)
        assert low < high < 0.0
        assert ends(found.with_zero()) == (low, 0.0)
        assert ends(effect_of([-value for value in EIGHT]).with_zero())[0] == 0.0
        assert effect_of(AROUND_ZERO).with_zero() == effect_of(AROUND_ZERO)
        assert not found.with_zero().is_significant

    def test_within_delta_counts_both_ends_and_the_edge(self) -> None:
        found = Effect(0.5, (-2.0, 1.5), 0.05, 0.5, 8)
        assert found.lies_within(2.0)
        assert not found.lies_within(1.99)
        assert not Effect(0.5, (-1.5, 2.01), 0.05, 0.5, 8).lies_within(2.0)


class TestBounds:
    def test_equal_bounds_are_plain_differences(self) -> None:
        assert effect_of(EIGHT, EIGHT) == effect_of(EIGHT)
        assert effect_of(EIGHT).bound == Bound.EXACT
        assert ratios(EIGHT).is_exact
        assert not ratios(EIGHT, [INF, *EIGHT[1:]]).is_exact
        assert not ratios([INF] * 8).is_exact

    def test_a_variant_overwhelmed_in_every_block_differs_by_more_than_a_bound(self) -> None:
        found = effect_of([1.0] * 8, [INF] * 8)
        assert found.bound == Bound.AT_LEAST
        assert found.effect_percent == pytest.approx((math.e - 1) * 100)
        assert ends(found) == (found.effect_percent, INF)
        assert found.is_significant
        assert found.p_value == 2 / 2**8

    def test_a_baseline_overwhelmed_in_every_block_differs_by_less_than_a_bound(self) -> None:
        found = effect_of([-INF] * 8, [-1.0] * 8)
        assert found.bound == Bound.AT_MOST
        assert found.effect_percent == pytest.approx((math.exp(-1) - 1) * 100)
        assert ends(found) == (-100.0, found.effect_percent)
        assert found.is_significant

    def test_both_overwhelmed_say_nothing(self) -> None:
        found = effect_of([-INF] * 8, [INF] * 8)
        assert found.p_value == 1.0
        assert ends(found) == (-100.0, INF)
        assert not found.is_significant

    def test_a_server_that_failed_in_every_block_has_an_infinite_ratio_and_no_bound(self) -> None:
        found = effect_of([-INF] * 8)
        assert (found.effect_percent, found.bound, found.p_value) == (-100.0, Bound.EXACT, 2 / 2**8)
        assert ends(found) == (-100.0, -100.0)

    def test_two_failures_of_eight_take_the_word_away(self) -> None:
        # Without them six blocks would be unanimous.
        found = effect_of([*[0.1 + 0.01 * block for block in range(6)], -INF, -INF])
        assert found.p_value > 0.05
        assert found.effect_percent == pytest.approx(percent(0.115), abs=2.0)
        assert ends(found)[0] == -100.0

    def test_failures_of_both_variants_in_different_blocks(self) -> None:
        found = effect_of([INF, -INF, 0.1, 0.12, 0.11, 0.13, 0.09, 0.1])
        low, high = ends(found)
        assert low == -100.0
        assert high == INF
        # The median lies next to the one average that is unknown, that of both failures.
        assert found.bound == Bound.AT_LEAST
        assert found.effect_percent == pytest.approx(11.0, abs=0.5)
        assert found.p_value > 0.05

    def test_the_p_value_of_bounds_around_zero_is_1(self) -> None:
        assert effect_of([-0.1] * 8, [0.1] * 8).p_value == 1.0
        assert effect_of([0.1] * 7 + [-0.1], [0.1] * 7 + [INF]).p_value == p_value([0.1] * 7 + [-0.1])

    @pytest.mark.parametrize("seed", range(20))
    def test_every_value_within_the_bounds_keeps_within_what_is_printed(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        lows = random.normal(0.1, 0.1, 9)
        highs = lows + random.choice([0.0, 0.0, 0.3], 9)
        printed = effect_of(lows.tolist(), highs.tolist())
        low, high = ends(printed)
        for _ in range(50):
            found = effect_of(random.uniform(lows, highs).tolist())
            assert found.p_value <= printed.p_value
            assert low <= ends(found)[0] + 1e-9
            assert ends(found)[1] <= high + 1e-9
            if printed.bound == Bound.AT_LEAST:
                assert found.effect_percent >= printed.effect_percent - 1e-9


class TestMeanOverTheLevels:
    def test_one_number_per_block_that_holds_every_level(self) -> None:
        one = Ratios({0: 0.1, 1: 0.2, 2: 0.3}, {0: 0.1, 1: 0.2, 2: 0.3})
        other = Ratios({0: 0.3, 1: 0.0, 3: 0.5}, {0: 0.3, 1: 0.0, 3: 0.5})
        mean = mean_ratios([one, other])
        assert mean.lows == mean.highs == {0: pytest.approx(0.2), 1: pytest.approx(0.1)}
        assert mean_ratios([]) == Ratios({}, {})
        assert mean_ratios([one]) == one

    def test_a_failure_at_one_level_is_one_of_the_whole_block(self) -> None:
        mean = mean_ratios([ratios([0.1, -INF, INF]), ratios([0.2, 0.2, 0.2])])
        assert list(mean.lows.values()) == list(mean.highs.values()) == [pytest.approx(0.15), -INF, INF]

    def test_failures_of_both_signs_leave_the_block_open(self) -> None:
        mean = mean_ratios([ratios([-INF]), ratios([INF]), ratios([0.1])])
        assert (mean.lows, mean.highs) == ({0: -INF}, {0: INF})

    def test_bounds_stay_bounds(self) -> None:
        mean = mean_ratios([ratios([0.1], [INF]), ratios([0.3])])
        assert mean.lows[0] == pytest.approx(0.2)
        assert mean.highs == {0: INF}


class TestJointLevels:
    def test_they_are_the_inverted_joint_test(self) -> None:
        first, second = joint_effects([ratios(EIGHT), ratios(AROUND_ZERO)])
        expected = joint_intervals([EIGHT, AROUND_ZERO], ALPHA)
        for found, one, values in zip((first, second), expected, (EIGHT, AROUND_ZERO), strict=True):
            assert found is not None
            assert one is not None
            assert ends(found) == (percent(one.low), percent(one.high))
            assert (found.p_value, found.alpha, found.blocks) == (one.p_value, ALPHA, 8)
            assert found.effect_percent == pytest.approx(percent(hodges_lehmann(values)))
        assert first is not None
        assert first.is_significant

    def test_the_bounds_of_a_level_are_two_rows(self) -> None:
        lows, highs = [0.5, *[0.3] * 7], [INF, *[0.3] * 7]
        first, second, third = joint_effects([ratios(EIGHT), ratios(lows, highs), ratios(AROUND_ZERO)])
        expected = joint_intervals([EIGHT, lows, highs, AROUND_ZERO], ALPHA)
        assert all(one is not None for one in expected)
        of = [(percent(one.low), percent(one.high)) for one in expected if one]
        assert (ends(first), ends(third)) == (of[0], of[3])
        # The upper bound is unknown.
        assert ends(second) == (of[1][0], INF)
        assert second is not None
        assert expected[1] is not None
        assert (second.bound, second.alpha, second.p_value) == (Bound.EXACT, ALPHA, expected[1].p_value)
        assert second.effect_percent == pytest.approx(percent(0.3))

    def test_a_failed_trial_leaves_the_end_on_its_side_unknown(self) -> None:
        clear = [-0.30, -0.31, -0.29, -0.32, -0.28, -0.30, -0.31]
        slower, faster, equal = joint_effects(
            [
                ratios([*clear, -INF]),
                ratios([*(-value for value in clear), -INF]),
                ratios([*AROUND_ZERO[:7], -INF]),
            ]
        )
        assert slower is not None
        assert slower.is_significant
        assert ends(slower)[0] == -100.0
        for one in (faster, equal):
            assert one is not None
            assert not one.is_significant
            assert ends(one)[0] == -100.0
            assert math.isfinite(ends(one)[1])

    def test_the_p_value_of_bounds_on_both_sides_of_zero_is_1(self) -> None:
        (found,) = joint_effects([ratios([-0.2] * 8, [0.3] * 8)])
        assert found is not None
        assert found.p_value == 1.0
        assert ends(found)[0] < 0.0 < ends(found)[1]

    def test_a_level_without_blocks_takes_nothing_from_the_others(self) -> None:
        first, second = joint_effects([ratios(EIGHT), ratios([])])
        (expected,) = joint_intervals([EIGHT], ALPHA)
        assert second is None
        assert expected is not None
        assert ends(first) == (percent(expected.low), percent(expected.high))

    def test_bounds_alone(self) -> None:
        found = joint_effects([ratios([0.5] * 8, [INF] * 8)] * 2)
        assert [ends(one)[1] for one in found] == [INF, INF]
        assert joint_effects([]) == ()
        assert joint_effects([ratios([])] * 2) == (None, None)

    def test_too_few_blocks_have_no_interval(self) -> None:
        short, long = joint_effects([ratios(EIGHT[:5]), ratios(EIGHT)])
        assert short is not None
        assert (short.interval_percent, short.p_value, short.blocks) == (None, 1.0, 5)
        assert long is not None
        assert long.is_significant

    @pytest.mark.parametrize("seed", range(10))
    def test_p_value_and_interval_never_disagree(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        levels = [ratios(random.normal(0.05 * level, 0.06, 8).tolist()) for level in range(3)]
        lows = random.normal(0.3, 0.2, 8)
        levels.append(ratios(lows.tolist(), np.where(random.random(8) < 0.5, INF, lows).tolist()))
        for found in joint_effects(levels):
            assert found is not None
            assert found.is_significant == (found.p_value <= ALPHA)

    def test_the_estimate_is_clipped_into_the_interval(self) -> None:
        random, clipped = np.random.default_rng(3), 0
        for _ in range(60):
            values = np.exp(random.normal(0.0, 1.5, 8)).tolist()
            (found,) = joint_effects([ratios(values)], alpha=0.9)
            assert found is not None
            low, high = ends(found)
            assert low * (1 - 1e-9) <= found.effect_percent <= high * (1 + 1e-9)
            clipped += found.effect_percent != pytest.approx(percent(hodges_lehmann(values)))
        assert clipped > 0
