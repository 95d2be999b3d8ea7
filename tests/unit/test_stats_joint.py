"""The inverted joint sign-flip test against a brute-force computation, and its error rate in simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dbdyno.stats.joint import EXACT_BLOCKS, FAR, JointInterval, finite_row, joint_intervals

Array = NDArray[np.float64]


def joint(rows: Array, alpha: float = 0.05) -> list[JointInterval]:
    """The intervals, all of which are there."""
    found = joint_intervals(rows.tolist(), alpha)
    assert all(one is not None for one in found)
    return [one for one in found if one is not None]


def by_brute_force(rows: Array, level: int, theta: float) -> float:
    """p at theta by its definition: every pattern of signs, the textbook's t, missing blocks left out."""
    shifted = rows - np.nanmean(rows, axis=1, keepdims=True)
    shifted[level] = rows[level] - theta

    def largest(values: Array) -> float:
        present = values[~np.isnan(values)]
        spread = present.std(ddof=1)
        if spread < 1e-12:
            return math.inf if abs(present.mean()) > 1e-12 else 0.0
        return float(abs(present.mean()) / (spread / math.sqrt(present.size)))

    seen = largest(shifted[level])
    patterns = itertools.product((1.0, -1.0), repeat=rows.shape[1])
    reached = [
        max(largest(row * np.array(signs)) for row in shifted) >= seen * (1.0 - 1e-9) for signs in patterns
    ]
    return float(np.mean(reached))


def noisy(levels: int, blocks: int, seed: int) -> Array:
    """Levels that share what a block does to all of them; effects of 3, 2, 1 … standard deviations."""
    random = np.random.default_rng(seed)
    common = random.normal(0.0, 0.02, blocks)
    effects = 0.03 * np.arange(levels, 0, -1)[:, None] * random.choice([-1.0, 1.0])
    return np.asarray(effects + common + random.normal(0.0, 0.02, (levels, blocks)))


@pytest.mark.parametrize(("levels", "blocks"), [(1, 6), (2, 6), (3, 7), (4, 8)])
def test_p_values_are_those_of_brute_force(levels: int, blocks: int) -> None:
    rows = noisy(levels, blocks, levels)
    for level, found in enumerate(joint(rows)):
        assert found.p_value == pytest.approx(by_brute_force(rows, level, 0.0))


@pytest.mark.parametrize(
    ("levels", "blocks", "alpha"), [(1, 6, 0.05), (2, 7, 0.05), (3, 7, 0.1), (2, 8, 0.02)]
)
def test_the_interval_holds_the_values_that_brute_force_does_not_reject(
    levels: int, blocks: int, alpha: float
) -> None:
    rows = noisy(levels, blocks, 10 + levels)
    for level, found in enumerate(joint(rows, alpha)):
        width = found.high - found.low
        for theta in np.linspace(found.low - width, found.high + width, 41):
            inside = bool(found.low <= theta <= found.high)
            assert (by_brute_force(rows, level, float(theta)) > alpha) == inside
        # The ends themselves, to a millionth of the width.
        for end, outwards in ((found.low, -1e-6), (found.high, 1e-6)):
            assert by_brute_force(rows, level, end + outwards * width) <= alpha
            assert by_brute_force(rows, level, end - outwards * width) > alpha


@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_a_level_lacks_are_left_out_of_that_level_alone(seed: int) -> None:
    rows = noisy(3, 7, 20 + seed)
    rows[1, seed] = math.nan
    found = joint(rows)
    for level, one in enumerate(found):
        assert one.p_value == pytest.approx(by_brute_force(rows, level, 0.0))
        for theta in (one.low - 0.001, one.low + 0.001, one.high - 0.001, one.high + 0.001):
            inside = bool(one.low <= theta <= one.high)
            assert (by_brute_force(rows, level, theta) > 0.05) == inside


def test_a_level_with_five_blocks_has_no_interval_and_the_others_have_theirs() -> None:
    rows = noisy(3, 8, 3)
    rows[2, :3] = math.nan
    found = joint_intervals(rows.tolist(), 0.05)
    assert found[2] is None
    assert all(one is not None and one.p_value <= 0.05 for one in found[:2])


def test_six_blocks_are_enough_for_ten_levels() -> None:
    random = np.random.default_rng(1)
    rows = -0.3 + random.normal(0.0, 0.01, (10, 6))
    assert all(one.high < 0.0 and one.p_value == 1 / 2**5 for one in joint(rows))
    assert joint_intervals(rows[:, :5].tolist(), 0.05) == [None] * 10


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_levels_does_not_matter(seed: int) -> None:
    rows = noisy(5, 8, seed)
    order = np.random.default_rng(seed).permutation(5)
    found, shuffled = joint(rows), joint(rows[order])
    for position, level in enumerate(order):
        assert shuffled[position].p_value == found[level].p_value
        assert shuffled[position].low == pytest.approx(found[level].low, rel=1e-9)
        assert shuffled[position].high == pytest.approx(found[level].high, rel=1e-9)


def test_levels_with_the_same_numbers_have_the_same_interval() -> None:
    # Holm's procedure gives the first of them a wider one than the fifth.
    row = noisy(1, 8, 4)[0]
    assert len({(one.low, one.high, one.p_value) for one in joint(np.array([row] * 5))}) == 1


