"""The words of single effects: every code, its precedence, and what takes it away."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.verdict_rule import BLOCKS_MIN, Circumstances, Verdict, choose, direction, is_mixed

Interval = tuple[float, float] | None


def effect(interval: Interval, estimate: float | None = None) -> Effect:
    """An effect in the middle of its interval."""
    middle = 0.0 if interval is None else sum(interval) / 2.0
    return Effect(middle if estimate is None else estimate, interval, 0.05, 0.5, 8)


def word(interval: Interval, **given: Any) -> Verdict:
    """The word for an effect that may have a direction exactly where its interval leaves zero out."""
    found = effect(interval)
    arguments: dict[str, Any] = {"is_significant": found.is_significant, "higher_is_faster": True, **given}
    return choose(found, **arguments)


@pytest.mark.parametrize(
    ("interval", "higher", "expected"),
    [
        ((-10.4, -8.1), True, Verdict.SLOWER),
        ((8.1, 10.4), True, Verdict.FASTER),
        ((8.1, 10.4), False, Verdict.SLOWER),
        ((-10.4, -8.1), False, Verdict.FASTER),
        ((-1.5, -0.4), True, Verdict.SLOWER),
        ((-2.1, 1.0), True, Verdict.UNDECIDED),
        ((0.0, 5.0), True, Verdict.UNDECIDED),
        ((-0.1, 0.1), True, Verdict.UNDECIDED),
        (None, True, Verdict.TOO_FEW_BLOCKS),
    ],
)
def test_without_a_declared_delta_nothing_is_equivalent(
    interval: Interval, higher: bool, expected: Verdict
) -> None:
    assert word(interval, higher_is_faster=higher) == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((-1.5, -0.4), Verdict.EQUIVALENT),
        ((-2.0, 2.0), Verdict.EQUIVALENT),
        ((-2.1, 1.0), Verdict.UNDECIDED),
        ((-2.1, -0.1), Verdict.SLOWER),
        (None, Verdict.TOO_FEW_BLOCKS),
    ],
)
def test_a_declared_delta(interval: Interval, expected: Verdict) -> None:
    assert word(interval, delta_percent=2.0) == expected


def test_equivalence_over_several_loads_is_not_read_off_the_mean() -> None:
    assert word((-0.5, 0.5), delta_percent=2.0, is_equivalent=False) == Verdict.UNDECIDED
    assert word((-2.5, 0.5), delta_percent=2.0, is_equivalent=True) == Verdict.EQUIVALENT


def test_without_leave_of_the_family_there_is_no_direction() -> None:
    assert word((-10.4, -8.1), is_significant=False) == Verdict.UNDECIDED
    # Holm's procedure may give leave to an effect whose interval, at the level of all sentences, holds zero.
    assert word((-10.4, 0.3), is_significant=True) == Verdict.SLOWER


@pytest.mark.parametrize(("floor", "expected"), [(9.0, Verdict.SLOWER), (9.25, Verdict.UNDECIDED)])
def test_an_effect_within_the_noise_floor_has_no_direction(floor: float, expected: Verdict) -> None:
    # The estimate is -9.25 %; as much as identical variants differ by is not more than they differ by.
    assert word((-10.4, -8.1), floor_percent=floor) == expected


def test_equivalence_stands_within_the_noise_floor() -> None:
    assert word((-1.0, 1.0), floor_percent=3.0, delta_percent=2.0) == Verdict.EQUIVALENT


STOPPED, UNFINISHED = Circumstances(is_stopped=True), Circumstances(is_unfinished=True)


@pytest.mark.parametrize(
    ("interval", "around", "expected"),
    [
        ((-10.4, -8.1), STOPPED, Verdict.NOT_COMPARABLE),
        (None, STOPPED, Verdict.NOT_COMPARABLE),
        ((-10.4, -8.1), Circumstances(is_stopped=True, is_unfinished=True), Verdict.NOT_COMPARABLE),
        ((-10.4, -8.1), UNFINISHED, Verdict.UNFINISHED),
        ((-1.0, 1.0), UNFINISHED, Verdict.UNFINISHED),
        (None, UNFINISHED, Verdict.UNFINISHED),
        ((-10.4, -8.1), Circumstances(is_identical=True), Verdict.UNDECIDED),
        ((-1.0, 1.0), Circumstances(is_identical=True), Verdict.EQUIVALENT),
    ],
)
def test_precedence(interval: Interval, around: Circumstances, expected: Verdict) -> None:
    assert word(interval, circumstances=around, delta_percent=2.0) == expected


def test_no_effect_is_not_comparable() -> None:
    assert choose(None, is_significant=False, higher_is_faster=True) == Verdict.NOT_COMPARABLE
    # Trials that have not run may still make it comparable.
    assert (
        choose(None, is_significant=False, higher_is_faster=True, circumstances=UNFINISHED)
        == Verdict.UNFINISHED
    )


def test_a_bound_has_the_direction_of_its_sign() -> None:
    found = Effect(500.0, (300.0, float("inf")), 0.05, 0.01, 8, Bound.AT_LEAST)
    assert direction(found, higher_is_faster=False) == Verdict.SLOWER
    assert direction(found, higher_is_faster=True) == Verdict.FASTER


@pytest.mark.parametrize(
    ("levels", "mixed"),
    [
        ([(1.0, 2.0), (-2.0, -1.0)], True),
        ([(1.0, 2.0), (-1.0, 1.0), (-2.0, -1.0)], True),
        ([(1.0, 2.0), (-2.0, 0.0)], False),
        ([(0.0, 2.0), (-2.0, -1.0)], False),
        ([(1.0, 2.0), None], False),
        ([None, None], False),
        ([], False),
    ],
)
def test_mixed_is_one_level_surely_up_and_another_surely_down(levels: list[Interval], mixed: bool) -> None:
    assert is_mixed([effect(level) for level in levels]) == mixed
    assert not is_mixed([None, *(effect(level) for level in levels[:1])])


def test_six_blocks_are_the_fewest_for_an_interval() -> None:
    assert BLOCKS_MIN == 6
