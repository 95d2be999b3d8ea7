"""The suggested length of a trial, with simulated blocks whose variance components are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats.precision import Components, components


def simulate(
    between: float, second: float, blocks: int, trial_s: int, seed: int
) -> tuple[list[float], list[list[float]]]:
    """Log ratios of blocks, and the seconds of their trials: the noise of a block is in its ratio alone."""
    random = np.random.default_rng(seed)
    ratios: list[float] = []
    seconds: list[list[float]] = []
    for shift in random.normal(0.0, between, blocks):
        a, b = random.normal(1.0, second, (2, trial_s))
        ratios.append(math.log(b.mean() * math.exp(shift) / a.mean()))
        seconds += [(1000.0 * a).tolist(), (1000.0 * b * math.exp(shift)).tolist()]
    return ratios, seconds


def test_components_of_simulated_blocks_are_found() -> None:
    ratios, seconds = simulate(0.03, 0.10, 4000, 5, 1)
    found = components(ratios, seconds, 1)
    assert found is not None
    assert found.between == pytest.approx(0.03**2, rel=0.1)
    assert found.within == pytest.approx(2 * 0.10**2, rel=0.05)
    assert components(ratios[:1], seconds, 1) is None


def test_the_deviation_agrees_with_simulated_blocks() -> None:
    random = np.random.default_rng(2)
    for trial_s in (5, 10):
        a, b = random.normal(1.0, 0.10 / math.sqrt(trial_s), (2, 10_000))
        found = (random.normal(0.0, 0.03, 10_000) + np.log(b / a)).std()
        assert found == pytest.approx(Components(0.03**2, 2 * 0.10**2).deviation(trial_s), rel=0.03)


def test_a_trial_with_a_stalled_second_counts() -> None:
    ratios, seconds = simulate(0.03, 0.10, 100, 5, 3)
    stalled = [[0.0, *rest] for _, *rest in seconds]
    found, without = components(ratios, stalled, 1), components(ratios, seconds, 1)
    assert found is not None
    assert without is not None
    assert found.within > 10 * without.within
