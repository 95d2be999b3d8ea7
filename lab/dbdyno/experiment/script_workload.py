"""The workload of a Lua script that was written for sysbench, and how its table in a file is resolved."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from dbdyno.experiment.base import file_keys
from dbdyno.experiment.errors import InputError
from dbdyno.experiment.file_reading import read_file
from dbdyno.experiment.generators import Keys, KeysOrName
from dbdyno.experiment.workload import BaseWorkload, workload_title
from dbdyno.text import compose

SCRIPT_BYTES_MAX = 16_000_000
Number = Annotated[float, Field(allow_inf_nan=False)]


class ScriptWorkload(BaseWorkload):
    """A script: its `prepare` fills the tables, and each of its events counts as a transaction."""

    name: SkipJsonSchema[Literal["lua"]]
    script: str = Field(min_length=1)
    """File of the script, relative to the experiment file."""
    options: dict[str, bool | int | Number | str] = Field(default_factory=dict)
    """Values of options that the script declares; a list is text with commas."""
    prepare: bool = True
    """The script creates the data and drops them at the end; false: the load uses existing data."""
    keys: KeysOrName = Field(default_factory=Keys)
    """Distribution of random keys where the script does not name one (`sysbench.rand.default`)."""
    # SHA-256 of the script and of the Lua files in its folder, which it may require.
    digest: SkipJsonSchema[str] = ""

    @property
    def changes_row_count(self) -> bool:
        """True, since the script's changes are unknown."""
        return True

    @property
    def rows(self) -> int:
        """0, since the number of rows that `prepare` creates is unknown."""
        return 0

    @property
    def table_count(self) -> int:
        """1, since the number of tables is unknown."""
        return 1

    @property
    def has_data(self) -> bool:
        """Whether the script creates its tables; if not, the load uses existing data."""
        return self.prepare

    def data(self) -> dict[str, Any]:
        """The script and its options, which determine the data that its `prepare` creates."""
        if not self.prepare:
            return {}
        return {"script": Path(self.script).name, "digest": self.digest, "options": self.options}

    def data_text(self) -> str:
        """A short description of the data's source."""
        if not self.prepare:
            return compose("existing data")
        options = ", ".join(f"{name} = {json.dumps(value)}" for name, value in self.options.items())
        script = Path(self.script).name
        if not options:
            return compose("created by prepare of {script}", script=script)
        return compose("created by prepare of {script} with {options}", script=script, options=options)

    def plan(self, protocol: str = "mysql") -> dict[str, Any]:  # noqa: ARG002 — the script writes its SQL.
        """The `workload` of an engine plan."""
        return {
            "name": self.name,
            "script": {"path": self.script, "options": self.options},
            "keys": self.keys.plan(),
            "statements": self.statements,
        }


# Keys of a script workload in an experiment file.
_KEYS = tuple(file_keys(ScriptWorkload))


def resolve_script(workload: dict[str, Any], folder: Path, errors: list[InputError]) -> dict[str, Any]:
    """A `[[workload]]` with its absolute path, its digest, and the file's name if it has no label."""
    place = f"workload[{workload_title(workload)}]"
    complete = {key: value for key, value in workload.items() if key in _KEYS}
    for key in (key for key in workload if key not in _KEYS):
        if key == "name":
            fix = "Leave one of them out; a label sets the title"
            errors.append(InputError(f"{place}.name", workload[key], "the workload also has a script", fix))
        else:
            fix = f"Known here: {', '.join(_KEYS)}. Write options of the script as options = {{ {key} = … }}"
            errors.append(InputError(f"{place}.{key}", workload[key], "a script has no such key", fix))
    complete = {**complete, "name": "lua", "label": workload_title(workload)}
    if isinstance(path := workload.get("script"), str):
        absolute = (folder / Path(path).expanduser()).resolve()
        complete["script"] = str(absolute)
        try:
            complete["digest"] = _digest(absolute)
        except OSError as error:
            fix = f"The path is {absolute}"
            errors.append(InputError(f"{place}.script", path, f"it cannot be read: {error.strerror}", fix))
    return complete


def _digest(script: Path) -> str:
    """SHA-256 of the script and of every Lua file in its folder, which it may require. Raises OSError."""
    content_hash = hashlib.sha256()
    for path in (script, *sorted(filter(Path.is_file, script.parent.glob("*.lua")))):
        content = read_file(path, SCRIPT_BYTES_MAX)
        content_hash.update(f"{path.name} {len(content)}\n".encode() + content)
    return content_hash.hexdigest()
