"""The bundled workloads that are data files (`lab/dbdyno/workloads`), by name and by pattern.

A file's path without `.sql` is the workload's name. Files whose names begin with `_` are parts of others.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno.experiment.dialect import MYSQL
from dbdyno.experiment.errors import InputError
from dbdyno.experiment.sql_file import Option, read

_FOLDER = Path(__file__).parents[1] / "workloads"
_INCLUDE = re.compile(r"^-- @include (?P<name>.+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"^-- @description (.+)$", re.MULTILINE)


@cache
def names() -> tuple[str, ...]:
    """The names of all workloads, sorted."""
    files = (path for path in _FOLDER.rglob("*.sql") if not path.name.startswith("_"))
    return tuple(sorted(path.relative_to(_FOLDER).with_suffix("").as_posix() for path in files))


def path(name: str) -> Path:
    """The file of a workload."""
    return _FOLDER / f"{name}.sql"


def has(file: Path) -> bool:
    """Whether a file is that of a workload."""
    return file.is_relative_to(_FOLDER)


def description(name: str) -> str:
    """The sentence that says what a workload does."""
    match = _DESCRIPTION.search(path(name).read_text())
    assert match is not None, f"{name} has a line -- @description"
    return match[1]


@cache
def options(name: str) -> Mapping[str, Option]:
    """The options of a workload."""
    return read(definition(name), name, MYSQL).options


def definition(name: str) -> str:
    """The text of a workload, with the files that it includes: a file that does the same."""
    folder = path(name).parent
    return _INCLUDE.sub(lambda match: (folder / match["name"]).read_text().strip(), path(name).read_text())


def expand(document: dict[str, Any]) -> list[InputError]:
    """Replace each `[[workload]]` with a pattern or a list of names by one for each workload that it selects.

    Returns the errors, in the terms of the file.
    """
    if not isinstance(workloads := document.get("workload"), list):
        return []
    errors: list[InputError] = []
    document["workload"] = [entry for workload in workloads for entry in _expand_one(workload, errors)]
    return errors


def _expand_one(workload: Any, errors: list[InputError]) -> Iterator[Any]:
    value = workload.get("name") if isinstance(workload, dict) else None
    patterns = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, str)]
    if not patterns or not (isinstance(value, list) or _is_pattern(patterns[0])):
        yield workload
        return
    if "label" in workload:
        fix = "Remove the label; each workload has its name as its title"
        key = f"workload[{workload['label']}].label"
        errors.append(InputError(key, workload["label"], "several workloads share it", fix))
    selected: dict[str, None] = {}
    for pattern in patterns:
        matching = fnmatch.filter(names(), pattern) if _is_pattern(pattern) else [pattern]
        selected.update(dict.fromkeys(matching))
        if not matching:
            fix = "dbdyno workloads lists their names"
            errors.append(
                InputError(f"workload[{pattern}].name", pattern, "no bundled workload has such a name", fix)
            )
    rest = {key: content for key, content in workload.items() if key not in ("name", "label")}
    for name in selected or ("oltp_point_select",):
        yield {"name": name, **rest}


def _is_pattern(name: str) -> bool:
    return "/" in name and any(character in name for character in "*?[")
