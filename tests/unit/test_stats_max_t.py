"""The joint sign-flip test: what is planted is found, noise is not, and another computation agrees."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dbdyno.stats.joint import FUDGE, family_p_values


def by_brute_force(rows: NDArray[np.float64]) -> list[float]:
    """Every pattern of signs one by one, with the textbook's formula for the standard error."""
    blocks = rows.shape[1]

    def statistic(values: NDArray[np.float64]) -> float:
        error = float(values.std(ddof=1)) / math.sqrt(blocks) + FUDGE
        return float(abs(values.mean()) / error)

    largest = [
        max(statistic(row * np.array(signs)) for row in rows)
        for signs in itertools.product((1.0, -1.0), repeat=blocks)
    ]
    return [float(np.mean([one >= statistic(row) * (1 - 1e-9) for one in largest])) for row in rows]


@pytest.mark.parametrize("blocks", [2, 3, 6, 8])
def test_another_computation_agrees(blocks: int) -> None:
    rows = np.random.default_rng(blocks).normal(0.02, 0.05, size=(7, blocks))
    assert family_p_values(rows.tolist()) == pytest.approx(by_brute_force(rows))


def test_a_planted_shift_among_hundreds_is_found_with_eight_blocks() -> None:
    rng = np.random.default_rng(11)
    rows = rng.normal(0.0, 0.05, size=(300, 8))
    rows[17] -= 0.6
    p_values = family_p_values(rows.tolist())
    assert p_values[17] == pytest.approx(2 / 2**8)
    assert min(p_values[:17] + p_values[18:]) > 0.05


def test_noise_alone_moves_nothing_more_often_than_it_may() -> None:
    """200 experiments between equal arms, 60 counters that hang together and have heavy tails."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(200):
        common = rng.standard_t(3, size=(1, 8))
        rows = 0.03 * (0.5 * common + rng.standard_t(3, size=(60, 8)))
        false += min(family_p_values(rows.tolist())) <= 0.05
    # Binomial with 200 trials at 5 %: more than 20 has a chance below 1 in 1,000.
    assert false <= 20


def test_what_is_too_little_to_matter_is_not_sure_however_steady_it_is() -> None:
    rng = np.random.default_rng(2)
    rows = [[0.0002] * 8, *rng.normal(0.0, 0.02, size=(50, 8)).tolist()]
    assert family_p_values(rows)[0] > 0.5


def test_many_blocks_are_drawn_and_repeat() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(0.0, 0.05, size=(20, 16))
    rows[3] += 0.2
    first = family_p_values(rows.tolist())
    assert first == family_p_values(rows.tolist())
    assert first[3] < 0.001
    assert sorted(first)[1] > 0.05


def test_edges() -> None:
    assert family_p_values([]) == []
    assert family_p_values([[0.3], [0.1]]) == [1.0, 1.0]
    with pytest.raises(ValueError, match="one difference per block"):
        family_p_values([[0.1, 0.2], [0.1]])
