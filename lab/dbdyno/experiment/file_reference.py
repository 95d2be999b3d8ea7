"""Writes the generated tables of documents: `python -m dbdyno.experiment.file_reference FILE…`.

A table of keys stands between `<!-- keys of MODEL -->` and `<!-- end -->`, and its facts are those of the
model. The table of the bundled workloads follows `<!-- workloads -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dbdyno.experiment import bundled
from dbdyno.experiment.base import Model, file_key, file_keys
from dbdyno.experiment.file_schema import Schema, file_schema
from dbdyno.experiment.server import NEEDED, ONLY_FOR

_MARKED = re.compile(r"(<!-- keys of (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_WORKLOADS = re.compile(r"(<!-- workloads -->\n).*?(<!-- end -->\n)", re.DOTALL)
_PLURAL = {"whole number": "whole numbers", "number": "numbers", "table": "tables"}
_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def with_tables(text: str) -> str:
    """A document with the tables of the models that it names, and of the workloads."""
    text = _WORKLOADS.sub(lambda part: f"{part[1]}\n{_workloads()}\n{part[2]}", text)
    named = {model.__name__: model for model in _models(Model)}
    shown = {name for _, name, _ in _MARKED.findall(text)}
    schema = file_schema()
    return _MARKED.sub(lambda part: f"{part[1]}\n{_table(named[part[2]], schema, shown)}\n{part[3]}", text)


def _workloads() -> str:
    """The bundled workloads that are files, with their options and defaults."""
    rows = [
        f"| `{name}` | {bundled.description(name)} | "
        f"{', '.join(f'`{key} = {one.default:_}`' for key, one in bundled.options(name).items())} |"
        for name in bundled.names()
    ]
    return "\n".join(["| workload | what it does | options |", "|---|---|---|", *rows]) + "\n"


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _table(model: type[BaseModel], schema: Schema, shown: set[str]) -> str:
    """The keys of a model, except those of a base class that has its own table."""
    bases = [base for base in model.__mro__[1:] if issubclass(base, BaseModel)]
    elsewhere = {key for base in bases if base.__name__ in shown for key in file_keys(base)}
    fields = {file_key(name): field for name, field in model.model_fields.items()}
    tables = schema["$defs"]
    descriptions = tables.get(model.__name__) or next(
        tables[one.__name__] for one in _models(model) if one.__name__ in tables
    )
    keys = [key for key in file_keys(model) if key in descriptions["properties"] and key not in elsewhere]
    inherited = {key for base in bases for key in file_keys(base)}
    # Required keys first, those of base classes last.
    keys.sort(key=lambda key: (not fields[key].is_required(), key in inherited))
    rows = [
        _row(key, descriptions["properties"][key], schema, is_required=fields[key].is_required())
        for key in keys
    ]
    return "\n".join(["| key | meaning | value | default |", "|---|---|---|---|", *rows]) + "\n"


def _row(key: str, field: Schema, schema: Schema, *, is_required: bool) -> str:
    kinds = next((kinds for name, kinds in ONLY_FOR.items() if file_key(name) == key), ())
    is_needed = bool(kinds) and all(key in NEEDED.get(kind, ()) for kind in kinds)
    default = "required" if is_required or is_needed else _default(field.get("default"))
    return f"| `{key}` | {_meaning(field, schema)} | {_value(field, schema)} | {default} |"


def _default(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, bool):
        return json.dumps(value)
    return f"`{value}`" if isinstance(value, str) else _number(value)


def _meaning(field: Schema, schema: Schema) -> str:
    """The description without the full stop; links and code are Markdown already."""
    reference = field.get("$ref") or next(
        (one["$ref"] for one in field.get("anyOf", ()) if "$ref" in one), ""
    )
    text = field.get("description") or _at(reference, schema)["description"]
    return " ".join(text.split()).removesuffix(".").replace("|", "\\|")


def _value(field: Schema, schema: Schema, *, is_plural: bool = False) -> str:
    """The values that a key accepts: their type, their limits."""
    if "$ref" in field:
        return _value(_at(field["$ref"], schema), schema, is_plural=is_plural)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in field:
            values = (_value(one, schema, is_plural=is_plural) for one in field[choice])
            return " or ".join(dict.fromkeys(values))
    match field:
        case {"const": value}:
            return f"`{value}`"
        case {"enum": values}:
            return " · ".join(f"`{value}`" for value in values)
        case {"x-seconds": limits}:
            return "time" + _limits(limits, "h", 3600)
        case {"type": "array", "items": items}:
            return f"list of {_value(items, schema, is_plural=True)}" + _limits(field)
        case {"type": [*kinds]}:
            return " or ".join(_TYPES[kind] for kind in kinds)
        case {"type": "object"}:
            return "tables" if is_plural else "table"
    name = _TYPES[field["type"]]
    if is_plural:
        return _PLURAL.get(name, name) + ("" if name == "text" else _limits(field))
    return name + _limits(field)


def _limits(field: Schema, unit: str = "", size: float = 1) -> str:
    """The limits of a value, in words."""
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    limits = {
        words[key]: f"{_number(field[key] / size)}{unit if field[key] else ''}"
        for key in words
        if key in field
    }
    if "at least" in limits and "at most" in limits:
        return f", {limits['at least']} to {limits['at most']}"
    if unit and limits.get("above") == "0":
        del limits["above"]
    if "maxLength" in field:
        limits["at most"] = f"{field['maxLength']:,} characters"
    return "".join(f", {word} {limit}" for word, limit in limits.items())


def _number(value: float) -> str:
    power = round(value + 1).bit_length() - 1
    if value >= 2**31 and value + 1 == 2**power:
        return f"2^{power} - 1"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _at(reference: str, schema: Schema) -> Schema:
    node = schema
    for part in reference.split("/")[1:]:
        node = node[part]
    return node


if __name__ == "__main__":
    for document in map(Path, sys.argv[1:]):
        document.write_text(with_tables(document.read_text()))
