"""The search of a bisection, and what a step says of its candidate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats.bisection import Outcome, Search, classify, direction, level_of_tests, steps_at_most
from dbdyno.stats.paired import ALPHA, Effect


def effect(low: float | None, high: float = 0.0) -> Effect:
    ends = None if low is None else (low, high)
    return Effect(effect_percent=0.0, interval_percent=ends, alpha=0.01, p_value=1.0, blocks=9)


@pytest.mark.parametrize("candidates", [*range(12), 100])
def test_a_search_finds_every_first_bad_version_in_few_steps(candidates: int) -> None:
    for first_bad in range(1, candidates + 2):
        search, steps = Search(candidates), 0
        while (candidate := search.next()) is not None:
            steps += 1
            search.apply(candidate, Outcome.LIKE_BAD if candidate >= first_bad else Outcome.LIKE_GOOD)
        assert list(search.possible()) == [first_bad]
        assert steps <= steps_at_most(candidates)
    assert steps_at_most(candidates) == math.ceil(math.log2(candidates + 1))


def test_skipped_versions_leave_a_range_and_add_no_steps() -> None:
    random = np.random.default_rng(1)
    for _ in range(300):
        candidates = int(random.integers(1, 60))
        first_bad = int(random.integers(1, candidates + 2))
        broken = {one for one in range(1, candidates + 1) if random.random() < 0.3}
        search, steps = Search(candidates), 0
        while (candidate := search.next()) is not None:
            if candidate in broken:
                search.apply(candidate, Outcome.SKIPPED)
                continue
            steps += 1
            search.apply(candidate, Outcome.LIKE_BAD if candidate >= first_bad else Outcome.LIKE_GOOD)
        possible = list(search.possible())
        assert first_bad in possible
        assert set(possible[:-1]) <= broken
        assert steps <= steps_at_most(candidates)


def test_a_step_that_cannot_tell_ends_the_search() -> None:
    search = Search(7)
    search.apply(4, Outcome.LIKE_GOOD)
    search.apply(6, Outcome.CANNOT_TELL)
    assert search.next() is None
    assert list(search.possible()) == [5, 6, 7, 8]


@pytest.mark.parametrize(("is_nearer_bad", "possible"), [(True, [1, 2]), (False, [3, 4])])
def test_between_goes_on_where_the_larger_change_is(is_nearer_bad: bool, possible: list[int]) -> None:
    search = Search(3)
    search.apply(2, Outcome.BETWEEN, is_nearer_bad=is_nearer_bad)
    assert list(search.possible()) == possible


@pytest.mark.parametrize("towards_bad", [1, -1])
def test_a_candidate_is_unlike_the_end_from_which_it_differs(towards_bad: int) -> None:
    sides = {0: effect(-1.0, 1.0), 1: effect(2.0, 5.0), -1: effect(-5.0, -2.0), None: effect(None)}
    towards, back = sides[towards_bad], sides[-towards_bad]
    assert classify(towards, sides[0], towards_bad) == Outcome.LIKE_BAD
    assert classify(sides[0], back, towards_bad) == Outcome.LIKE_GOOD
    assert classify(towards, back, towards_bad) == Outcome.BETWEEN
    assert classify(sides[None], sides[None], towards_bad) == Outcome.CANNOT_TELL
    # Better than the good end, or worse than the bad one: no reason to call it like the other one.
    assert classify(back, sides[0], towards_bad) == Outcome.CANNOT_TELL
    assert classify(sides[0], towards, towards_bad) == Outcome.CANNOT_TELL
    assert classify(None, back, towards_bad) == Outcome.LIKE_GOOD


def test_a_direction_needs_an_interval_without_zero() -> None:
    assert [direction(one) for one in (None, effect(None), effect(0.0, 2.0), effect(0.1, 2.0))] == [
        0,
        0,
        0,
        1,
    ]


def test_all_tests_of_a_bisection_share_the_error_rate() -> None:
    for candidates in range(200):
        assert level_of_tests(candidates) * (1 + steps_at_most(candidates)) == pytest.approx(ALPHA)
