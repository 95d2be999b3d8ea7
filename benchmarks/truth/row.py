"""Guarantees about the verdicts, and what was measured of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scipy.special import bdtrc, ndtr

# Standard errors by which a measured share may be beyond its limit by chance.
ERRORS = 3.0
# A rate of 5 % has experiments until its standard error is at most this. Some hits are added to it, so that
# it does not look certain after few experiments.
ERROR_MAX, ADDED_HITS = 0.004, 2


@dataclass(frozen=True)
class Sample:
    """A part of the experiments for a guarantee. Each has its own random numbers."""

    count: int
    part: int = 0

    def seed(self, of_guarantee: int) -> int:
        """The seed of this part, from that of the guarantee."""
        return of_guarantee + 1_000 * self.part


@dataclass(frozen=True)
class Row:
    """One guarantee, its limit and the measured share of the experiments."""

    guarantee: str
    experiments: int
    measured: float
    limit: float
    # Whether the limit is an upper limit; else it is a lower limit.
    at_most: bool = True
    # Standard deviation of one experiment's value; None if the value is yes or no.
    deviation: float | None = None

    @property
    def error(self) -> float:
        """Monte-Carlo standard error of the measured share."""
        if self.deviation is not None:
            return self.deviation / math.sqrt(self.experiments)
        return math.sqrt(self.measured * (1.0 - self.measured) / self.experiments)

    @property
    def holds(self) -> bool:
        """Whether the measured share is within the limit, apart from the error of the simulation."""
        if self.deviation is not None:
            slack = ERRORS * self.error
            return (
                self.measured <= self.limit + slack if self.at_most else self.measured >= self.limit - slack
            )
        # The probability of so many hits, or more, if the share is the limit.
        measured, limit = (
            (self.measured, self.limit) if self.at_most else (1.0 - self.measured, 1.0 - self.limit)
        )
        hits = round(measured * self.experiments)
        return hits == 0 or bool(bdtrc(hits - 1, self.experiments, limit) > ndtr(-ERRORS))

    @property
    def experiments_needed(self) -> int:
        """About how many experiments a rate of 5 % needs for its standard error; 0 for other guarantees."""
        if self.deviation is not None or 0.05 < self.limit < 0.95:
            return 0
        misses = self.measured if self.at_most else 1.0 - self.measured
        share = (misses * self.experiments + ADDED_HITS) / (self.experiments + 2 * ADDED_HITS)
        return math.ceil(share * (1.0 - share) / ERROR_MAX**2)


def merge(parts: Sequence[Row]) -> Row:
    """One row from those of several parts."""
    experiments = sum(part.experiments for part in parts)

    def mean(values: Sequence[float]) -> float:
        return (
            math.fsum(value * part.experiments for value, part in zip(values, parts, strict=True))
            / experiments
        )

    deviations = [part.deviation**2 for part in parts if part.deviation is not None]
    return replace(
        parts[0],
        experiments=experiments,
        measured=mean([part.measured for part in parts]),
        deviation=math.sqrt(mean(deviations)) if deviations else None,
    )


@dataclass(frozen=True)
class Guarantee:
    """Measures one guarantee, or several in the same experiments."""

    measure: Callable[[Sample], list[Row]]
    # Time of one experiment, relative to a small one. Short forms have so many times fewer experiments.
    cost: int = 1
