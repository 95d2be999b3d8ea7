"""Reference pages of the site that are generated: commands from their help, files from their JSON schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dbdyno.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
Schema = dict[str, Any]

# Schema -> the title of its section, and what the file is.
_FILES = {
    "verdict": ("verdict.json", "The verdict of a run: what the sentences say, as numbers."),
    "measured": ("measured.json", "The figures of every trial that the verdict used."),
    "explained": ("explained.json", "What one transaction cost each server."),
    "events": (
        "Records of the engine",
        "What `dbdyno-engine` writes, one JSON object a line; `type` names the record.",
    ),
    "plan": (
        "The engine's plan",
        "What `dbdyno-engine` reads on standard input; `dbdyno` writes it from an experiment.",
    ),
}


def commands() -> str:
    """The page with the help of every command."""
    parts = ["# Commands\n", _help(), *(f"## {name}\n\n{_help(name)}" for name in COMMANDS)]
    return "\n".join(parts)


def _help(*command: str) -> str:
    environment = os.environ | {"COLUMNS": "100"}
    output = subprocess.run(
        [sys.executable, "-m", "dbdyno", *command, "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return f"```text\n{output.strip()}\n```\n"


def files() -> str:
    """The page with every field of the files that other programs may read."""
    parts = [
        "# Files\n\nFormats of the files in the folder of a run, and of the engine's input and output.\n"
    ]
    for name, (title, purpose) in _FILES.items():
        schema = json.loads((ROOT / f"schema/{name}.schema.json").read_text())
        parts.append(f"## {title}\n\n{purpose} Schema: [{name}.schema.json](schema/{name}.schema.json).\n")
        parts += _objects(title, schema)
    return "\n".join(parts)


def _objects(title: str, schema: Schema) -> list[str]:
    """A table for each object of a schema, the outermost first."""
    parts = [_object("", schema)] if "properties" in schema else []
    if records := [record for record in schema.get("oneOf", []) if "type" in record.get("properties", {})]:
        parts.append(_record_types(records))
    parts += [
        _object(f"### {title}: {name}\n", definition) for name, definition in schema.get("$defs", {}).items()
    ]
    return [part for part in parts if part]


def _record_types(records: list[Schema]) -> str:
    """A table of the records of a stream: their type, and the object in `data`."""
    rows = [
        f"| {_type(record['properties']['type'])} | {_type(record['properties'].get('data', {}))} "
        f"| {_cell(record.get('description', ''))} |"
        for record in records
    ]
    return "| `type` | `data` | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _object(heading: str, schema: Schema) -> str:
    rows = _rows(schema)
    if not rows:
        return ""
    description = _cell(schema.get("description", ""))
    return f"{heading}\n{description}\n\n| key | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _rows(schema: Schema) -> list[str]:
    alternatives = schema.get("oneOf", []) + schema.get("anyOf", [])
    rows = [
        f"| `{key}` | {_type(field)} | {_cell(field.get('description', ''))} |"
        for key, field in schema.get("properties", {}).items()
    ]
    if schema.get("enum"):
        rows += [f"| `{value}` | value | |" for value in schema["enum"]]
    for alternative in alternatives:
        if "const" in alternative:
            rows.append(f"| `{alternative['const']}` | value | {_cell(alternative.get('description', ''))} |")
        else:
            rows += _rows(alternative)
    return rows


def _type(field: Schema) -> str:
    if "$ref" in field:
        return str(field["$ref"].rsplit("/", 1)[-1])
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in field:
            return " or ".join(dict.fromkeys(_type(alternative) for alternative in field[key]))
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}" if isinstance(field.get("items"), dict) else "list"
    kinds = field.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
