"""The universal scalability law: planted parameters come back, and what cannot be known is not said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit, minimize_scalar

from dbdyno.stats.usl import Law, fit, peaks

LEVELS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]


@pytest.mark.parametrize("rate", [0.5, 200.0, 80_000.0])
@pytest.mark.parametrize(
    ("sigma", "kappa"), [(0.0, 0.0), (0.05, 0.0), (0.02, 1e-3), (0.3, 1e-4), (0.0, 0.02), (0.9, 1e-5)]
)
def test_planted_parameters_come_back(rate: float, sigma: float, kappa: float) -> None:
    law = Law(rate, sigma, kappa)
    found = fit(LEVELS, [law.throughput(n) for n in LEVELS])
    assert found.rate == pytest.approx(rate, rel=1e-4)
    assert found.sigma == pytest.approx(sigma, abs=1e-4)
    assert found.kappa == pytest.approx(kappa, rel=1e-3, abs=1e-8)


@pytest.mark.parametrize(
    "levels", [[2, 8, 64, 256, 3000], [64, 100, 200, 300, 500], [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]]
)
def test_the_sweeps_of_the_seeds(levels: list[float]) -> None:
    law = Law(76.8, 0.002, 2e-6)
    found = fit(levels, [law.throughput(n) for n in levels])
    for n in levels:
        assert found.throughput(n) == pytest.approx(law.throughput(n), rel=1e-3)
    assert found.peak == pytest.approx(law.peak, rel=0.02)


def test_the_knee_is_where_throughput_is_highest() -> None:
    """Against a search that knows no formula."""
    law = Law(100.0, 0.05, 4e-4)
    best = minimize_scalar(lambda n: -law.throughput(n), bounds=(1, 1000), method="bounded")
    assert law.peak == pytest.approx(best.x, rel=1e-3)


def test_another_implementation_agrees() -> None:
    """scipy's curve_fit on the logarithms, from another start, on noisy data."""
    rng = np.random.default_rng(3)
    law, n = Law(150.0, 0.04, 3e-4), np.array(LEVELS)
    x = np.array([law.throughput(level) for level in LEVELS]) * np.exp(rng.normal(0, 0.03, len(LEVELS)))

    def log_law(level: Any, log_rate: float, sigma: float, kappa: float) -> Any:
        return log_rate + np.log(level / (1 + sigma * (level - 1) + kappa * level * (level - 1)))

    other, _ = curve_fit(
        log_law, n, np.log(x), p0=[4.0, 0.1, 1e-3], bounds=([-9, 0, 0], [20, 1, 1]), xtol=1e-14, ftol=1e-14
    )
    found = fit(LEVELS, list(x))
    assert [math.log(found.rate), found.sigma, found.kappa] == pytest.approx(list(other), rel=1e-3)


def test_noise_moves_the_knee_by_little() -> None:
    rng = np.random.default_rng(7)
    law = Law(150.0, 0.04, 3e-4)
    blocks = [{n: law.throughput(n) * math.exp(rng.normal(0, 0.02)) for n in LEVELS} for _ in range(8)]
    found = peaks(blocks)
    assert len(found) == 8
    assert float(np.median(found)) == pytest.approx(law.peak, rel=0.1)


def test_a_curve_that_never_falls_has_no_knee() -> None:
    assert fit(LEVELS, [1000.0 * n / (1 + 0.1 * (n - 1)) for n in LEVELS]).peak > 1e3
    assert fit(LEVELS, [70.0 * n for n in LEVELS]).peak > 1e3


def test_a_curve_that_only_falls_has_its_knee_before_it() -> None:
    falling = [211.0, 202.0, 194.0, 185.0]
    assert fit([10, 20, 40, 80], falling).peak < 10


def test_a_block_that_lacks_a_level_is_left_out() -> None:
    law = Law(100.0, 0.05, 4e-4)
    whole = {n: law.throughput(n) for n in LEVELS}
    assert len(peaks([whole, {n: whole[n] for n in LEVELS[:-1]}, whole])) == 2


@pytest.mark.parametrize(
    ("levels", "values", "told"),
    [
        ([1, 2, 4], [1, 2, 3], "3 different loads"),
        ([1, 2, 4, 4], [1, 2, 3, 3], "3 different loads"),
        ([1, 2, 4, 8], [1, 2, 0, 3], "above 0"),
    ],
)
def test_what_it_refuses(levels: list[float], values: list[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        fit(levels, values)
