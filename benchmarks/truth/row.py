"""One promise about the verdicts, and what was measured of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

# Standard errors by which a measured share may be beyond its limit by chance.
ERRORS = 3.0


@dataclass(frozen=True)
class Row:
    """One promise, its limit and the measured share of the experiments."""

    promise: str
    experiments: int
    measured: float
    limit: float
    # Whether the limit is an upper limit; else it is a lower limit.
    at_most: bool = True

    @property
    def error(self) -> float:
        """Monte-Carlo standard error of the measured share."""
        return math.sqrt(self.measured * (1.0 - self.measured) / self.experiments)

    @property
    def holds(self) -> bool:
        """Whether the measured share is within the limit, apart from the error of the simulation."""
        slack = ERRORS * math.sqrt(self.limit * (1.0 - self.limit) / self.experiments)
        return self.measured <= self.limit + slack if self.at_most else self.measured >= self.limit - slack


# Measures one promise in a number of experiments.
Promise = Callable[[int], Row]
