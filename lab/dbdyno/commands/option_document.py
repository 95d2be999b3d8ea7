"""Turns options into parts of an experiment file, and errors in these parts into errors in options.

The same rules as for a file check the options, and the run is stored and reported like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from dbdyno.experiment.errors import InputError
from dbdyno.experiment.workload import NAME

# Keys of an experiment file -> the options that set them.
OPTIONS = {
    "load.connections": "--connections",
    "load.rate": "--rate",
    "load.duration": "--time",
    "load.warmup": "--warmup",
    "load.max_rate": "--max-rate",
    "load.abort_if": "--abort-if",
    "client.workers": "--workers",
    "fleet.engines": "--fleet",
}
WORKLOAD_OPTIONS = {
    "tables": "--tables",
    "table_size": "--table-size",
    "options.tables": "--tables",
    "options.table_size": "--table-size",
}
_WORKLOAD_KEY = re.compile(r"workload\[[^\]]*\]\.(.+)")


def is_script(workload: str) -> bool:
    """Whether the workload is a Lua script."""
    return workload.endswith(".lua")


def workload_table(
    name: str, tables: int | None, table_size: int | None, file: Callable[[Path], Path]
) -> dict[str, Any]:
    """The table [[workload]] of a workload's name, an SQL file or a Lua script. `file` gives the path to
    write for one that was typed.
    """
    path = Path(name)
    workload: dict[str, Any] = {"name": name}
    if path.suffix == ".sql":
        workload = {"name": "sql", "file": str(file(path))}
    elif is_script(name):
        workload = {"script": str(file(path)), "options": {}}
    if path.suffix in (".sql", ".lua") and re.fullmatch(NAME, path.stem):
        workload["label"] = path.stem
    # A Lua script has options of its own for the number and size of tables.
    table_keys = workload["options"] if is_script(name) else workload
    if tables is not None:
        table_keys["tables"] = tables
    if table_size is not None:
        table_keys["table_size"] = table_size
    return workload


def numbers(
    option: str, text: str, number: Callable[[str], int | float], errors: list[InputError]
) -> list[int | float]:
    """The numbers of "2,4,8". Text that is not a number adds an error and gives [1]."""
    values: list[int | float] = []
    wrong: list[str] = []
    for part in text.split(","):
        try:
            values.append(number(part.strip()))
        except ValueError:
            wrong.append(part.strip())
    if wrong:
        kind = "a whole number" if number is int else "a number"
        shown = ", ".join(repr(part) for part in wrong)
        errors.append(InputError(option, text, f"{shown} is not {kind}", f"Write {option} 2,4,8"))
        return [1]
    return values


def with_option_name(error: InputError, workload_option: str) -> InputError:
    """The error with the name of the option instead of the key that the option sets; `workload_option` names
    the workload.
    """
    match = _WORKLOAD_KEY.fullmatch(error.key)
    if match is not None:
        named = {"name": workload_option, "script": workload_option, **WORKLOAD_OPTIONS}
        return replace(error, key=named.get(match[1], f"--set {match[1]}"))
    for name, option in OPTIONS.items():
        if error.key == name or error.key.startswith(f"{name}["):
            return replace(error, key=option)
        if error.key.startswith(f"{name}."):
            return replace(error, key=f"{option} {error.key.removeprefix(f'{name}.')}")
    return replace(error, key=f"--set {error.key}")


def as_toml(document: Mapping[str, Any]) -> str:
    """A document of tables and lists of tables as TOML."""
    lines: list[str] = []

    def table(header: str, prefix: str, content: Mapping[str, Any]) -> None:
        lines.append(header)
        nested = {key: value for key, value in content.items() if isinstance(value, Mapping)}
        lines.extend(f"{_key(key)} = {_value(value)}" for key, value in content.items() if key not in nested)
        for key, value in nested.items():
            table(f"[{prefix}.{_key(key)}]", f"{prefix}.{_key(key)}", value)

    for section, content in document.items():
        for entry in content if isinstance(content, list) else [content]:
            table(f"[[{section}]]" if isinstance(content, list) else f"[{section}]", section, entry)
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value in one line. Strings, numbers and booleans have the same syntax in JSON and TOML."""
    match value:
        case Mapping():
            return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case datetime() | date() | time():
            return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)
