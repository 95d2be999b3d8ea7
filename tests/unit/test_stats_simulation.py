"""Whether verdicts keep their error rate: simulated experiments with the noise that databases really make.

Each trial's throughput is the mean of an autocorrelated series of seconds, times a mode drawn at the server's
start (a restart lands in the fast or the slow memory layout), times a drift over the whole experiment.
Seeded; the bounds allow for the simulation's own error.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from dbdyno.stats.paired import Effect, Ratios, effect, joint_effects, mean_ratios, ratio_bounds
from dbdyno.stats.verdict_rule import Verdict, choose

SECONDS = 10
POINTS = 3
# Experiments of each kind.
COUNT = 200


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
    """Seconds of throughput of two equal variants: axes experiment, block, variant, point, second."""
    seconds = 1.0 + autocorrelated(generator, (count, blocks, 2, POINTS, SECONDS))
    mode = 1.0 - bimodal * generator.integers(0, 2, (count, blocks, 2, 1, 1))
    # Random order inside each block: which variant runs first feels the drift first.
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


def effects(ratios: NDArray[np.float64]) -> tuple[Effect, list[Effect]]:
    """Over all points, and at each; `ratios` are those of one experiment, by block and point."""
    points = [Ratios(found, found) for found in (dict(enumerate(column)) for column in ratios.T.tolist())]
    overall = effect(mean_ratios(points))
    assert overall is not None
    return overall, [one for one in joint_effects(points) if one is not None]


def covers(found: Effect, truth_percent: float) -> bool:
    """Whether the interval holds the truth."""
    assert found.interval_percent is not None
    return found.interval_percent[0] <= truth_percent <= found.interval_percent[1]


@pytest.mark.parametrize(("bimodal", "drift"), NOISES)
@pytest.mark.parametrize("blocks", [8, 10])
def test_equal_variants_are_told_apart_in_at_most_one_experiment_of_twenty(
    bimodal: float, drift: float, blocks: int
) -> None:
    runs = experiments(np.random.default_rng(blocks), COUNT, blocks, bimodal=bimodal, drift=drift).mean(
        axis=-1
    )
    missed = missed_at_a_point = 0
    for ratios in np.log(runs[:, :, 1, :]) - np.log(runs[:, :, 0, :]):
        overall, points = effects(ratios)
        assert len(points) == POINTS
        missed += not covers(overall, 0.0)
        missed_at_a_point += not all(covers(point, 0.0) for point in points)
        # The word follows the same numbers.
        assert covers(overall, 0.0) == (overall.p_value > 0.05)
    # Three standard errors of the simulation above 5 %.
    most = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / COUNT)
    assert 0 < missed / COUNT <= most
    assert 0 < missed_at_a_point / COUNT <= most


@pytest.mark.parametrize(("failed", "censored"), [(0.1, 0.0), (0.3, 0.0), (0.05, 0.15)])
def test_failures_and_bounds_make_no_false_words(failed: float, censored: float) -> None:
    """Trials of equal variants: the server fails in some, and of others only a lower bound is known, that
    another log latency is above."""
    generator, wrong = np.random.default_rng(19), 0
    shape = (4, 8, 2)
    for _ in range(COUNT):
        values = generator.normal(0.0, 0.03, shape)
        lows, highs, kind = values.copy(), values.copy(), generator.random(shape)
        lows[kind < censored] -= np.abs(generator.normal(0.0, 0.05, shape))[kind < censored]
        highs[kind < censored] = np.inf
        lows[kind > 1.0 - failed] = highs[kind > 1.0 - failed] = -np.inf
        loads = []
        for of_low, of_high in zip(lows, highs, strict=True):
            trials = [
                [(float(low), float(high)) for low, high in zip(*pair, strict=True)]
                for pair in zip(of_low, of_high, strict=True)
            ]
            bounds = [ratio_bounds(base, other) for base, other in trials]
            lower, upper = (dict(enumerate(side)) for side in zip(*bounds, strict=True))
            loads.append(Ratios(lower, upper))
        wrong += any(one is not None and one.p_value <= 0.05 for one in joint_effects(loads))
    assert wrong / COUNT <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / COUNT)


def test_coverage_of_a_true_difference() -> None:
    generator, covered, count, truth = np.random.default_rng(7), 0, 1500, -0.05
    for _ in range(count):
        values = dict(enumerate(generator.normal(truth, 0.02, 10).tolist()))
        found = effect(Ratios(values, values))
        assert found is not None
        covered += covers(found, 100 * np.expm1(truth))
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
    found = 0
    for ratios in np.log(runs[:, :, 1, :] * 0.95) - np.log(runs[:, :, 0, :]):
        values = dict(enumerate(ratios.mean(axis=1).tolist()))
        overall = effect(Ratios(values, values))
        assert overall is not None
        found += (
            choose(overall, is_significant=overall.is_significant, higher_is_faster=True) == Verdict.SLOWER
        )
    assert found / 200 > 0.95