@pytest.mark.parametrize("blocks", [6, 8, 11, 18])
@pytest.mark.parametrize("rounded", [False, True])
def test_interval_and_p_value_never_disagree(blocks: int, rounded: bool) -> None:
    random, decided = np.random.default_rng(blocks), 0
    for _ in range(15):
        rows = random.normal(0.9, 1.0, (3, blocks))
        if rounded:
            rows = np.round(2.0 * rows) / 2.0
        for alpha in (0.2, 0.05):
            for one in joint_intervals(rows.tolist(), alpha):
                if one is not None:
                    assert (one.p_value <= alpha) == (not one.low <= 0.0 <= one.high)
                    decided += one.p_value <= alpha
    assert 0 < decided < 90


def test_a_level_that_never_varies_is_known_exactly() -> None:
    rows = np.array([[0.1] * 8, noisy(1, 8, 6)[0]])
    constant, other = joint(rows)
    assert constant.low == pytest.approx(0.1, rel=1e-8)
    assert constant.high == pytest.approx(0.1, rel=1e-8)
    assert constant.p_value == 1 / 2**7
    assert other.low < other.high
    (zero,) = joint(np.zeros((1, 8)))
    assert (zero.low, zero.high, zero.p_value) == (0.0, 0.0, 1.0)


def test_ends_that_no_value_reaches_are_infinite() -> None:
    """With its mean taken off, a balanced row of two values has a pattern of equal values: its t is infinite.
    With the pattern that was seen that makes 2 of 32, more than 5 % whatever the other level is shifted by.
    """
    balanced, other = joint(np.array([[0.1, -0.1] * 3, [0.02, 0.01, 0.03, 0.05, 0.01, 0.02]]))
    assert balanced.high == pytest.approx(0.1374, abs=1e-4)
    assert balanced.low == pytest.approx(-balanced.high)
    assert (other.low, other.high, other.p_value) == (-math.inf, math.inf, 2 / 2**5)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_patterns_agree_with_all_of_them(seed: int) -> None:
    """Beyond 16 blocks 4,096 patterns are drawn: all 65,536 of 17 blocks give nearly the same p."""
    assert EXACT_BLOCKS == 16
    random = np.random.default_rng(seed)
    rows = random.normal(0.35, 1.0, (2, 17))
    numbers = np.arange(2**16)
    signs = np.column_stack([np.ones(2**16), 1.0 - 2.0 * ((numbers[:, None] >> np.arange(16)) & 1)])

    def statistics(values: Array) -> Array:
        flipped = signs * values
        return np.asarray(np.abs(flipped.mean(axis=1)) / flipped.std(axis=1, ddof=1))

    for level, found in enumerate(joint(rows)):
        own, other = statistics(rows[level]), statistics(rows[1 - level] - rows[1 - level].mean())
        exact = float(np.mean(np.maximum(own, other) >= own[0] * (1.0 - 1e-9)))
        assert 0.005 < exact < 1.0
        assert found.p_value == pytest.approx(exact, abs=4.0 * math.sqrt(exact * (1.0 - exact) / 4096))
    assert joint(rows) == joint(rows)


def test_edges() -> None:
    assert joint_intervals([], 0.05) == []
    assert joint_intervals([[], []], 0.05) == [None, None]
    assert joint_intervals([[math.nan] * 8, [0.1] * 8], 0.05)[0] is None
    with pytest.raises(ValueError, match="one difference per block"):
        joint_intervals([[0.1, 0.2], [0.1]], 0.05)


def test_an_infinite_value_counts_as_a_large_one_of_its_sign() -> None:
    """As the largest, and at least as twice the mean: so the largest rank is to the mean rank."""
    assert finite_row(np.array([0.1, -0.5, math.inf, math.nan])).tolist()[:3] == [0.1, -0.5, 0.6]
    assert finite_row(np.array([0.1, -0.9, 0.1, -math.inf])).tolist() == [0.1, -0.9, 0.1, -0.9]
    assert finite_row(np.array([-math.inf] * 3)).tolist() == [-FAR] * 3
    row = np.array([0.3, -0.2, math.inf, -math.inf])
    assert finite_row(-row).tolist() == (-finite_row(row)).tolist()
    # Among exact rows, one with a failure among clear differences is as significant as the others.
    clear = [-0.30, -0.31, -0.29, -0.32, -0.28, -0.30, -0.31, -math.inf]
    found = joint(np.vstack([noisy(29, 8, 5) * 0.1, [clear]]))
    assert found[-1].p_value == 1 / 2**7
    assert found[-1].high < -0.1
    # If the failure contradicts them, it weighs as much as in the signed-rank test.
    assert joint(np.array([[*clear[:-1], math.inf]]))[0].p_value > 0.1


@pytest.mark.parametrize(
    ("heavy", "effects"),
    [
        pytest.param(False, (0.0, 0.0, 0.0), id="normal, nothing differs"),
        pytest.param(False, (-0.2, 0.05, 0.0), id="normal, two differ"),
        pytest.param(True, (-0.2, 0.05, 0.0), id="heavy tails, two differ"),
    ],
)
def test_all_intervals_of_an_experiment_hold_together(heavy: bool, effects: tuple[float, ...]) -> None:
    random, covered, count = np.random.default_rng(17), 0, 400
    truths = np.array(effects)[:, None]
    for _ in range(count):
        draw = random.standard_t(3, (4, 8)) if heavy else random.normal(size=(4, 8))
        # What meets a block meets all its levels; the third level is five times as noisy.
        rows = truths + 0.03 * (0.5 * draw[3] + draw[:3] * np.array([[1.0], [1.0], [5.0]]))
        covered += all(one.low <= truth <= one.high for one, truth in zip(joint(rows), effects, strict=True))
    # Three standard errors below 95 %; and not so wide that nothing is ever missed.
    assert 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / count) <= covered / count < 1.0
