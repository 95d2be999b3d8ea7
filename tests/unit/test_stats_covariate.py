"""The load of other processes in paired differences: what is taken out, what is left, and what is unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats.covariate import Adjusted, Rule, adjust
from dbdyno.stats.signed_rank import interval

HARM = -5.0
Values = list[float]


def adjusted(differences: Values, before: Values, after: Values, harm_max: float = HARM) -> Adjusted:
    by_block = dict(enumerate(differences))
    return adjust(by_block, by_block, dict(enumerate(zip(before, after, strict=True))), harm_max)


def ends(found: Adjusted) -> tuple[float, float]:
    low, high = interval(list(found.lows.values()), 0.05), interval(list(found.highs.values()), 0.05)
    assert low is not None
    assert high is not None
    return low.low, high.high


def test_equal_shares_change_nothing() -> None:
    differences = [0.1, -0.2, 0.3, math.inf, 0.0, 0.2]
    for share in (0.0, 0.25):
        found = adjusted(differences, [share] * 6, [share + 0.004] * 6)
        assert (found.rule, list(found.lows.values())) == (Rule.EQUAL, differences)
        assert found.lows == found.highs


def test_bursts_are_taken_out_by_the_slope_of_the_other_blocks() -> None:
    differences = [0.1, 0.12, 0.08, 0.11, 0.09, 0.1, 0.1 - 0.3, 0.1 + 0.3]
    found = adjusted(differences, [0.0] * 7 + [0.2], [0.0] * 6 + [0.2, 0.0])
    assert found.rule == Rule.BURSTS
    assert list(found.lows.values()) == pytest.approx([*differences[:6], 0.1, 0.1], abs=0.01)
    # One burst alone has no slope to be adjusted by. More than a limit is no cost of a burst.
    one = adjusted(differences[:7], [0.0] * 7, [0.0] * 6 + [0.2])
    assert (one.rule, one.lows[6]) == (Rule.UNEVEN, differences[6])
    limited = adjusted([*differences[:6], -2.9, 3.1], [0.0] * 7 + [0.2], [0.0] * 6 + [0.2, 0.0])
    assert limited.lows[6] == pytest.approx(-1.9)
    # What makes a variant faster is no harm.
    helping = adjusted([*differences[:6], 0.4, -0.2], [0.0] * 7 + [0.2], [0.0] * 6 + [0.2, 0.0])
    assert list(helping.lows.values()) == [*differences[:6], 0.4, -0.2]


def test_a_variant_with_more_load_is_known_within_bounds() -> None:
    differences = [-0.09 + 0.01 * (block % 3) for block in range(8)]
    found = adjusted(differences, [0.03] * 8, [0.09] * 8)
    assert (found.rule, list(found.lows.values())) == (Rule.BOUNDED, differences)
    assert list(found.highs.values()) == pytest.approx([one + 0.3 for one in differences])
    low, high = ends(found)
    assert low < 0.0 < high
    # Of a metric that other processes raise, the bounds are on the other side.
    latency = adjusted([0.09] * 8, [0.03] * 8, [0.09] * 8, harm_max=25.0)
    assert [latency.lows[0], latency.highs[0]] == pytest.approx([0.09 - 1.5, 0.09])
    assert ends(adjusted([one - 1.0 for one in differences], [0.03] * 8, [0.09] * 8))[1] < 0.0


def test_load_that_slows_only_one_variant_down_gives_bounds() -> None:
    random = np.random.default_rng(3)
    before, after = 0.25 * (random.random((2, 20)) < 0.3)
    differences = random.normal(0.0, 0.02, 20) - 1.5 * after
    found = adjusted(differences.tolist(), before.tolist(), after.tolist())
    assert found.rule == Rule.BOUNDED
    low, high = ends(found)
    assert low < 0.0 < high


def test_bounds_are_as_far_as_the_differences_permit() -> None:
    """Load slows only one variant down, by 1.5 per share: the bounds contain that cost, and leave out most of
    what it could be.
    """
    random, contained, widths = np.random.default_rng(6), 0, []
    for _ in range(20):
        before, after = 0.25 * (random.random((2, 12)) < 0.3)
        differences = random.normal(0.0, 0.02, 12) - 1.5 * after
        found = adjusted(differences.tolist(), before.tolist(), after.tolist())
        if found.rule == Rule.BOUNDED and not np.allclose(after, 0.0):
            highs = np.array(list(found.highs.values()))
            contained += bool(np.all(highs + 0.001 >= differences + 1.5 * after))
            widths += [float(slope) for slope in ((highs - differences)[after > 0.0] / 0.25)]
    assert len(widths) > 30
    assert contained >= 15
    assert np.median(widths) == pytest.approx(1.7, abs=0.2)


def test_what_all_blocks_have_in_common_may_have_cost_the_most() -> None:
    """The slope shows only what x costs where it differs between the blocks."""
    x = np.array([0.04, 0.08] * 6)
    differences = 0.001 * np.array([1.0, 2.0, 3.0] * 4) - 1.5 * x
    found = adjusted(differences.tolist(), [0.0] * 12, x.tolist())
    assert found.rule == Rule.BOUNDED
    highs = np.array(list(found.highs.values())) - differences
    assert highs.mean() == pytest.approx(-HARM * 0.06, abs=0.001)
    assert (highs[1] - highs[0]) / 0.04 == pytest.approx(1.5, abs=0.1)


def test_load_in_most_blocks_stays_a_part_of_the_noise() -> None:
    random = np.random.default_rng(4)
    before, after = random.uniform(0.0, 0.3, (2, 20))
    differences = random.normal(0.0, 0.02, 20) - 1.5 * (after - before)
    found = adjusted(differences.tolist(), before.tolist(), after.tolist())
    assert (found.rule, list(found.lows.values())) == (Rule.UNEVEN, differences.tolist())


@pytest.mark.parametrize("seed", range(40))
def test_exchanging_the_variants_exchanges_the_signs(seed: int) -> None:
    random = np.random.default_rng(seed)
    before, after = 0.25 * (random.random((2, 12)) < random.choice([0.1, 0.2, 0.6])) * random.random((2, 12))
    differences = random.normal(0.1, 0.05, 12) - 1.5 * (after - before)
    differences[0] = random.choice([differences[0], math.inf])
    one = adjusted(differences.tolist(), before.tolist(), after.tolist())
    other = adjusted((-differences).tolist(), after.tolist(), before.tolist())
    assert one.rule == other.rule
    assert list(one.lows.values()) == pytest.approx([-high for high in other.highs.values()])
    assert list(one.highs.values()) == pytest.approx([-low for low in other.lows.values()])


def test_blocks_without_shares_and_infinite_differences_stay() -> None:
    by_block = dict(enumerate([0.1, 0.1, 0.1, 0.1, -0.2, 0.4, math.inf, 0.1]))
    shares = {3: (0.0, 0.0), 4: (0.0, 0.2), 5: (0.2, 0.0), 6: (0.0, 0.1)}
    found = adjust(by_block, by_block, shares, HARM)
    assert found.rule == Rule.BURSTS
    assert [found.lows[block] for block in (0, 1, 2, 3, 7)] == [0.1] * 5
    assert found.lows[6] == math.inf
    every = dict.fromkeys(range(8), -math.inf)
    assert adjust(every, every, {0: (0.0, 0.2)}, HARM).lows == every
    assert adjust({}, {}, {}, HARM).lows == {}


def test_a_test_of_adjusted_differences_keeps_its_level() -> None:
    random, wrong, narrower, count = np.random.default_rng(5), 0, 0, 400
    for _ in range(count):
        before, after = 0.25 * (random.random((2, 8)) < 0.15)
        differences = random.normal(0.0, 0.03, 8) - 1.5 * (after - before)
        low, high = ends(adjusted(differences.tolist(), before.tolist(), after.tolist()))
        wrong += not low <= 0.0 <= high
        plain = interval(differences, 0.05)
        assert plain is not None
        narrower += high - low < 0.7 * (plain.high - plain.low)
    assert wrong / count <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / count)
    assert narrower / count > 0.5
