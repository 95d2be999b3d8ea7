"""Ramp: the load changes linearly from an initial load to the point's load."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from dbdyno.experiment.base import Duration, Model
from dbdyno.experiment.shapes.base import US, LoadShape, Share
from dbdyno.text import compose


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
        over_us = round(self.duration_s * US)
        first = level * self.from_percent / 100
        if gaps is None:
            return {"closed_ramp": {"from": round(first), "to": round(level), "over_us": over_us}}
        return {"ramp": {"from_per_s": first, "to_per_s": level, "over_us": over_us, "gaps": gaps}}
