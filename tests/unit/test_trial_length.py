"""The suggested length of a trial, with simulated blocks whose variance components are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.stats.trial_length import (
    LONGEST_S,
    SHORTEST_S,
    Components,
    best_length,
    components,
    relative_width,
)


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


def test_no_other_length_has_a_narrower_interval() -> None:
    parts, overhead_s, trials = Components(0.03**2, 2 * 0.10**2), 12.0, 2
    best = best_length(parts, overhead_s, trials)
    assert best == pytest.approx(math.sqrt(6.0 * 0.02 / 0.0009))
    assert all(relative_width(parts, overhead_s, trials, one, best) >= 1.0 for one in np.arange(1, 60, 0.5))


def test_the_width_agrees_with_simulated_runs_of_the_same_time() -> None:
    """In 704 s: 32 blocks of trials of 5 s, or 22 of trials of 10 s, with an overhead of 12 s."""
    random, widths = np.random.default_rng(2), {}
    for trial_s in (5, 10):
        shape = (10_000, 704 // (12 + 2 * trial_s))
        a, b = random.normal(1.0, 0.10 / math.sqrt(trial_s), (2, *shape))
        widths[trial_s] = np.mean(random.normal(0.0, 0.03, shape) + np.log(b / a), axis=1).std()
    expected = relative_width(Components(0.03**2, 2 * 0.10**2), 12.0, 2, 10.0, 5.0)
    assert widths[10] / widths[5] == pytest.approx(expected, rel=0.04)


def test_lengths_stay_within_what_records_can_show() -> None:
    assert best_length(Components(0.0, 0.02), 12.0, 2) == LONGEST_S
    assert best_length(Components(1.0, 1e-6), 12.0, 2) == SHORTEST_S
