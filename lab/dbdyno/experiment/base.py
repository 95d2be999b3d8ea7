"""The base of all models of an experiment, and the types of values that several of them use: limits of the
engine, durations, percentages, and CPU sets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
)
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, core_schema

from dbdyno.text import compose


class _Limits(dict[str, int]):
    """The engine's limits for a plan, so that dbdyno reports exceeded limits together with a file's other
    errors. `make docs` writes limits.json from engine/schema/src/plan/limits.rs; a test compares the two.
    """

    def __missing__(self, name: str) -> int:
        raise KeyError(f"experiment/limits.json has no {name}: run make docs, which asks the engine")


LIMITS = _Limits(json.loads(Path(__file__).with_name("limits.json").read_text()))
DURATION_S_MAX = LIMITS["duration_us"] / 1e6

# The value of a server or session variable.
VariableValue = str | int | Annotated[float, Field(allow_inf_nan=False)] | bool
# Units of durations, in seconds; `min` is how dbdyno prints minutes.
UNIT_S = {"h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# One number of each unit at most, in descending order: "2m", "4m30s", "1 h 02 min".
_NUMBER = r"\d+(\.\d+)?\s*"
_DURATION = rf"^\s*(?=\d)({_NUMBER}h\s*)?({_NUMBER}m(in)?(?!s)\s*)?({_NUMBER}s\s*)?({_NUMBER}ms\s*)?$"
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
HIGHEST_CPU = 8191


def parse_duration_s(text: object) -> float:
    """The seconds of a duration such as "500ms" or "2m". Raises ValueError, whose text says what to write."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        raise ValueError(f'a duration needs a unit: "{text}s", "{text}ms" or "{text}m"')
    if not isinstance(text, str) or re.search(_DURATION, text) is None:
        raise ValueError('a duration is a number and a unit: "30s", "500ms", "2m", "4m30s" or "1h"')
    return sum(float(number) * UNIT_S[unit] for number, unit in re.findall(r"([\d.]+)\s*([a-z]+)", text))


def is_in_file(info: ValidationInfo) -> bool:
    """Whether a value of the experiment file is validated, not one that is stored or made by code."""
    return info.context is not None


class _Time:
    """A number of seconds that has a unit in the experiment file. Its limits are seconds in the schema too,
    for docs/experiment.md.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def seconds(value: object, info: ValidationInfo) -> object:
            return parse_duration_s(value) if is_in_file(info) else value

        return core_schema.with_info_before_validator_function(seconds, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        limits = {key: value for key, value in handler(schema).items() if key != "type"}
        return {
            "type": "string",
            "pattern": _DURATION,
            "x-seconds": limits,
        }


Duration = Annotated[float, Field(gt=0, le=DURATION_S_MAX), _Time()]
# A duration that may be 0.
DurationOrZero = Annotated[float, Field(ge=0, le=DURATION_S_MAX), _Time()]
# A limit of latency; the engine's histograms end at an hour.
LatencyLimit = Annotated[float, Field(gt=0, le=3600.0), _Time()]


def parse_percent(text: object) -> float | None:
    """The number of a percentage such as "1.5%"; None if it is something else."""
    match = _PERCENT.fullmatch(text.strip()) if isinstance(text, str) else None
    return None if match is None else float(match[1])


def format_duration(seconds: float) -> str:
    """A duration for display, in whole seconds: "9 s", "4 min 05 s", "1 h 02 min"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return compose("{seconds} s", seconds=whole)
    if whole < 3600:
        return compose("{minutes} min {seconds} s", minutes=whole // 60, seconds=f"{whole % 60:02d}")
    return compose("{hours} h {minutes} min", hours=whole // 3600, minutes=f"{whole % 3600 // 60:02d}")


def parse_cpus(text: str) -> frozenset[int]:
    """The CPU numbers of a list in the syntax of Linux (taskset, cpusets, /proc), such as "0", "0-3" or
    "0,2-5". Raises ValueError with the wrong part.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part.strip()!r} is not a CPU number or range")
        low, high = int(first), int(last) if dash else int(first)
        if low > high:
            raise ValueError(f"the range {part.strip()!r} is in descending order")
        if high > HIGHEST_CPU:
            raise ValueError(f"{high} is above the highest CPU number, {HIGHEST_CPU}")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)


def format_cpus(numbers: frozenset[int]) -> str:
    """The shortest list that `parse_cpus` reads back: {0, 1, 2, 5} -> "0-2,5"."""
    parts: list[str] = []
    ordered = sorted(numbers)
    while ordered:
        length = 1
        while length < len(ordered) and ordered[length] == ordered[0] + length:
            length += 1
        parts.append(str(ordered[0]) if length == 1 else f"{ordered[0]}-{ordered[length - 1]}")
        ordered = ordered[length:]
    return ",".join(parts)


def _cpu_list(text: str) -> str:
    parse_cpus(text)
    return text


CpuList = Annotated[str, AfterValidator(_cpu_list)]


# Fields whose keys in the file have other names.
_KEYS = {"workloads": "workload", "variants": "variant", "factors": "factor", "half_width_percent": "when"}


def file_key(field: str) -> str:
    """The key of a field in the experiment file: times have no unit in their names."""
    return _KEYS.get(field, field.removesuffix("_s"))


class Model(BaseModel):
    """A frozen model that rejects unknown keys and converts no types: "8" is not 8, and 1 is not true.

    Code and stored runs use the names of the fields; the experiment file has the aliases as its keys. The
    docstring of a field is its description in the JSON Schema of the experiment file (`file_schema`) and in
    docs/experiment.md. A field of type `SkipJsonSchema` is not a key of the file.
    """

    model_config = ConfigDict(
        alias_generator=file_key,
        validate_by_alias=False,
        validate_by_name=True,
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def from_file(cls, table: Mapping[str, Any], valid: dict[str, Any] | None = None) -> Self:
        """The model of a table of the experiment file; `valid` collects the valid values of an experiment.

        Raises ValidationError.
        """
        # As JSON: strict mode then accepts a list for a tuple and text for a path, but not text for a number.
        text, context = json.dumps(table, default=str), {} if valid is None else valid
        return cls.model_validate_json(text, context=context, by_alias=True, by_name=False)


def file_keys(model: type[BaseModel]) -> list[str]:
    """The keys of a model's table in the experiment file."""
    fields = model.model_fields.items()
    return [file_key(name) for name, field in fields if SkipJsonSchema not in map(type, field.metadata)]
