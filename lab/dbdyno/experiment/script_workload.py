"""A Lua script with the interface of sysbench's scripts as a workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dbdyno.experiment.oltp import Keys
from dbdyno.experiment.workload import BaseWorkload

Number = Annotated[float, Field(allow_inf_nan=False)]


class ScriptWorkload(BaseWorkload):
    """A script: its own `prepare` fills the data, an event of it is a transaction."""

    name: Literal["lua"]
    # The file.
    script: str = Field(min_length=1)
    # Values of options that the script declares.
    options: dict[str, bool | int | Number | str] = Field(default_factory=dict)
    # Whether the script's `prepare` makes the data and its `cleanup` drops them; otherwise the load runs
    # over what is there.
    prepare: bool = True
    # What the script draws by where it names no distribution.
    keys: Keys = Field(default_factory=Keys)
    # SHA-256 of the script and of the Lua files in its folder, which it may require.
    digest: str = ""

    @property
    def changes_row_count(self) -> bool:
        """Taken to be so: what a script changes is not known."""
        return True

    @property
    def rows(self) -> int:
        """0: how many rows its `prepare` makes is not known."""
        return 0

    @property
    def table_count(self) -> int:
        """At least one; how many is not known."""
        return 1

    def data(self) -> dict[str, Any]:
        """The script and its options, which decide what its `prepare` makes."""
        if not self.prepare:
            return {}
        return {"script": Path(self.script).name, "digest": self.digest, "options": self.options}

    def data_text(self) -> str:
        """What makes the data."""
        if not self.prepare:
            return "what is there"
        options = ", ".join(f"{name} = {json.dumps(value)}" for name, value in self.options.items())
        return f"made by prepare of {Path(self.script).name}" + (f" with {options}" if options else "")

    def plan(self, protocol: str = "mysql") -> dict[str, Any]:  # noqa: ARG002 — the script writes its SQL.
        """The `workload` of an engine plan."""
        return {
            "name": self.name,
            "script": {"path": self.script, "options": self.options},
            "keys": self.keys.plan(),
            "statements": self.statements,
        }


# What an experiment file may say of a script; the digest is dbdyno's.
KEYS = tuple(key for key in ScriptWorkload.model_fields if key not in ("name", "digest"))
