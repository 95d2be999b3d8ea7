"""The workload of a Lua script that was written for sysbench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from dbdyno.experiment.base import file_keys
from dbdyno.experiment.keys import Keys
from dbdyno.experiment.workload import BaseWorkload
from dbdyno.text import compose

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
    keys: Keys = Field(default_factory=Keys)
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
KEYS = tuple(file_keys(ScriptWorkload))
