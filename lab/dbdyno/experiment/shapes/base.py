"""The interface of load shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

US = 1_000_000

# In percent of the point's load: its rate, or its number of connections.
Share = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


class LoadShape(ABC):
    """How the load changes within the measurement."""

    @property
    @abstractmethod
    def length_s(self) -> float:
        """Seconds during which the load changes; 0 if it does not change."""

    @abstractmethod
    def percents(self) -> Iterable[float]:
        """The loads between which the shape changes, in percent of the point's load."""

    @abstractmethod
    def text(self) -> str:
        """The shape as text for plans and reports."""

    @abstractmethod
    def plan(self, level: float, gaps: str | None) -> dict[str, Any]:
        """`load.shape` of a plan. `level` is the point's rate or, without `gaps`, its number of
        connections.
        """
