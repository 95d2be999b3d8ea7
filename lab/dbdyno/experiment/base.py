"""The base of all models of an experiment, and types that several of them use."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dbdyno.experiment.cpus import parse_cpus
from dbdyno.experiment.limits import LIMITS

DURATION_S_MAX = LIMITS["duration_us"] / 1e6

Duration = Annotated[float, Field(gt=0, le=DURATION_S_MAX)]


def _cpu_list(text: str) -> str:
    parse_cpus(text)
    return text


CpuList = Annotated[str, AfterValidator(_cpu_list)]


class Model(BaseModel):
    """A frozen model that rejects unknown keys and converts no types: "8" is not 8, and 1 is not true."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
