"""The limits of a load on a server that others use: what ends it at once."""

from __future__ import annotations

from pydantic import Field, model_validator

from dbdyno.experiment.promise import Percentiles, percent_of


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
