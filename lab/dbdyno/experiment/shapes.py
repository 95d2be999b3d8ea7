"""Load shapes: how the load changes within a measurement. Each has one class and one field of `Shapes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel, model_validator
from typing_extensions import override

from dbdyno.experiment.base import LIMITS, Duration, Model
from dbdyno.text import compose

_US = 1_000_000

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


class Ramp(Model, LoadShape):
    """A load that rises or falls linearly to each point's load."""

    from_percent: Share = 0.0
    """Initial load, in percent of the point's load."""
    duration_s: Duration
    """Duration of the ramp."""

    @property
    @override
    def length_s(self) -> float:
        return self.duration_s

    @override
    def percents(self) -> tuple[float, ...]:
        return self.from_percent, 100.0

    @override
    def text(self) -> str:
        return compose(
            "a ramp from {percent:g} % over {duration_s:g} s",
            percent=self.from_percent,
            duration_s=self.duration_s,
        )

    @override
    def plan(self, level: float, gaps: str | None) -> dict[str, Any]:
        over_us = round(self.duration_s * _US)
        first = level * self.from_percent / 100
        if gaps is None:
            return {"closed_ramp": {"from": round(first), "to": round(level), "over_us": over_us}}
        return {"ramp": {"from_per_s": first, "to_per_s": level, "over_us": over_us, "gaps": gaps}}


class Step(Model):
    """A part of the measurement with its own load."""

    percent: Share
    """Load of the step, in percent of the point's load."""
    duration_s: Duration
    """Duration of the step."""


class Steps(RootModel[Annotated[tuple[Step, ...], Field(max_length=LIMITS["steps"])]], LoadShape):
    """A load that changes in steps; the last step lasts until the measurement ends."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="after")
    def _some_load(self) -> Steps:
        if self.root and not any(self.percents()):
            raise ValueError("the steps have no load: one percent must be above 0")
        return self

    @property
    @override
    def length_s(self) -> float:
        return sum(step.duration_s for step in self.root)

    @override
    def percents(self) -> list[float]:
        return [step.percent for step in self.root]

    @override
    def text(self) -> str:
        low, high = min(self.percents()), max(self.percents())
        return compose(
            "{number} steps between {low:g} % and {high:g} % over {length_s:g} s",
            number=len(self.root),
            low=low,
            high=high,
            length_s=self.length_s,
        )

    @override
    def plan(self, level: float, gaps: str | None) -> dict[str, Any]:
        spans = [(level * step.percent / 100, round(step.duration_s * _US)) for step in self.root]
        if gaps is None:
            return {"closed_steps": {"steps": [{"connections": round(n), "for_us": us} for n, us in spans]}}
        return {"steps": {"steps": [{"rate_per_s": rate, "for_us": us} for rate, us in spans], "gaps": gaps}}


class Shapes(Model):
    """The load shapes by their keys in [load]; the warm-up runs under the initial load of the shape."""

    ramp: Ramp | None = None
    """The load changes linearly from an initial load to that of the point."""
    steps: Steps = Steps(())
    """The load changes in steps; the last one lasts until the measurement ends."""

    def chosen_shapes(self) -> dict[str, LoadShape]:
        """The shapes that change the load, by key."""
        shapes = {name: getattr(self, name) for name in Shapes.model_fields}
        return {name: shape for name, shape in shapes.items() if shape is not None and shape.length_s > 0}

    @property
    def shape(self) -> LoadShape | None:
        """How the load changes; None if it is constant."""
        return next(iter(self.chosen_shapes().values()), None)
