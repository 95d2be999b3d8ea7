"""The JSON Schemas in schema/, of which each is compiled once for a test process."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs

FOLDER = Path(__file__).parents[1] / "schema"


def require_valid(value: Any, name: str) -> None:
    """Raise jsonschema_rs.ValidationError if a value does not obey the schema of that name."""
    _validator(name).validate(value)


@functools.cache
def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    return jsonschema_rs.Draft202012Validator(schema)
