"""The workloads of sysbench's OLTP family, with sysbench's option names and defaults."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dbdyno.experiment.base import LIMITS
from dbdyno.experiment.generators import Keys, KeysOrName
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.sql_workload import Background
from dbdyno.experiment.workload import BaseWorkload
from dbdyno.text import compose, compose_count

Count = Annotated[int, Field(ge=0, le=100_000)]

# The options that define the tables; the others define the queries.
DATA_OPTIONS = ("tables", "table_size", "auto_inc", "secondary", "create_secondary", "mysql_storage_engine")


class OltpWorkload(BaseWorkload):
    """A workload of sysbench's OLTP family, with sysbench's option names and defaults."""

    name: OltpName
    """Name of a bundled workload."""
    tables: int = Field(default=1, ge=1, le=LIMITS["tables"])
    """Number of tables, sbtest1 to sbtestN."""
    table_size: int = Field(default=10_000, ge=1, le=LIMITS["table_size"])
    """Rows per table."""
    range_size: int = Field(default=100, ge=1, le=LIMITS["table_size"])
    """Rows per range query."""
    point_selects: Count = 10
    """Queries of one row by its primary key, per transaction."""
    simple_ranges: Count = 1
    """Range queries per transaction."""
    sum_ranges: Count = 1
    """Range queries with SUM per transaction."""
    order_ranges: Count = 1
    """Range queries with ORDER BY per transaction."""
    distinct_ranges: Count = 1
    """Range queries with DISTINCT and ORDER BY per transaction."""
    index_updates: Count = 1
    """Updates of the indexed column k per transaction."""
    non_index_updates: Count = 1
    """Updates of the column c, which has no index, per transaction."""
    delete_inserts: Count = 1
    """Pairs of a DELETE and an INSERT of the same id per transaction."""
    random_points: int = Field(default=10, ge=1, le=LIMITS["parameters"])
    """Values of k in each query of `select_random_points`."""
    number_of_ranges: int = Field(default=10, ge=1, le=LIMITS["parameters"] // 2)
    """Ranges in each query of `select_random_ranges`."""
    delta: Count = 5
    """A range of `select_random_ranges` covers `delta` + 1 values."""
    range_selects: bool = True
    """Include the four kinds of range query (`simple_ranges` to `distinct_ranges`)."""
    auto_inc: bool = True
    """The id column is AUTO_INCREMENT."""
    skip_trx: bool = False
    """Omit BEGIN and COMMIT."""
    secondary: bool = False
    """The column id has a secondary index instead of the primary key."""
    create_secondary: bool = True
    """Create the index on k."""
    mysql_storage_engine: str = Field(default="innodb", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")
    """MySQL and MariaDB: storage engine of the tables."""
    keys: KeysOrName = Field(default_factory=Keys)
    """Distribution of the keys: its name, or a table with its parameters."""
    background: tuple[Background, ...] = ()
    """Loads of SQL with a rate of their own, which run on the same tables during each trial."""

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
        tables = compose_count(self.tables, "{number} table", "{number} tables")
        if self.fills_own_tables:
            return compose("{tables}, empty at first", tables=tables)
        return compose("{tables} of {rows:,} rows", tables=tables, rows=self.table_size)

    def plan(self, protocol: str = "mysql") -> dict[str, Any]:  # noqa: ARG002 — the engine writes their SQL.
        """The `workload` of an engine plan."""
        return {
            "name": self.name,
            "options": self.model_dump(exclude={"name", "label", "keys", "statements", "background"}),
            "keys": self.keys.plan(),
            "statements": self.statements,
        }
