"""Effects of log ratios that are known by bounds: what is printed holds for every value within them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats.paired import Bound, curve_effect, effects
from dbdyno.stats.words import Verdict, choose

INF = math.inf


def word(interval: tuple[float, float] | None, blocks: int) -> Verdict:
    return choose(blocks=blocks, interval_percent=interval, delta_percent=2.0, higher_is_faster=False)


def test_equal_bounds_are_plain_differences() -> None:
    ratios = [0.1, 0.2, 0.15, 0.12, 0.18, 0.11]
    (plain,) = effects([ratios])
    (bounded,) = effects([ratios], upper=[ratios])
    assert plain == bounded
    assert plain is not None
    assert plain.bound == Bound.EXACT


def test_a_variant_overwhelmed_in_every_block_is_slower_by_more_than_a_bound() -> None:
    effect = curve_effect([1.0] * 8, upper=[INF] * 8)
    assert effect is not None
    assert effect.bound == Bound.AT_LEAST
    assert effect.effect_percent == pytest.approx((math.e - 1) * 100)
    assert effect.interval_percent is not None
    assert effect.interval_percent[0] == pytest.approx((math.e - 1) * 100)
    assert effect.interval_percent[1] == INF
    assert word(effect.interval_percent, 8) == Verdict.SLOWER


def test_a_baseline_overwhelmed_in_every_block_makes_the_variant_faster() -> None:
    effect = curve_effect([-INF] * 8, upper=[-1.0] * 8)
    assert effect is not None
    assert effect.bound == Bound.AT_MOST
    assert effect.effect_percent == pytest.approx((math.exp(-1) - 1) * 100)
    assert word(effect.interval_percent, 8) == Verdict.FASTER


def test_both_overwhelmed_say_nothing() -> None:
    effect = curve_effect([-INF] * 8, upper=[INF] * 8)
    assert effect is not None
    assert effect.p_value == 1.0
    assert effect.interval_percent == (-100.0, INF)
    assert word(effect.interval_percent, 8) == Verdict.NOT_DISTINGUISHABLE


@pytest.mark.parametrize("seed", range(20))
def test_every_value_within_the_bounds_keeps_within_what_is_printed(seed: int) -> None:
    random = np.random.default_rng(seed)
    lows = random.normal(0.1, 0.1, 9)
    highs = lows + random.choice([0.0, 0.0, 0.3], 9)
    (printed,) = effects([lows.tolist()], upper=[highs.tolist()])
    assert printed is not None
    assert printed.interval_percent is not None
    for _ in range(50):
        values = random.uniform(lows, highs).tolist()
        (found,) = effects([values])
        assert found is not None
        assert found.interval_percent is not None
        assert found.p_value <= printed.p_value
        # Holm's level of a single point is the same for both.
        assert printed.interval_percent[0] <= found.interval_percent[0] + 1e-9
        assert found.interval_percent[1] <= printed.interval_percent[1] + 1e-9
        if printed.bound == Bound.AT_LEAST:
            assert found.effect_percent >= printed.effect_percent - 1e-9
