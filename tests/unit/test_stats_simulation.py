"""Whether the words keep their promise: simulated experiments with the noise that databases really make.

Each trial's throughput is the mean of an autocorrelated series of seconds, times a mode drawn at the server's
start (a restart lands in the fast or the slow memory layout), times a drift over the whole experiment.
Seeded; the bounds allow for the simulation's own error.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from dbdyno.stats.paired import curve_effect, curve_log_ratios, effects
from dbdyno.stats.words import Verdict, choose

SECONDS = 10
POINTS = 3


def autocorrelated(generator: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Seconds of AR(1) noise with coefficient 0.7 and 3 % standard deviation, along the last axis."""
    noise = generator.normal(0.0, 0.03 * np.sqrt(1 - 0.7**2), shape)
    noise[..., 0] /= np.sqrt(1 - 0.7**2)
    for second in range(1, shape[-1]):
        noise[..., second] += 0.7 * noise[..., second - 1]
    return noise


def experiments(
    generator: np.random.Generator, count: int, blocks: int, *, bimodal: float, drift: float
) -> NDArray[np.float64]:
    """Seconds of throughput of two equal arms: axes experiment, block, arm, point, second."""
    seconds = 1.0 + autocorrelated(generator, (count, blocks, 2, POINTS, SECONDS))
    mode = 1.0 - bimodal * generator.integers(0, 2, (count, blocks, 2, 1, 1))
    # Random order inside each block: which arm runs first feels the drift first.
    first = generator.integers(0, 2, (count, blocks, 1))
    order = 2 * np.arange(blocks)[None, :, None] + (first + np.arange(2)[None, None, :]) % 2
    slope = 1.0 - drift * order[..., None, None] / (2 * blocks)
    return np.asarray(seconds * mode * slope)


NOISES = [
    pytest.param(0.0, 0.0, id="autocorrelated"),
    pytest.param(0.08, 0.0, id="bimodal"),
    pytest.param(0.0, 0.20, id="drifting"),
    pytest.param(0.05, 0.10, id="all-at-once"),
]


@pytest.mark.parametrize(("bimodal", "drift"), NOISES)
@pytest.mark.parametrize("blocks", [8, 10])
def test_equal_arms_get_a_false_word_in_at_most_one_experiment_of_twenty(
    bimodal: float, drift: float, blocks: int
) -> None:
    count = 700
    runs = experiments(np.random.default_rng(blocks), count, blocks, bimodal=bimodal, drift=drift).mean(
        axis=-1
    )
    ratios = np.log(runs[:, :, 1, :]) - np.log(runs[:, :, 0, :])
    covered = false_at_a_point = false_on_the_curve = 0
    for experiment in ratios:
        points = [list(experiment[:, point]) for point in range(POINTS)]
        curve = curve_effect(list(curve_log_ratios([dict(enumerate(point)) for point in points]).values()))
        assert curve is not None
        assert curve.interval_percent is not None
        low, high = curve.interval_percent
        covered += low <= 0.0 <= high
        # A zone of width zero: nothing is excused as equivalent.
        words = [
            choose(
                blocks=blocks, interval_percent=e.interval_percent, delta_percent=0.0, higher_is_faster=True
            )
            for e in effects(points)
            if e is not None
        ]
        false_at_a_point += any(word in (Verdict.FASTER, Verdict.SLOWER) for word in words)
        false_on_the_curve += not low <= 0.0 <= high
    # Two standard errors of the simulation: 2 * sqrt(0.05 * 0.95 / 700) = 1.6 %.
    assert 0.93 <= covered / count <= 0.97 + 0.016
    assert false_at_a_point / count <= 0.05 + 0.016
    assert false_on_the_curve / count <= 0.05 + 0.016


def test_coverage_of_a_true_difference() -> None:
    generator, covered, count, truth = np.random.default_rng(7), 0, 1500, -0.05
    for _ in range(count):
        effect = curve_effect(list(generator.normal(truth, 0.02, 10)))
        assert effect is not None
        assert effect.interval_percent is not None
        covered += effect.interval_percent[0] <= 100 * np.expm1(truth) <= effect.interval_percent[1]
    assert 0.93 <= covered / count <= 0.97


def test_seconds_are_no_replicates() -> None:
    """The same data through the usual mistake, a t-test over the seconds of one run each, to show that the
    simulation can tell a good method from a bad one."""
    runs = experiments(np.random.default_rng(11), 300, 1, bimodal=0.05, drift=0.0)
    p = scipy_stats.ttest_ind(runs[:, 0, 0, 0, :], runs[:, 0, 1, 0, :], axis=-1, equal_var=False).pvalue
    assert float(np.mean(p <= 0.05)) > 0.3


def test_a_real_difference_is_found() -> None:
    """Power: 5 % slower under the full noise, 8 blocks."""
    runs = experiments(np.random.default_rng(13), 200, 8, bimodal=0.0, drift=0.10).mean(axis=-1)
    ratios = np.log(runs[:, :, 1, :] * 0.95) - np.log(runs[:, :, 0, :])
    found = 0
    for experiment in ratios:
        effect = curve_effect(list(experiment.mean(axis=1)))
        assert effect is not None
        found += (
            choose(
                blocks=8, interval_percent=effect.interval_percent, delta_percent=2.0, higher_is_faster=True
            )
            == Verdict.SLOWER
        )
    assert found / 200 > 0.95
