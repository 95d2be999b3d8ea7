"""Repeated intervals: exact cut-offs, and a chance of at most alpha that any look misses the true value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dbdyno.stats.family import load_levels, overall_levels
from dbdyno.stats.paired import Ratios, effect, joint_effects
from dbdyno.stats.repeated import Looks, repeated
from dbdyno.stats.repeated_joint import repeated_joint_intervals
from dbdyno.stats.signed_rank import cut_off, walsh_averages

OPEN, CLOSED = Looks(), Looks(last=20)
# The cut-offs of the specification, for 8 to 20 blocks.
SPECIFIED = [2, 3, 5, 6, 8, 11, 13, 15, 19, 22, 25, 29, 34]


def miss_rate(blocks: int, cut_offs: dict[int, int]) -> float:
    """The chance that any look misses the centre, by enumeration: orders of |difference| and signs."""
    orders = list(itertools.permutations(range(1, blocks + 1)))
    signs = np.array(list(itertools.product((0, 1), repeat=blocks)))
    missed = 0
    for order in orders:
        crossed = np.zeros(len(signs), dtype=bool)
        for count, k in cut_offs.items():
            ranks = np.argsort(np.argsort(order[:count])) + 1
            positive = signs[:, :count] @ ranks
            crossed |= np.minimum(positive, count * (count + 1) // 2 - positive) < k
        missed += int(crossed.sum())
    return missed / (len(orders) * len(signs))


def test_the_cut_offs_are_those_of_the_specification() -> None:
    # After 6 and 7 blocks nothing can be excluded, so a first look after 8 blocks has the same cut-offs.
    assert [OPEN.cut_off(blocks, 0.05, 0.05) for blocks in range(6, 21)] == [0, 0, *SPECIFIED]
    assert OPEN.blocks_needed(0.05) == 8
    assert CLOSED.cut_off(20, 0.05, 0.05) > OPEN.cut_off(20, 0.05, 0.05)


@pytest.mark.parametrize(("last", "alpha", "share"), [(None, 0.4, 1.0), (8, 0.3, 1.0), (7, 0.1, 0.8)])
def test_the_cut_offs_are_the_largest_that_the_spending_permits(
    last: int | None, alpha: float, share: float
) -> None:
    looks = Looks(last, share=share)
    cut_offs: dict[int, int] = {}
    for blocks in (6, 7):
        cut_offs[blocks] = looks.cut_off(blocks, alpha, alpha)
        assert miss_rate(blocks, cut_offs) <= alpha * looks.spent(blocks)
        one_more = {**cut_offs, blocks: cut_offs[blocks] + 1}
        assert miss_rate(blocks, one_more) > alpha * looks.spent(blocks)


def test_tests_with_a_share_of_alpha_can_decide_as_early_as_those_with_all_of_it() -> None:
    factors, level = (1.0, 0.8), 0.8 * 0.05
    assert Looks(20).blocks_needed(0.05) == 8
    assert Looks(20, factors).blocks_needed(0.05, level) == 9
    assert Looks(20, factors, share=0.8).blocks_needed(0.05, level) == 8
    shares = [Looks(20, share=0.8).spent(blocks) for blocks in range(1, 21)]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("comparisons", [1, 2, 3, 6])
@pytest.mark.parametrize("last", [None, 20])
def test_what_a_level_excludes_every_higher_level_excludes(comparisons: int, last: int | None) -> None:
    for factors in (overall_levels(comparisons, 1), overall_levels(comparisons, 3), load_levels()):
        looks, alpha = Looks(last, factors), 0.05 / comparisons
        for blocks in range(6, 17):
            cut_offs = [looks.cut_off(blocks, level, alpha) for level in looks.levels(alpha)]
            assert cut_offs == sorted(cut_offs, reverse=True)


@pytest.mark.parametrize(
    "looks", [Looks(), Looks(20), Looks(20, share=0.8), Looks(40), Looks(24, planned=24), Looks(planned=33)]
)
@pytest.mark.parametrize("noise", ["normal", "cauchy"])
def test_few_runs_miss_the_true_value_at_any_of_forty_looks(looks: Looks, noise: str) -> None:
    random, runs, missed, blocks = np.random.default_rng(5), 600, 0, min(40, looks.last or 40)
    for _ in range(runs):
        values = random.standard_normal(blocks) if noise == "normal" else random.standard_cauchy(blocks)
        one = repeated(list(values), list(values), 0.05, looks)
        assert one.interval is not None
        p_value = min(one.p_above, one.p_below)
        missed += p_value <= 0.05
        assert one.interval.excludes(0.0) == (p_value <= 0.05)
    assert missed / runs <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)


def test_an_interval_only_gets_narrower_with_more_blocks() -> None:
    values = list(np.random.default_rng(6).normal(1.0, 1.0, 45))
    last = (-math.inf, math.inf)
    for blocks in range(8, 46):
        interval = repeated(values[:blocks], values[:blocks], 0.05, OPEN).interval
        assert interval is not None
        assert last[0] <= interval.low <= interval.high <= last[1]
        last = (interval.low, interval.high)
    # Beyond the exact distribution the next look is after 25 blocks.
    assert repeated(values[:24], values[:24], 0.05, OPEN) == repeated(values[:20], values[:20], 0.05, OPEN)


@pytest.mark.parametrize("last", [None, 24])
def test_there_is_a_look_at_the_planned_end_which_is_paid_for(last: int | None) -> None:
    looks = Looks(last, planned=24)
    assert looks.counts(24)[-2:] == [20, 24]
    assert [looks.cut_off(blocks, 0.05, 0.05) > 0 for blocks in (21, 22, 23, 24)] == [False] * 3 + [True]
    level = 0.05 * (looks.spent(24) - looks.spent(20))
    assert looks.cut_off(24, 0.05, 0.05) == cut_off(24, level, 0.0)
    assert looks.half_width(24, 0.05) <= looks.half_width(20, 0.05)
    # A later top-up pays for the increment since then.
    if last is None:
        assert looks.counts(30)[-3:] == [24, 25, 30]
        assert looks.cut_off(25, 0.05, 0.05) == cut_off(25, 0.05 * (looks.spent(25) - looks.spent(24)), 0.0)


def test_looks_that_contradict_each_other_leave_the_latest_interval() -> None:
    values = [10.0 + 0.01 * index for index in range(8)] + [-10.0 - 0.01 * index for index in range(42)]
    one = repeated(values, values, 0.05, OPEN)
    averages = walsh_averages(values)
    k = OPEN.cut_off(50, 0.05, 0.05)
    assert one.interval is not None
    assert (one.interval.low, one.interval.high) == (averages[k - 1], averages[-k])


def test_failures_of_servers_and_bounds_keep_their_meaning() -> None:
    lows = [-math.inf] * 2 + [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    highs = [-math.inf] * 2 + [0.1, 0.2, 0.3, 0.4, math.inf, 0.6, 0.7, 0.8]
    one = repeated(lows, highs, 0.05, OPEN)
    assert one.interval is not None
    assert (one.interval.low, one.interval.high) == (-math.inf, math.inf)
    assert (one.p_above, one.p_below) == (1.0, 1.0)


def test_a_direction_that_the_estimate_contradicts_is_no_result() -> None:
    """A comparison that has the budget of another one: level 0.04, and an interval at 0.025."""
    looks, contradicted = Looks(factors=(1.6, 1.0)), 0
    random = np.random.default_rng(0)
    for _ in range(400):
        values = [*random.normal(-0.03, 0.03, 8), *random.normal(0.06, 0.03, 7)]
        ratios = Ratios(dict(enumerate(values)), dict(enumerate(values)))
        result, found = repeated(values, values, 0.025, looks), effect(ratios, 0.025, looks)
        assert found is not None
        contradicted += result.p_below < 1.0 and found.effect_percent > 0.0
        assert found.p_value == (result.p_above if found.effect_percent > 0.0 else result.p_below)
    assert contradicted


def test_the_estimate_of_an_effect_lies_in_its_interval() -> None:
    # The first eight blocks exclude what the later ones suggest.
    values = [0.10, 0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17] + [0.02] * 12
    ratios = Ratios(dict(enumerate(values)), dict(enumerate(values)))
    one = effect(ratios, looks=OPEN)
    assert one is not None
    assert one.interval_percent is not None
    assert one.interval_percent[0] <= one.effect_percent <= one.interval_percent[1]
    assert one.interval_percent[0] > 10.0


def test_a_test_against_another_value_than_zero() -> None:
    values = dict(enumerate(np.log(np.linspace(0.95, 0.99, 12))))
    for looks in (None, OPEN):
        lost_at_most_10, lost_at_most_3 = (
            effect(Ratios(values, values).against(change), looks=looks) for change in (-10.0, -3.0)
        )
        assert lost_at_most_10 is not None
        assert lost_at_most_3 is not None
        assert lost_at_most_10.is_significant
        assert lost_at_most_10.p_value <= 0.05 < lost_at_most_3.p_value


def rows(random: np.random.Generator, blocks: int, loads: int = 3) -> list[list[float]]:
    """Differences of equal variants: those of one block are correlated."""
    values: list[list[float]] = (
        random.standard_normal((loads, blocks)) + random.standard_normal(blocks)
    ).tolist()
    return values


@pytest.mark.parametrize("looks", [OPEN, Looks(last=9)])
def test_of_one_row_no_more_patterns_are_rejected_than_may_be_spent(looks: Looks) -> None:
    sizes = np.random.default_rng(7).lognormal(0.0, 1.0, 9)
    patterns = [np.array((1.0, *signs)) for signs in itertools.product((-1.0, 1.0), repeat=8)]
    rejected = 0
    for signs in patterns:
        (one,) = repeated_joint_intervals([list(sizes * signs)], 0.2, looks)
        assert one is not None
        assert (one.p_value <= 0.2) == (not one.low <= 0.0 <= one.high)
        rejected += one.p_value <= 0.2
    assert 0.7 * 0.2 * looks.spent(9) < rejected / len(patterns) <= 0.2 * looks.spent(9)


def test_few_runs_miss_the_true_value_at_any_load_and_look() -> None:
    random, runs, missed = np.random.default_rng(8), 80, 0
    effects = np.array([[0.0], [3.0], [-1.0]])
    for _ in range(runs):
        found = repeated_joint_intervals((effects + rows(random, 15)).tolist(), 0.05, OPEN)
        missed += any(
            one is None or not one.low <= truth <= one.high
            for one, truth in zip(found, effects[:, 0], strict=True)
        )
    assert missed / runs <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)


def test_joint_intervals_agree_with_their_p_values_and_get_narrower() -> None:
    looks, random = Looks(None, load_levels()), np.random.default_rng(9)
    for shift in (0.0, 1.5, 4.0):
        values = np.array(rows(random, 24)) + shift
        before = [(-math.inf, math.inf)] * 3
        for blocks in (8, 9, 12, 13, 14, 20, 24):
            found = repeated_joint_intervals(values[:, :blocks].tolist(), 0.05, looks)
            for index, one in enumerate(found):
                assert one is not None
                assert (one.p_value <= 0.05) == (not one.low <= 0.0 <= one.high)
                assert before[index][0] <= one.low + 1e-4
                assert one.high - 1e-4 <= before[index][1]
                before[index] = (one.low, one.high)


def test_too_few_blocks_have_no_joint_interval_and_missing_ones_are_left_out() -> None:
    values = rows(np.random.default_rng(10), 12)
    assert repeated_joint_intervals([row[:7] for row in values], 0.05, OPEN) == [None] * 3
    values[1][3] = math.nan
    found = repeated_joint_intervals(values, 0.05, OPEN)
    assert all(one is not None and math.isfinite(one.low) and math.isfinite(one.high) for one in found)
    constant = repeated_joint_intervals([[0.5] * 10, values[0][:10]], 0.05, OPEN)
    assert constant[0] is not None
    assert constant[0].low == pytest.approx(0.5, abs=1e-6)
    assert constant[0].high == pytest.approx(0.5, abs=1e-6)


def test_an_infinite_difference_counts_as_a_large_one_at_every_look() -> None:
    random = np.random.default_rng(12)
    others = np.array(rows(random, 10, 29)) * 0.01
    clear = [-0.3 + 0.01 * value for value in random.standard_normal(10)]
    clear[2] = -math.inf
    found = repeated_joint_intervals([*others.tolist(), clear], 0.05, OPEN)[-1]
    assert found is not None
    assert found.p_value <= 0.05
    assert found.high < -0.1
    sign_less = repeated_joint_intervals([[*clear[:2], math.inf, *clear[3:]]], 0.05, OPEN)[0]
    assert sign_less is not None
    assert sign_less.p_value == 1.0


def test_blocks_that_were_repeated_keep_their_place_among_the_looks() -> None:
    """Block 20 repeats block 2, which one of the loads lacks."""
    random = np.random.default_rng(11)
    order = [0, 1, 20, *range(3, 14)]
    full = dict(zip(order, rows(random, 14, 1)[0], strict=True))
    less = {block: value for block, value in full.items() if block != 20}
    renamed = [{order.index(block): value for block, value in one.items()} for one in (less, full)]
    assert joint_effects([Ratios(one, one) for one in (less, full)], looks=OPEN) == joint_effects(
        [Ratios(one, one) for one in renamed], looks=OPEN
    )
