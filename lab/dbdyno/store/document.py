"""What the JSON files of the judge have in common: their types in Python, and their published schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dbdyno.store.files import StoreProblem, read_json, write_json

# {"connections": n} or {"rate": r}.
PointDict = Annotated[
    Mapping[str, int | float],
    Field(min_length=1, max_length=1, json_schema_extra={"propertyNames": {"enum": ["connections", "rate"]}}),
]
# The ends of an interval; null is an open end.
IntervalEnds = tuple[float | None, float | None]
Metric = Literal["throughput", "latency_p95_us"]

Value = TypeVar("Value")
# A key that is absent where there is no value.
Optional = Annotated[Value | None, Field(exclude_if=lambda value: value is None)]


class DocumentPart(BaseModel):
    """A part of a document. Unknown keys are ignored, so a newer version may add some."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, populate_by_name=True, serialize_by_alias=True
    )


class Document(DocumentPart):
    """A whole file."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The file at `path`; None where it is missing or of an older schema. Raises StoreProblem."""
        if not path.exists():
            return None
        value = read_json(path)
        schema, known = value.get("schema", 0), cls.model_fields["schema_version"].default
        if schema < known:
            return None
        if schema > known:
            raise StoreProblem(
                f"{path} was written by a newer dbdyno (schema {schema}; this one reads {known})",
                "Use that version, or remove the file to have the run judged again",
            )
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise StoreProblem(
                f"{path} does not match the schema: {place}: {first['msg']}",
                "Remove the file to have the run judged again",
            ) from error

    def write(self, path: Path) -> None:
        """Write the file. Raises StoreProblem."""
        write_json(path, self.model_dump(mode="json"))

    @classmethod
    def schema_text(cls) -> str:
        """The JSON Schema, as committed in schema/."""
        schema: dict[str, Any] = cls.model_json_schema(mode="serialization")
        return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
