"""Warm-ups: the MSER-5 cut, the settling of a warm-up trial, and what is missing behind a warm-up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from dbdyno.stats.steady import mser5, remaining, settle


def test_a_constant_series_is_not_cut() -> None:
    assert mser5([7.0] * 100) == 0


def test_a_step_is_cut_where_it_is() -> None:
    # 20 batches; the first 4 stand apart, the others alternate, so any longer cut only loses data.
    assert mser5([0.0] * 20 + [10.0, 11.0] * 40) == 20


def test_the_batch_that_holds_the_step_goes_too() -> None:
    assert mser5([0.0] * 18 + [10.0, 11.0] * 41) == 20


def test_a_series_that_never_settles_is_cut_at_the_limit() -> None:
    rising = [float(i) for i in range(100)]
    assert mser5(rising) == 50
    assert mser5(rising, 62) == 60
    # The last five batches cannot be the only ones left.
    assert mser5(rising, 100) == 75


def test_too_short_a_series_is_no_series_that_has_not_settled() -> None:
    assert mser5([1.0] * 49) is None
    assert mser5([]) is None


def test_it_equals_the_published_formula() -> None:
    """White 1997, eq. 2, written out: the sum of squared deviations over the squared number kept."""
    series = np.random.default_rng(4).normal(100, 5, 200) - 40 * np.exp(-np.arange(200) / 25)
    means = [float(np.mean(series[i : i + 5])) for i in range(0, 200, 5)]
    scores = []
    for drop in range(21):
        kept = means[drop:]
        centre = sum(kept) / len(kept)
        scores.append(sum((value - centre) ** 2 for value in kept) / len(kept) ** 2)
    assert mser5(list(series)) == 5 * scores.index(min(scores)) > 0


def test_an_exponential_warm_up_is_found() -> None:
    generator = np.random.default_rng(5)
    cuts = [
        mser5(list(1000 * (1 - 0.6 * np.exp(-np.arange(300) / 20)) + generator.normal(0, 30, 300)))
        for _ in range(100)
    ]
    # After 3 time constants the bias is below the noise, after 8 there is none left.
    assert 50 <= float(np.median([cut or 0 for cut in cuts])) <= 120


def warm_up(
    tau_s: float, seconds: int = 60, noise: float = 0.08, step: bool = False, seed: int = 1
) -> list[float]:
    """Seconds of a server that begins 30 % slow; its ticks of 100 ms are correlated by 0.5."""
    shocks = np.random.default_rng([seed, round(10 * tau_s)]).standard_normal(10 * seconds + 50)
    ticks = 1.0 + noise * math.sqrt(0.75) * lfilter([1.0], [1.0, -0.5], shocks)[50:]
    at_s = (np.arange(10 * seconds) + 0.5) / 10
    if tau_s and step:
        ticks *= np.where(at_s < tau_s, 0.7, 1.0)
    elif tau_s:
        ticks *= 1.0 - 0.3 * np.exp(-at_s / tau_s)
    return [float(mean) for mean in 1000 * ticks.reshape(seconds, 10).mean(axis=1)]


@pytest.mark.parametrize(
    ("tau_s", "low_s", "high_s"),
    # 2 % are left of the 30 % after 2.7 time constants.
    [(0.0, 0.0, 0.0), (2.0, 4.0, 6.0), (5.0, 12.0, 15.0), (10.0, 24.0, 30.0), (15.0, 38.0, 45.0)],
)
def test_a_quiet_warmup_trial_settles_when_two_percent_are_left(
    tau_s: float, low_s: float, high_s: float
) -> None:
    settled_s = settle(warm_up(tau_s, noise=0.01))
    assert settled_s is not None
    assert low_s <= settled_s <= high_s


@pytest.mark.parametrize("tau_s", [2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0])
def test_a_warm_up_of_one_and_a_half_times_that_is_long_enough(tau_s: float) -> None:
    """With the noise of a small machine: what is missing in the 5 s behind it, or that it never settles."""
    missing = []
    for seed in range(100):
        settled_s = settle(warm_up(tau_s, seed=seed))
        if settled_s is not None:
            warmup_s = max(1.0, 1.5 * settled_s)
            missing.append(
                0.3 * math.exp(-warmup_s / tau_s) * tau_s / 5.0 * (1.0 - math.exp(-5.0 / tau_s)) > 0.02
            )
    assert sum(missing) <= 15


def test_a_warm_server_is_not_warmed_up_for_noise() -> None:
    settled = [settle(warm_up(0.0, seed=seed)) for seed in range(200)]
    assert sum(one is None or one > 5.0 for one in settled) <= 10


@pytest.mark.parametrize("at_s", [3.0, 8.0, 17.0, 33.0])
def test_a_step_has_settled_with_its_mean(at_s: float) -> None:
    settled = [settle(warm_up(at_s, step=True, seed=seed)) for seed in range(20)]
    assert float(np.median([one or 60.0 for one in settled])) == 5 * math.ceil(at_s / 5)


@pytest.mark.parametrize("begins_s", [20, 40, 55])
def test_a_stall_in_a_warmup_trial_is_no_warm_up(begins_s: int) -> None:
    settled = []
    for seed in range(40):
        seconds = warm_up(0.0, seed=seed)
        seconds[begins_s : begins_s + 5] = [0.6 * second for second in seconds[begins_s : begins_s + 5]]
        settled.append(settle(seconds))
    assert sum(one is None or one > 5.0 for one in settled) <= 6


def test_what_drifts_on_the_machine_is_seldom_taken_for_a_warm_up() -> None:
    # AR(1) with coefficient 0.9 from second to second: each resembles those of ten seconds around it.
    settled = []
    for seed in range(100):
        shocks = np.random.default_rng([seed, 9]).standard_normal(160)
        slow = 0.08 * math.sqrt(0.19) * lfilter([1.0], [1.0, -0.9], shocks)[40:]
        settled.append(settle([1000 * (1 + float(one)) for one in slow]))
    assert sum(one is None for one in settled) <= 5
    assert sum(one is None or one > 30.0 for one in settled) <= 25


def test_what_falls_to_its_level_settles_too() -> None:
    assert settle([1000 * (1 + 0.3 * math.exp(-at / 10)) for at in range(60)]) == pytest.approx(27, abs=3)


def test_what_still_climbs_has_not_settled() -> None:
    assert settle([1000 * (1 - 0.3 * math.exp(-at / 60)) for at in range(60)]) is None
    assert settle([10.0 + at for at in range(60)]) is None
    assert settle([0.0] * 60) is None
    assert settle([5.0] * 60) == 0.0
    with pytest.raises(ValueError, match="29 seconds; at least 30"):
        settle([1.0] * 29)


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0, 20.0])
def test_what_remains_of_an_exponential_is_found(tau: float) -> None:
    edges = (0.0, 1.0, 2.0, 5.0)
    gaps = [
        0.3 * tau / (end - begin) * (math.exp(-begin / tau) - math.exp(-end / tau))
        for begin, end in ((0.0, 1.0), (1.0, 2.0), (2.0, 5.0))
    ]
    assert remaining(gaps[0] - gaps[2], gaps[1] - gaps[2], edges) == pytest.approx(gaps[2], rel=1e-6)


def test_what_does_not_slow_down_has_no_end() -> None:
    edges = (0.0, 1.0, 2.0, 3.0)
    assert remaining(0.2, 0.1, edges) == math.inf
    assert remaining(0.1, 0.2, edges) == math.inf
    assert remaining(-0.1, 0.1, edges) == math.inf
    assert remaining(0.0, 0.1, edges) == math.inf
    assert remaining(0.1, 0.0, edges) == 0.0
