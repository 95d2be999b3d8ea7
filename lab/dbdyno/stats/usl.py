"""Gunther's universal scalability law: throughput over connections, and the load at which it peaks.

::

    X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))

lambda is the throughput of one connection, sigma the share of the work that is done one after another (Amdahl
1967), kappa what the workers spend on agreeing with one another (Gunther 2007, Guerrilla Capacity Planning,
ch. 4-6). Where kappa is above 0 the curve has a peak, the knee, at N* = sqrt((1 - sigma) / kappa), and falls
behind it.

Fitted by non-linear least squares on log X, since what disturbs a throughput is a share of it: a fit on X
itself would see the high points alone. The start comes from N / X, which is a parabola in N and linear in its
coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

# One level more than there are parameters: else every curve fits and none is found wrong.
LEVELS_MIN = 4
# Kappa below which the peak is at more connections than any server has.
KAPPA_MIN = 1e-12


@dataclass(frozen=True)
class Law:
    """A fitted curve."""

    # Events per second of one connection.
    rate: float
    # In [0, 1].
    sigma: float
    # At least 0.
    kappa: float

    def throughput(self, connections: float) -> float:
        """Events per second at so many connections."""
        n = connections
        return self.rate * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))

    @property
    def knee(self) -> float:
        """Connections at the peak; infinity where throughput never falls, below 1 where it only falls."""
        return math.sqrt((1.0 - self.sigma) / self.kappa) if self.kappa > KAPPA_MIN else math.inf


def fit(connections: Sequence[float], throughput: Sequence[float]) -> Law:
    """The law nearest to these points in the sense of least squares of log X.

    Raises ValueError for fewer than `LEVELS_MIN` different levels, and for values that are not above 0.
    """
    n, x = np.asarray(connections, dtype=np.float64), np.asarray(throughput, dtype=np.float64)
    if len(np.unique(n)) < LEVELS_MIN:
        raise ValueError(
            f"{len(np.unique(n))} levels of load; the law has 3 parameters and needs {LEVELS_MIN}"
        )
    if not (np.all(n > 0) and np.all(x > 0) and np.all(np.isfinite(x))):
        raise ValueError("connections and throughput must be above 0")
    scale = float(np.max(x / n))

    def residuals(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        log_rate, sigma, kappa = parameters
        return np.asarray(
            log_rate + np.log(n) - np.log1p(sigma * (n - 1) + kappa * n * (n - 1)) - np.log(x / scale)
        )

    solved = least_squares(
        residuals,
        _start(n, x / scale),
        bounds=([-np.inf, 0.0, 0.0], [np.inf, 1.0, np.inf]),
        # Kappa belongs to N squared: without this the steps in it would be as large as those in sigma.
        x_scale=[1.0, 1.0 / float(np.max(n)), 1.0 / float(np.max(n)) ** 2],
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
        max_nfev=10_000,
    )
    log_rate, sigma, kappa = (float(value) for value in solved.x)
    return Law(scale * math.exp(log_rate), sigma, kappa)


def _start(n: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """From N / X = ((1 - sigma) + (sigma - kappa) N + kappa N^2) / lambda, each residual a share of N / X."""
    weight = x / n
    columns = np.column_stack([weight, n * weight, n * n * weight])
    # Columns of equal length, so that the solver's tolerance means the same for each.
    lengths = np.linalg.norm(columns, axis=0)
    a, b, c = nnls(columns / lengths, np.ones_like(n))[0] / lengths
    whole = a + b + c
    kappa = c / whole
    sigma = min(max(b / whole + kappa, 1e-6), 1.0 - 1e-6)
    return np.array([-math.log(whole), sigma, max(kappa, 1e-15)])


def knees(by_block: Sequence[Mapping[float, float]]) -> list[float]:
    """The knee of each block by itself; `by_block` holds connections -> throughput.

    A block that lacks a level which others have would tell of another curve, and is left out.
    """
    if not by_block:
        return []
    levels = set().union(*by_block)
    return [fit(list(block), list(block.values())).knee for block in by_block if set(block) == levels]
