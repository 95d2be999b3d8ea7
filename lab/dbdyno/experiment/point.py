"""One load level of an experiment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dbdyno.experiment.base import Model
from dbdyno.experiment.limits import LIMITS

Connections = Annotated[int, Field(ge=1, le=LIMITS["connections"])]
Rate = Annotated[float, Field(gt=0, le=LIMITS["rate_per_s"], allow_inf_nan=False)]


class Point(Model):
    """One load level: connections in a closed loop; in an open loop a rate, and the maximum number of busy
    connections.
    """

    connections: Connections
    rate: Rate | None = None

    def as_dict(self) -> dict[str, int | float]:
        """The point as in `verdict.json` and `trial.json`: {"connections": n} or {"rate": r}."""
        return {"connections": self.connections} if self.rate is None else {"rate": self.rate}

    @property
    def level(self) -> float:
        """What distinguishes it from the other points: the rate, or the number of connections."""
        return self.connections if self.rate is None else self.rate
