"""The interface of all workloads."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

from pydantic import Field

from dbdyno.experiment.base import Model

# Names that become names of files too.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"


class BaseWorkload(Model):
    """A transaction that is repeated, and its data."""

    # Narrowed by each kind of workload.
    name: str
    # Its title in results; required where two workloads of an experiment have the same name.
    label: str | None = Field(default=None, pattern=NAME)
    # Prepared statements, or text.
    statements: Literal["prepared", "text"] = "prepared"

    @property
    def title(self) -> str:
        """Its name in results: the label, else the name. Unique in an experiment."""
        return self.label or self.name

    @property
    @abstractmethod
    def changes_row_count(self) -> bool:
        """Whether the tables may hold another number of rows after a run."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows to load, as far as they are known before; for estimates of time and space."""

    @property
    @abstractmethod
    def table_count(self) -> int:
        """Tables that a connection may have open."""

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The options that define the data; workloads with equal ones share them. JSON values only."""

    @abstractmethod
    def data_text(self) -> str:
        """Its data in a few words."""

    @abstractmethod
    def plan(self, protocol: str = "mysql") -> dict[str, Any]:
        """The `workload` of an engine plan; `protocol` is that of its target."""
