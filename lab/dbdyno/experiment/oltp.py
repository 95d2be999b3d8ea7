"""The workloads of sysbench's OLTP family, with sysbench's option names and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dbdyno.experiment.base import Model
from dbdyno.experiment.limits import LIMITS
from dbdyno.experiment.workload import BaseWorkload

OltpName = Literal[
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_delete",
    "oltp_insert",
    "select_random_points",
    "select_random_ranges",
    "bulk_insert",
]

Count = Annotated[int, Field(ge=0, le=100_000)]

# The options that define the tables; the others define the queries.
DATA_OPTIONS = ("tables", "table_size", "auto_inc", "secondary", "create_secondary", "mysql_storage_engine")


class Keys(Model):
    """Which rows are accessed: sysbench's distributions, with its parameters and their defaults."""

    distribution: Literal["uniform", "gaussian", "special", "pareto", "zipfian"] = "uniform"
    # For gaussian and special: the number of uniform numbers that are averaged to give the bell curve.
    iterations: int = Field(default=12, ge=1, le=1000)
    # For special: width of the range of frequent values in percent of the rows, and its share of accesses in
    # percent.
    percent: int = Field(default=1, ge=0, le=100)
    hot_percent: int = Field(default=75, ge=0, le=100)
    # For pareto: a fraction h of the rows gets a fraction 1 - h of the accesses.
    h: float = Field(default=0.2, gt=0, lt=1)
    # For zipfian: row k is chosen in proportion to 1 / k^exponent.
    exponent: float = Field(default=0.8, ge=0, le=100)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"distribution": value} if isinstance(value, str) else value

    def plan(self) -> str | dict[str, Any]:
        """The `workload.keys` of an engine plan: the distribution with its own parameters only."""
        names = _KEY_PARAMETERS[self.distribution]
        return {self.distribution: {name: getattr(self, name) for name in names}} if names else "uniform"


_KEY_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "gaussian": ("iterations",),
    "special": ("iterations", "percent", "hot_percent"),
    "pareto": ("h",),
    "zipfian": ("exponent",),
}


class OltpWorkload(BaseWorkload):
    """A workload of sysbench's OLTP family, with sysbench's option names and defaults."""

    name: OltpName
    tables: int = Field(default=1, ge=1, le=LIMITS["tables"])
    table_size: int = Field(default=10_000, ge=1, le=LIMITS["table_size"])
    range_size: int = Field(default=100, ge=1, le=LIMITS["table_size"])
    point_selects: Count = 10
    simple_ranges: Count = 1
    sum_ranges: Count = 1
    order_ranges: Count = 1
    distinct_ranges: Count = 1
    index_updates: Count = 1
    non_index_updates: Count = 1
    delete_inserts: Count = 1
    random_points: int = Field(default=10, ge=1, le=LIMITS["parameters"])
    number_of_ranges: int = Field(default=10, ge=1, le=LIMITS["parameters"] // 2)
    delta: Count = 5
    range_selects: bool = True
    auto_inc: bool = True
    skip_trx: bool = False
    secondary: bool = False
    create_secondary: bool = True
    mysql_storage_engine: str = Field(default="innodb", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")
    keys: Keys = Field(default_factory=Keys)

    @property
    def changes_row_count(self) -> bool:
        """See `BaseWorkload`."""
        return self.name in ("oltp_delete", "oltp_insert", "bulk_insert")

    @property
    def fills_own_tables(self) -> bool:
        """Whether every connection inserts into its own table, which is empty at first."""
        return self.name == "bulk_insert"

    @property
    def rows(self) -> int:
        """The rows of all tables; an empty table counts as one row."""
        return self.tables * self.table_size

    @property
    def table_count(self) -> int:
        """The number of all tables."""
        return self.tables

    def data(self) -> dict[str, Any]:
        """The options that define the data."""
        stored = {name: getattr(self, name) for name in DATA_OPTIONS}
        return {**stored, "empty": True} if self.fills_own_tables else stored

    def data_text(self) -> str:
        """A short description of the data."""
        tables = "1 table" if self.tables == 1 else f"{self.tables} tables"
        return (
            f"{tables}, empty at first" if self.fills_own_tables else f"{tables} of {self.table_size:,} rows"
        )

    def plan(self, protocol: str = "mysql") -> dict[str, Any]:  # noqa: ARG002 — the engine writes their SQL.
        """The `workload` of an engine plan."""
        return {
            "name": self.name,
            "options": self.model_dump(exclude={"name", "label", "keys", "statements"}),
            "keys": self.keys.plan(),
            "statements": self.statements,
        }
