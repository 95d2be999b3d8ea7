"""The interface that all workloads implement, and what the table of any workload in a file is called."""

from __future__ import annotations

import re
from abc import abstractmethod
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dbdyno.experiment.base import Model

# Names that are also used as file names.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
# Titles of workloads: names, which may have a group in front, as in `micro/scan`.
TITLE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}(/[A-Za-z0-9][A-Za-z0-9._-]{0,79})?$"

# Bytes of a row of the bundled workloads on disk with its indexes, measured on MariaDB 10.11.
ROW_BYTES = 230.0


class BaseWorkload(Model):
    """Transactions that the load repeats, and their data."""

    # Each kind of workload restricts the type.
    name: str
    label: str | None = Field(default=None, pattern=TITLE)
    """Name in results, by default the `name`; required if two workloads have the same `name`."""
    statements: Literal["prepared", "text"] = "prepared"
    """Send prepared statements, or statements as text."""

    @property
    def title(self) -> str:
        """The workload's name in results: the label, else the name. Unique in an experiment."""
        return self.label or self.name

    @property
    @abstractmethod
    def changes_row_count(self) -> bool:
        """Whether a run may change the number of rows in the tables."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows to load, as far as they are known in advance; for estimates of time and space."""

    @property
    @abstractmethod
    def table_count(self) -> int:
        """Number of tables that a connection may have open."""

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The options that define the data; workloads with equal options share their data. JSON
        values only.
        """

    @abstractmethod
    def data_text(self) -> str:
        """A short description of the data."""

    @abstractmethod
    def plan(self, protocol: str = "mysql") -> dict[str, Any]:
        """The `workload` in an engine plan; `protocol` is that of the plan's target."""


def is_script(workload: dict[str, Any]) -> bool:
    """Whether a `[[workload]]` is a script."""
    return "script" in workload


def workload_title(workload: dict[str, Any]) -> str:
    """The title of a `[[workload]]`: its label, its name, or the script's file name without `.lua`."""
    if isinstance(path := workload.get("script"), str):
        stem = Path(path).stem
        return str(workload.get("label", stem if re.fullmatch(NAME, stem) else "lua"))
    return str(workload.get("label", workload.get("name")))
