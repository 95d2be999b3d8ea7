"""Base classes and types of verdict.json, measured.json and explained.json, their JSON Schemas, and the
translations of their texts.

The files have the texts in English, and texts.json has the patterns and values of the texts, for reports in
other languages. A run of version 0.2.0 has no texts.json; what it says is shown in English.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dbdyno.experiment.metrics import KEY_PATTERN
from dbdyno.store.files import RESTORE, StoreProblem, read_json, write_json
from dbdyno.text import Text, as_json, from_json, recall

TEXTS = "texts.json"
# A point as files store it: {"connections": n} or {"rate": r}.
PointDict = Annotated[
    Mapping[str, int | float],
    Field(min_length=1, max_length=1, json_schema_extra={"propertyNames": {"enum": ["connections", "rate"]}}),
]
# The lower and the upper end of an interval; null for an end that is unknown or infinite.
IntervalEnds = tuple[float | None, float | None]
# A metric of verdicts, such as throughput or latency_p99_us.
Metric = Annotated[str, Field(pattern=KEY_PATTERN)]
# The secondary metrics; variation_percent is the coefficient of variation of the seconds.
SecondaryMetricKey = Literal[
    "latency_p50_us",
    "latency_p95_us",
    "latency_p99_us",
    "latency_p999_us",
    "errors_per_1000",
    "variation_percent",
]
# Why a call of `compare` ended.
# "decided": the rule of design.stop is met. "blocks": no planned block is left, including those of a top-up.
# "time": the next block would end after max_time, or the last one was interrupted then. "check": a check
# stopped the run. "failed": an error.
Why = Literal["decided", "blocks", "time", "interrupted", "check", "failed"]

# Turns the content of a file with an older schema into that of today; None if it cannot.
Translate = Callable[[Mapping[str, Any]], dict[str, Any] | None]

Value = TypeVar("Value")
# A key that the file omits if its value is None.
Optional = Annotated[Value | None, Field(exclude_if=lambda value: value is None)]
# A key that the file omits if its value is empty, 0 or false.
NotEmpty = Annotated[Value, Field(exclude_if=lambda value: not value)]


class DocumentPart(BaseModel):
    """An object within a document. Unknown keys are ignored, so a newer dbdyno can add keys."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, populate_by_name=True, serialize_by_alias=True
    )


class Document(DocumentPart):
    """The top-level object of a file."""

    @classmethod
    def read(cls, path: Path, translate: Translate | None = None) -> Self | None:
        """The file at `path`; None if it is missing, or has an older schema that `translate` does not know.

        Raises StoreProblem.
        """
        if not path.exists():
            return None
        value = read_json(path)
        version, current = value.get("schema", 0), cls.model_fields["schema_version"].default
        if version < current:
            value = translate(value) if translate else None
            if value is None:
                return None
        if version > current:
            raise StoreProblem(
                f"{path} was written by a newer dbdyno (schema version {version}; this dbdyno reads "
                f"{current})",
                "Use the newer dbdyno, or remove the file; dbdyno report then computes it again",
            )
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise StoreProblem(
                f"{path} does not match the schema: {key}: {first['msg']}",
                "Remove the file; dbdyno report then computes it again",
            ) from error

    def write(self, path: Path) -> None:
        """Write the file. Raises StoreProblem."""
        write_json(path, self.model_dump(mode="json"))

    @classmethod
    def schema_text(cls) -> str:
        """The JSON Schema, as committed in schema/."""
        schema: dict[str, Any] = cls.model_json_schema(mode="serialization")
        return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def read_texts(folder: Path) -> None:
    """Make the texts of a run known to `dbdyno.text.recall`. Raises StoreProblem."""
    path = folder / TEXTS
    if not path.exists():
        return
    value = read_json(path)
    try:
        for entry in value["texts"]:
            from_json(entry)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise StoreProblem(f"{path} is damaged: {error}", RESTORE) from error


def write_texts(folder: Path, *values: Any) -> None:
    """Store the texts that occur in these JSON values. Raises StoreProblem."""
    texts = {text: None for value in values for text in _texts(value)}
    write_json(folder / TEXTS, {"schema": 1, "texts": [as_json(text) for text in texts]})


def _texts(value: Any) -> Iterator[Text]:
    match value:
        case str():
            pattern = recall(value)
            if isinstance(pattern, Text):
                yield pattern
        case dict():
            for entry in value.values():
                yield from _texts(entry)
        case list() | tuple():
            for entry in value:
                yield from _texts(entry)
