"""Load shapes: how the load changes within a measurement. Each has one file and one line in `Shapes`."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, RootModel

from dbdyno.experiment.base import Model
from dbdyno.experiment.shapes.base import LoadShape
from dbdyno.experiment.shapes.ramp import Ramp
from dbdyno.experiment.shapes.steps import Step, Steps

__all__ = ["TABLES", "LoadShape", "Ramp", "Shapes", "Step", "Steps"]


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


def _table(annotation: Any) -> type[BaseModel]:
    """The model of a shape's table in the file; for a list of tables, the model of an entry."""
    models = (one for one in (annotation, *get_args(annotation)) if isinstance(one, type))
    model = next(one for one in models if issubclass(one, BaseModel))
    if issubclass(model, RootModel):
        model = next(iter(get_args(model.model_fields["root"].annotation)))
    return model


TABLES = {name: _table(field.annotation) for name, field in Shapes.model_fields.items()}
