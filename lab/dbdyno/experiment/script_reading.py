"""Resolves a `[[workload]]` with a Lua script: the absolute path, the digest and the name of the file."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from dbdyno.experiment.errors import InputError
from dbdyno.experiment.file_reading import read_file
from dbdyno.experiment.script_workload import KEYS
from dbdyno.experiment.workload import NAME

SCRIPT_BYTES_MAX = 16_000_000


def is_script(workload: dict[str, Any]) -> bool:
    """Whether a `[[workload]]` is a script."""
    return "script" in workload


def workload_title(workload: dict[str, Any]) -> str:
    """The title of a `[[workload]]`: its label, its name, or the script's file name without `.lua`."""
    if isinstance(path := workload.get("script"), str):
        stem = Path(path).stem
        return str(workload.get("label", stem if re.fullmatch(NAME, stem) else "lua"))
    return str(workload.get("label", workload.get("name")))


def resolve(workload: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """A `[[workload]]` with its absolute path, its digest, and the file's name if it has no label."""
    place = f"workload[{workload_title(workload)}]"
    complete = {key: value for key, value in workload.items() if key in KEYS}
    for key in (key for key in workload if key not in KEYS):
        if key == "name":
            fix = "Leave one of them out; a label sets the title"
            errors.append(InputError(f"{place}.name", workload[key], "the workload also has a script", fix))
        else:
            fix = f"Known here: {', '.join(KEYS)}. Write options of the script as options = {{ {key} = … }}"
            errors.append(InputError(f"{place}.{key}", workload[key], "a script has no such key", fix))
    complete = {**complete, "name": "lua", "label": workload_title(workload)}
    if isinstance(path := workload.get("script"), str):
        absolute = (folder / Path(path).expanduser()).resolve()
        complete["script"] = str(absolute)
        try:
            complete["digest"] = digest(absolute)
        except OSError as error:
            fix = f"The path is {absolute}"
            errors.append(InputError(f"{place}.script", path, f"it cannot be read: {error.strerror}", fix))
    return complete


def digest(script: Path) -> str:
    """SHA-256 of the script and of every Lua file in its folder, which it may require. Raises OSError."""
    content_hash = hashlib.sha256()
    for path in (script, *sorted(filter(Path.is_file, script.parent.glob("*.lua")))):
        content = read_file(path, SCRIPT_BYTES_MAX)
        content_hash.update(f"{path.name} {len(content)}\n".encode() + content)
    return content_hash.hexdigest()
