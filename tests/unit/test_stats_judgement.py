"""Holm, the curve and the words: exact numbers."""

from __future__ import annotations

import pytest

from dbdyno.stats.holm import Decision, holm, smallest_blocks
from dbdyno.stats.paired import curve_effect, curve_log_ratios, effects
from dbdyno.stats.signed_rank import percent
from dbdyno.stats.words import Verdict, choose


def test_holm_by_hand() -> None:
    # Ranked: 0.005 <= 0.05/4, 0.01 <= 0.05/3, 0.03 > 0.05/2: stop; 0.04 is not looked at.
    assert holm([0.01, 0.04, 0.03, 0.005]) == (
        Decision(True, 0.05 / 3),
        Decision(False, 0.05 / 2),
        Decision(False, 0.05 / 2),
        Decision(True, 0.05 / 4),
    )


def test_holm_at_the_ends() -> None:
    assert holm([]) == ()
    assert holm([0.05]) == (Decision(True, 0.05),)
    assert holm([0.01, 0.01]) == (Decision(True, 0.025), Decision(True, 0.05))
    assert holm([0.03, 0.03]) == (Decision(False, 0.025), Decision(False, 0.025))


@pytest.mark.parametrize(
    ("points", "blocks"), [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (10, 9), (13, 10)]
)
def test_smallest_blocks(points: int, blocks: int) -> None:
    assert smallest_blocks(points) == blocks
    # The claim itself: with that many unanimous blocks every point gets its interval, with one less none
    # does.
    unanimous = [[0.1 + 0.001 * i for i in range(blocks)]] * points
    assert all(effect is not None and effect.interval_percent is not None for effect in effects(unanimous))
    less = [values[:-1] for values in unanimous]
    assert all(effect is not None and effect.interval_percent is None for effect in effects(less))


def test_effects_print_the_interval_that_decided() -> None:
    strong = [-0.10, -0.11, -0.09, -0.12, -0.08, -0.105, -0.095, -0.115]
    weak = [0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.015, -0.015]
    first, second, third = effects([strong, weak, []])
    assert first is not None
    assert second is not None
    assert third is None
    assert (first.alpha, second.alpha) == (0.05 / 3, 0.05 / 2)
    assert first.p_value == 2 / 256
    assert first.blocks == 8
    # Hodges-Lehmann is the median of 36 Walsh averages, here of values symmetric around -0.1025 / -0.1.
    assert first.interval_percent is not None
    assert first.interval_percent[1] < 0
    assert first.interval_percent[0] < first.effect_percent < first.interval_percent[1]
    assert second.interval_percent is not None
    assert second.interval_percent[0] < 0 < second.interval_percent[1]


def test_the_curve_is_one_number_per_complete_block() -> None:
    curve = curve_log_ratios([{0: 0.1, 1: 0.2, 2: 0.3}, {0: 0.3, 1: 0.0, 3: 0.5}])
    assert curve == {0: pytest.approx(0.2), 1: pytest.approx(0.1)}
    assert curve_log_ratios([]) == {}
    effect = curve_effect(list(curve.values()))
    assert effect is not None
    assert effect.blocks == 2
    assert effect.interval_percent is None
    assert effect.effect_percent == pytest.approx(percent(0.15))
    assert curve_effect([]) is None


@pytest.mark.parametrize(
    ("blocks", "interval", "higher", "stopped", "word"),
    [
        (8, (-10.4, -8.1), True, False, Verdict.SLOWER),
        (8, (8.1, 10.4), True, False, Verdict.FASTER),
        (8, (8.1, 10.4), False, False, Verdict.SLOWER),
        (8, (-10.4, -8.1), False, False, Verdict.FASTER),
        (8, (-1.5, -0.4), True, False, Verdict.EQUIVALENT),
        (8, (-2.0, 2.0), True, False, Verdict.EQUIVALENT),
        (8, (-2.1, 1.0), True, False, Verdict.NOT_DISTINGUISHABLE),
        (8, (0.0, 5.0), True, False, Verdict.NOT_DISTINGUISHABLE),
        (7, None, True, False, Verdict.NOT_DISTINGUISHABLE),
        (5, (-10.4, -8.1), True, False, Verdict.EXPLORATORY),
        (5, None, True, True, Verdict.NOT_COMPARABLE),
        (8, (-1.0, 1.0), True, True, Verdict.NOT_COMPARABLE),
        (0, None, True, False, Verdict.NOT_COMPARABLE),
    ],
)
def test_words(
    blocks: int, interval: tuple[float, float] | None, higher: bool, stopped: bool, word: Verdict
) -> None:
    assert word == choose(
        blocks=blocks, interval_percent=interval, delta_percent=2.0, higher_is_faster=higher, stopped=stopped
    )
