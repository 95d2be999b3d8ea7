"""Limits of latency: the promise of an experiment, below which its capacity is judged, and what ends
at once a load on a server that others use.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from dbdyno.experiment.base import LatencyLimit, Model
from dbdyno.experiment.metrics import percentile_of
from dbdyno.text import compose

# The rates of a promise without `rate`, as shares of the weaker variant's highest throughput.
SHARES = tuple(round(0.5 * 2.1 ** (step / 7.0), 4) for step in range(8))
Percentile = Literal[
    "latency_p50_us", "latency_p90_us", "latency_p95_us", "latency_p99_us", "latency_p999_us"
]
_FIGURES: dict[str, Percentile] = {
    "p50": "latency_p50_us",
    "p90": "latency_p90_us",
    "p95": "latency_p95_us",
    "p99": "latency_p99_us",
    "p999": "latency_p999_us",
}


class Percentiles(Model):
    """Percentiles of latency and their limits."""

    p50_s: LatencyLimit | None = None
    """The median latency stays below this time."""
    p90_s: LatencyLimit | None = None
    """The 90th percentile of latency stays below this time."""
    p95_s: LatencyLimit | None = None
    """The 95th percentile of latency stays below this time."""
    p99_s: LatencyLimit | None = None
    """The 99th percentile of latency stays below this time."""
    p999_s: LatencyLimit | None = None
    """The 99.9th percentile of latency stays below this time."""

    def limits_s(self) -> list[tuple[str, float]]:
        """The names of the percentiles that have a limit, with that in seconds."""
        values = ((name, getattr(self, f"{name}_s")) for name in _FIGURES)
        return [(name, value) for name, value in values if value is not None]


def percent_of(name: str) -> float:
    """The percentage of a percentile's name: 99.9 for p999."""
    percent = percentile_of(_FIGURES[name])
    assert percent is not None, "the figure is a percentile"
    return percent


class Promise(Percentiles):
    """`[load] promise`: one percentile of latency and its limit."""

    @model_validator(mode="after")
    def _one(self) -> Promise:
        if len(self.limits_s()) != 1:
            raise ValueError('a promise is one percentile and its limit: { p99 = "20ms" }')
        return self

    @property
    def limit_s(self) -> float:
        """The limit in seconds."""
        return self.limits_s()[0][1]

    @property
    def limit_us(self) -> float:
        """The limit in microseconds, the unit of the figures."""
        return self.limit_s * 1e6

    @property
    def metric(self) -> Percentile:
        """The figure that must stay below the limit."""
        return _FIGURES[self.limits_s()[0][0]]

    @property
    def percentile(self) -> str:
        """Its name in sentences: "p99", "p99.9"."""
        return self.limits_s()[0][0].replace("p999", "p99.9")

    @property
    def share_beyond(self) -> float:
        """The share of the transactions that may take longer than the limit."""
        return round(1.0 - percent_of(self.limits_s()[0][0]) / 100.0, 6)

    def text(self) -> str:
        """The promise as a clause: "p99 latency stays below 20 ms"."""
        limit_s = self.limit_s
        limit = f"{limit_s:g} s" if limit_s >= 1.0 else f"{limit_s * 1e3:g} ms"
        return compose("{percentile} latency stays below {limit}", percentile=self.percentile, limit=limit)


def rate_text(rate: float) -> str:
    """A rate or capacity as text, without the unit: 1,234, 56.7, 0.89."""
    return f"{rate:,.0f}" if rate >= 100.0 else f"{rate:.3g}"


def found_rates(peak: float) -> list[float]:
    """The rates to measure if the weaker variant reaches at most `peak` transactions/s."""
    return [float(f"{share * peak:.3g}") for share in SHARES]


class AbortIf(Percentiles):
    """`[load] abort_if`: the load ends within a second when one of these limits is exceeded."""

    errors_per_1000: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The most errors per 1,000 transactions."""

    @model_validator(mode="after")
    def _some(self) -> AbortIf:
        if not self.limits_s() and self.errors_per_1000 is None:
            raise ValueError('abort_if is at least one limit: { p99 = "500ms", errors_per_1000 = 10 }')
        return self

    def latency_limits(self) -> list[tuple[float, float]]:
        """The percentiles, such as 99.9, with their limits in seconds."""
        return [(percent_of(name), limit_s) for name, limit_s in self.limits_s()]


def parse_abort_if(text: str) -> dict[str, str | float]:
    """The table of a text such as "p99=500ms,errors_per_1000=10". Raises ValueError."""
    table: dict[str, str | float] = {}
    for part in text.split(","):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not name or not value:
            raise ValueError(f"{part!r} is not a limit: write p99=500ms or errors_per_1000=10")
        if name in table:
            raise ValueError(f"{name} is there twice: keep one")
        try:
            table[name] = float(value) if name == "errors_per_1000" else value
        except ValueError:
            raise ValueError(f"errors_per_1000={value}: this is not a number") from None
    return table
