"""Steps: a sequence of loads, each with its duration."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel, model_validator
from typing_extensions import override

from dbdyno.experiment.base import Duration, Model
from dbdyno.experiment.limits import LIMITS
from dbdyno.experiment.shapes.base import US, LoadShape, Share
from dbdyno.text import compose


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
        spans = [(level * step.percent / 100, round(step.duration_s * US)) for step in self.root]
        if gaps is None:
            return {"closed_steps": {"steps": [{"connections": round(n), "for_us": us} for n, us in spans]}}
        return {"steps": {"steps": [{"rate_per_s": rate, "for_us": us} for rate, us in spans], "gaps": gaps}}
