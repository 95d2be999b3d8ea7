"""What all workloads have in common, whatever they send."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

from pydantic import Field

from dbdyno.experiment.base import Model

# Names that become names of files too.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"


class BaseWorkload(Model):
    """The transaction that is repeated, and its data."""

    # Narrowed by each kind of workload.
    name: str
    # What it is called in results; needed where two workloads of an experiment have one name.
    label: str | None = Field(default=None, pattern=NAME)
    # How statements travel.
    statements: Literal["prepared", "text"] = "prepared"

    @property
    def title(self) -> str:
        """What it is called: its label, else its name. Unique in an experiment."""
        return self.label or self.name

    @property
    @abstractmethod
    def changes_row_count(self) -> bool:
        """Whether the tables hold other rows after a run than before it, by what the workload is."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows that loading makes, as far as they are known before; for estimates of time and space."""

    @property
    @abstractmethod
    def table_count(self) -> int:
        """Tables that a connection may have open."""

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """What decides which data there are: workloads with equal ones share them. JSON values only."""

    @abstractmethod
    def data_text(self) -> str:
        """Its data in a few words."""

    @abstractmethod
    def plan(self, protocol: str = "mysql") -> dict[str, Any]:
        """The `workload` of an engine plan; `protocol` is what its target speaks."""
