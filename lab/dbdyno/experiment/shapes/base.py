"""The interface of load shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

US = 1_000_000

# In percent of a point's level: its rate, or its number of connections.
Share = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


class LoadShape(ABC):
    """How the load changes within the measurement."""

    @property
    @abstractmethod
    def length_s(self) -> float:
        """Length of the change; 0 where nothing changes."""

    @abstractmethod
    def percents(self) -> Iterable[float]:
        """The levels between which the load changes, in percent of the point's level."""

    @abstractmethod
    def text(self) -> str:
        """The shape as plans and reports name it."""

    @abstractmethod
    def plan(self, level: float, gaps: str | None) -> dict[str, Any]:
        """`load.shape` of a plan at a point of this level: a rate, or without `gaps` connections."""
