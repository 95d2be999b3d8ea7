"""Gunther's universal scalability law: throughput as a function of connections, and its maximum.

::

    X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))

lambda is the throughput of one connection, sigma the share of the work that is serial (contention, Amdahl
1967), kappa the cost of keeping the workers consistent (coherency; Gunther 2007, Guerrilla Capacity Planning,
ch. 4-6). If kappa is above 0, the curve has a peak at N* = sqrt((1 - sigma) / kappa) and decreases beyond it.

The fit uses non-linear least squares on log X, because noise is proportional to throughput: a fit on X itself
would mainly follow the highest values. The start values come from a linear fit of N / X, which is a parabola
in N.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# One load more than the law has parameters: with three loads every curve would fit.
LOADS_MIN = 4
# Below this kappa the curve counts as one without a peak, which would be at 10^6 connections or more.
KAPPA_MIN = 1e-12


@dataclass(frozen=True)
class Law:
    """A fitted curve."""

    # Transactions per second of one connection: lambda.
    rate: float
    # In [0, 1].
    sigma: float
    # At least 0.
    kappa: float

    def throughput(self, connections: float) -> float:
        """Transactions per second with this number of connections."""
        n = connections
        return self.rate * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))

    @property
    def peak(self) -> float:
        """Number of connections at the peak: infinite if throughput never falls, below 1 if it only falls."""
        return math.sqrt((1.0 - self.sigma) / self.kappa) if self.kappa > KAPPA_MIN else math.inf


def fit(connections: Sequence[float], throughput: Sequence[float]) -> Law:
    """The law that fits these measurements best, by least squares of log X.

    Raises ValueError for fewer than `LOADS_MIN` different loads, and for values that are not above 0.
    """
    # Loads slowly, and most commands fit no law.
    from scipy.optimize import least_squares  # noqa: PLC0415

    n, x = np.asarray(connections, dtype=np.float64), np.asarray(throughput, dtype=np.float64)
    if len(np.unique(n)) < LOADS_MIN:
        raise ValueError(
            f"{len(np.unique(n))} different loads; the law has 3 parameters and needs {LOADS_MIN}"
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
        # Kappa is multiplied by N squared, so the solver must take much smaller steps in it than in sigma.
        x_scale=[1.0, 1.0 / float(np.max(n)), 1.0 / float(np.max(n)) ** 2],
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
        max_nfev=10_000,
    )
    log_rate, sigma, kappa = (float(value) for value in solved.x)
    return Law(scale * math.exp(log_rate), sigma, kappa)


def _start(n: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Start values of the fit, from N / X = ((1 - sigma) + (sigma - kappa) N + kappa N^2) / lambda.

    The residuals are relative to N / X.
    """
    from scipy.optimize import nnls  # noqa: PLC0415

    weight = x / n
    columns = np.column_stack([weight, n * weight, n * n * weight])
    # Columns are scaled to the same length, so that the solver's tolerance is equally strict for each.
    lengths = np.linalg.norm(columns, axis=0)
    a, b, c = nnls(columns / lengths, np.ones_like(n))[0] / lengths
    whole = a + b + c
    kappa = c / whole
    sigma = min(max(b / whole + kappa, 1e-6), 1.0 - 1e-6)
    return np.array([-math.log(whole), sigma, max(kappa, 1e-15)])


def peaks(by_block: Sequence[Mapping[float, float]]) -> list[float]:
    """The peak of the law fitted to each single block. `by_block` maps connections to throughput.

    A block without a result at some load is left out, because its curve cannot be compared with the others.
    """
    if not by_block:
        return []
    loads = set().union(*by_block)
    return [fit(list(block), list(block.values())).peak for block in by_block if set(block) == loads]
