"""The base of all models of an experiment, and types that several of them use."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from dbdyno.experiment.cpus import parse_cpus
from dbdyno.experiment.limits import LIMITS

DURATION_S_MAX = LIMITS["duration_us"] / 1e6

# The value of a server or session variable.
VariableValue = str | int | Annotated[float, Field(allow_inf_nan=False)] | bool
Duration = Annotated[float, Field(gt=0, le=DURATION_S_MAX)]


def _cpu_list(text: str) -> str:
    parse_cpus(text)
    return text


CpuList = Annotated[str, AfterValidator(_cpu_list)]


class Model(BaseModel):
    """A frozen model that rejects unknown keys and converts no types: "8" is not 8, and 1 is not true.

    The docstring of a field is its description in the JSON Schema of the experiment file (`file_schema`) and
    in docs/experiment.md. A field of type `SkipJsonSchema` is not a key of the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


# Keys whose form in the file differs from that in the model: field -> key.
_KEYS = {"workloads": "workload", "variants": "variant", "factors": "factor", "half_width_percent": "when"}


def file_key(field: str) -> str:
    """The key of a field in the experiment file: times have no unit in their names."""
    return _KEYS.get(field, field.removesuffix("_s"))


def file_keys(model: type[BaseModel]) -> list[str]:
    """The keys of a model's table in the experiment file."""
    fields = model.model_fields.items()
    return [file_key(name) for name, field in fields if SkipJsonSchema not in map(type, field.metadata)]
