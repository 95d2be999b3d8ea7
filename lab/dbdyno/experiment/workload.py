"""The kinds of workloads: SQL of the user (tables, parameters, transactions with expected row counts), the
OLTP family of sysbench with its option names and defaults, and a Lua script that was written for sysbench.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, create_model
from pydantic.json_schema import SkipJsonSchema

from dbdyno.experiment.base import LIMITS, Duration, Model
from dbdyno.experiment.dialect import DIALECTS, MYSQL, Dialect
from dbdyno.experiment.generators import Generator, Keys, KeysOrName, ParameterList, column, parameter
from dbdyno.experiment.load import Connections, Point, Rate
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.sql_text import (
    TABLE,
    Created,
    created_objects,
    drop_statements,
    replace_parameters,
    table_names,
)
from dbdyno.text import compose, compose_count

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


def _refuse_blank(sql: str) -> str:
    if not sql.strip():
        raise ValueError("this statement is empty; leave it out")
    return sql


Sql = Annotated[str, Field(min_length=1, max_length=LIMITS["sql_bytes"]), AfterValidator(_refuse_blank)]
Name = Annotated[str, Field(min_length=1, max_length=120)]
# How a statement reads its table: all rows, or by an index, which may have all columns that it needs.
ACCESS = r"^(scan|[A-Za-z_][A-Za-z0-9_]*(,covering)?)$"


# Statements and transactions have short forms. Below these pydantic validates Python's values, not JSON, so a
# tuple that accepts a list is not strict.
class SqlStatement(Model):
    """One statement, with `:name` for each parameter."""

    sql: Sql
    """The statement, with `:name` for each parameter."""
    name: Name | None = None
    """Name in records, by default the transaction's name and a number; equal names are counted together."""
    rows: int | None = Field(default=None, ge=0)
    """Rows that the statement must return or change; more than 1 % mismatches stop the comparison (D04)."""
    rows_parameter: Name | None = None
    """Parameter of the statement whose value is the number of these rows, such as that of a LIMIT."""
    mode: Literal["prepared", "text"] | None = None
    """Send this statement prepared or as text, if other than the workload's `statements`."""
    draw: tuple[str, ...] = Field(default=(), strict=False)
    """Parameters that get a new value just before this statement, not once per transaction."""
    repeat: int = Field(default=1, ge=1, le=100_000)
    """How often the statement is sent."""
    access: str | None = Field(default=None, pattern=ACCESS)
    """Plan that P08 expects of EXPLAIN: `scan`, an index or `primary`, with `,covering` if it suffices."""
    # Its line in the workload's .sql file.
    line: SkipJsonSchema[int | None] = Field(default=None, exclude=True)

    def plan(self) -> dict[str, Any]:
        """The statement of an engine plan."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"line", "access"})


# A statement without further keys.
_StatementText = Annotated[Sql, Field(description=SqlStatement.model_fields["sql"].description)]


def _as_statement(value: Any) -> Any:
    return {"sql": value} if isinstance(value, str) else value


class SqlLoop(Model):
    """Consecutive statements of a transaction that are repeated together."""

    first: int = Field(ge=1)
    """Number of the first statement, from 1."""
    last: int = Field(ge=1)
    """Number of the last statement."""
    times: Annotated[int, Field(ge=1, le=100_000)] | Name
    """How often they are executed: a number, or a parameter with integers."""


class SqlTransaction(Model):
    """Statements that belong together, executed as one transaction."""

    name: Name | None = None
    """Name of the transaction in records, by default `transaction` and a number."""
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """Frequency relative to the other transactions."""
    statements: tuple[
        Annotated[
            SqlStatement, BeforeValidator(_as_statement, json_schema_input_type=_StatementText | SqlStatement)
        ],
        ...,
    ] = Field(min_length=1, strict=False)
    """The statements, in order; a string is a statement without further keys."""
    loops: tuple[SqlLoop, ...] = Field(default=(), strict=False)
    """Groups of statements that are repeated together, such as the lines of an order."""
    keying_s: Duration | None = None
    """Closed loop: the pause of a connection before the transaction; no latency includes it."""
    think_s: Duration | None = None
    """Closed loop: mean of the pause after it, exponentially distributed up to ten times the mean."""

    def plan(self, *, pauses: bool = True) -> dict[str, Any]:
        """The transaction of an engine plan, with its pauses if `pauses`."""
        name = {"name": self.name} if self.name else {}
        plan = {
            **name,
            "weight": self.weight,
            "statements": [statement.plan() for statement in self.statements],
        }
        if self.loops:
            plan["loops"] = [loop.model_dump() for loop in self.loops]
        for key, seconds in (("keying_us", self.keying_s), ("think_us", self.think_s)):
            if pauses and seconds:
                plan[key] = round(seconds * 1e6)
        return plan


# The keys of a transaction that one of a single statement has besides those of the statement.
_TRANSACTION_KEYS = ("weight", "loops", "keying", "think")
_transaction_fields: Any = {
    name: (field.annotation, field)
    for name, field in SqlTransaction.model_fields.items()
    if field.alias in _TRANSACTION_KEYS
}
SqlTransactionOfOneStatement = create_model(
    "SqlTransactionOfOneStatement",
    __base__=SqlStatement,
    __doc__="A transaction of one statement, which has its name.",
    **_transaction_fields,
)


def _as_transaction(value: Any) -> Any:
    """A transaction of one statement in full: a text, or the table of the statement."""
    value = _as_statement(value)
    if not isinstance(value, dict) or "sql" not in value or "statements" in value:
        return value
    # The statement has the transaction's name.
    shared = {key: value[key] for key in ("name", *_TRANSACTION_KEYS) if key in value}
    return {**shared, "statements": [{key: value[key] for key in value if key not in _TRANSACTION_KEYS}]}


AnyTransaction = Annotated[
    SqlTransaction,
    BeforeValidator(
        _as_transaction,
        json_schema_input_type=_StatementText | SqlTransactionOfOneStatement | SqlTransaction,
    ),
]


def _one_of(value: Any) -> Any:
    return f"one_of({', '.join(map(repr, value))})" if isinstance(value, list) else value


class SqlConsistency(Model):
    """A condition that the data meet whenever no transaction is in progress."""

    name: Name
    """Name of the condition."""
    sql: Sql
    """A query that returns a row for each violation, and no row if the data are consistent."""
    # Its line in the workload's .sql file.
    line: SkipJsonSchema[int | None] = Field(default=None, exclude=True)


class SqlTable(Model):
    """A table that `setup` creates and dbdyno fills with generated rows."""

    rows: int = Field(ge=0, le=LIMITS["table_size"])
    """Number of rows."""
    columns: dict[str, str] = Field(min_length=1)
    """A generator for each column, as in `"zipfian(1, 1_000)"`; other columns get their defaults."""
    parent: str | None = Field(default=None, pattern=r"^[^.]+\.[^.]+$")
    """`table.column`: this earlier table's column says how many of the rows belong to each of its rows."""

    def parent_plan(self) -> dict[str, Any]:
        """The parent in an engine plan."""
        if self.parent is None:
            return {}
        table, column = self.parent.split(".")
        return {"parent": {"table": table, "rows": column}}


class SqlReplay(Model):
    """A log with recorded statements, used instead of transactions."""

    file: str = Field(min_length=1)
    """The log, relative to the experiment file."""
    format: Literal["queries", "general-log", "slow-log", "postgresql-log", "postgresql-csv"] = "queries"
    """Statements with semicolons, a general or slow query log of MySQL or MariaDB, or a log of PostgreSQL."""
    database: str | None = None
    """Replay only statements that were recorded in this database; those whose database the log does not name
    are left out, and counted."""


class SqlWorkload(BaseWorkload):
    """User-written transactions."""

    name: Literal["sql"]
    """Always `sql`."""
    file: str | None = Field(default=None, exclude=True)
    """A .sql file with the following keys; parameters and numbers of rows here replace those of the file."""
    options: dict[str, int | float] = Field(default_factory=dict)
    """Values of the options that the .sql file declares; those of a bundled workload are keys themselves."""
    parameters: dict[
        str, Annotated[str, BeforeValidator(_one_of, json_schema_input_type=str | list[float | str])]
    ] = Field(default_factory=dict)
    """For each `:name` in statements the source of its values: a generator, or a list of values."""
    transactions: tuple[AnyTransaction, ...] = ()
    """The transactions; a string is a transaction of one statement. Required without `file` and `replay`."""
    replay: SqlReplay | None = None
    """A recorded log, instead of transactions."""
    order: Literal["weighted", "in-order", "each-in-order"] = "weighted"
    """Which transaction is next: at random, or in order from one list, or from one list per connection."""
    tables: dict[str, SqlTable] = Field(default_factory=dict)
    """The tables that dbdyno fills with generated rows, in this order, after `setup` has created them."""
    setup: tuple[Sql, ...] = ()
    """Statements that create the tables, in order."""
    after: tuple[Sql, ...] = ()
    """Statements that run after the rows are loaded, such as CREATE INDEX."""
    prewarm: tuple[Sql, ...] = ()
    """Statements of `load.prewarm = "scan"`; without any, every generated table is read."""
    cleanup: tuple[Sql, ...] = ()
    """Statements that remove the data on servers that dbdyno does not start. By default DROP for the tables,
    views and sequences of `setup`, and on MySQL and MariaDB its routines."""
    session: tuple[Sql, ...] = ()
    """Statements that every new connection sends first; they are not counted."""
    reconnect_every: int | None = Field(default=None, ge=0, le=2**32 - 1)
    """Transactions after which a connection is closed and opened again, instead of that of `[load]`."""
    pauses: bool = True
    """Wait for the `keying` and `think` times of the transactions."""
    consistency: tuple[SqlConsistency, ...] = ()
    """Conditions that the data must meet after each group of trials (P24)."""
    main_statement: Name | None = None
    """A statement whose rate per minute is in the result (R19), such as the last one of a transaction."""
    description: str | None = Field(default=None, max_length=300)
    """What the workload does, in one sentence."""
    background: tuple[Background, ...] = ()
    """Loads of SQL with a rate of their own, which run on the same tables during each trial."""

    @property
    def row_counts(self) -> dict[str, int]:
        """Rows of each generated table, for `rows(TABLE)`."""
        return {name: table.rows for name, table in self.tables.items()}

    @property
    def has_pauses(self) -> bool:
        """Whether connections pause before or after a transaction."""
        return self.pauses and any(
            transaction.keying_s or transaction.think_s for transaction in self.transactions
        )

    def generator(self, name: str) -> Generator:
        """The generator of a parameter. Raises ValueError, whose text says what to write."""
        return parameter(self.parameters[name], self.row_counts)

    def plan_parameters(self) -> dict[str, Generator]:
        """The generators of an engine plan: every value of a list is a parameter. Raises ValueError."""
        generators: dict[str, Generator] = {}
        for name in self.parameters:
            generator = self.generator(name)
            if isinstance(generator, ParameterList):
                generators |= dict(zip(member_names(name, generator), generator.members(), strict=True))
            else:
                generators[name] = generator
        return generators

    def column(self, table: str, name: str) -> dict[str, Any]:
        """A generated column in an engine plan. Raises ValueError, whose text says what to write."""
        return column(name, self.tables[table].columns[name], self.row_counts)

    def table_plans(self) -> list[dict[str, Any]]:
        """The generated tables in an engine plan."""
        return [
            {
                "name": title,
                "rows": table.rows,
                "columns": [self.column(title, name) for name in table.columns],
                **table.parent_plan(),
            }
            for title, table in self.tables.items()
        ]

    def named_statements(self) -> Iterator[tuple[str, SqlTransaction, SqlStatement]]:
        """Every statement with its name in records, and its transaction."""
        for number, transaction in enumerate(self.transactions, start=1):
            transaction_name = transaction.name or f"transaction{number}"
            for position, statement in enumerate(transaction.statements, start=1):
                yield statement.name or f"{transaction_name}.{position}", transaction, statement

    def created_tables(self, protocol: str) -> dict[str, str]:
        """The tables that loading creates: name -> name as written in `setup`."""
        generated = {name: name for name in self.tables}
        created = {
            created_object.name: created_object.written
            for created_object in self.created_objects(protocol)
            if created_object.kind == TABLE
        }
        return {**generated, **created}

    def created_objects(self, protocol: str) -> list[Created]:
        """What `setup` creates."""
        return created_objects(self.setup, DIALECTS[protocol])

    @property
    def has_data(self) -> bool:
        """Whether there is anything to load; if not, the load uses existing data."""
        return bool(self.setup or self.tables)

    def scans(self, protocol: str) -> Iterator[str]:
        """The statements of `load.prewarm = "scan"`: the workload's own, else one for each generated table.

        The latter reads the table itself, because no index has all columns.
        """
        if self.prewarm:
            yield from self.prewarm
            return
        for title, table in self.tables.items():
            dialect = DIALECTS[protocol]
            names = (dialect.quote(dialect.fold(name)) for name in table.columns)
            sums = ", ".join(f"SUM(LENGTH(CAST({name} AS CHAR)))" for name in names)
            yield f"SELECT {sums} FROM {self.created_tables(protocol)[title]}"

    @property
    def changes_row_count(self) -> bool:
        """True: its statements may change any table."""
        return True

    @property
    def rows(self) -> int:
        """Rows of the generated tables; rows that `setup` inserts are unknown."""
        return sum(table.rows for table in self.tables.values())

    @property
    def table_count(self) -> int:
        """Number of tables that the statements name, at least one."""
        return max(1, len(table_names((entry.sql for _, _, entry in self.named_statements()), MYSQL)))

    def data(self) -> dict[str, Any]:
        """The settings that define the tables."""
        return {"setup": list(self.setup), "tables": self.table_plans(), "after": list(self.after)}

    def data_text(self) -> str:
        """A short description of what is loaded."""
        if self.tables:
            return compose_count(
                len(self.tables),
                "{rows:,} rows generated in {number} table",
                "{rows:,} rows generated in {number} tables",
                rows=self.rows,
            )
        if self.setup:
            return compose_count(
                len(self.setup),
                "created by its {number} setup statement",
                "created by its {number} setup statements",
            )
        return compose("existing data")

    def plan(self, protocol: str = "mysql") -> dict[str, Any]:
        """See `BaseWorkload`."""
        sql: dict[str, Any] = {
            "parameters": {name: generator.plan() for name, generator in self.plan_parameters().items()},
            "transactions": self._transaction_plans(DIALECTS[protocol]),
            "order": self.order,
        }
        if self.replay is not None:
            sql["replay"] = self.replay.model_dump(exclude_none=True)
        for name in ("setup", "after", "session"):
            if statements := getattr(self, name):
                sql[name] = list(statements)
        drops = drop_statements(self.created_objects(protocol), DIALECTS[protocol])
        if cleanup := list(self.cleanup) or drops:
            sql["cleanup"] = cleanup
        if self.tables:
            sql["tables"] = self.table_plans()
        return {"name": self.name, "statements": self.statements, "sql": sql}

    def _transaction_plans(self, dialect: Dialect) -> list[dict[str, Any]]:
        """The transactions of an engine plan."""
        plans = [transaction.plan(pauses=self.pauses) for transaction in self.transactions]
        generators = {name: self.generator(name) for name in self.parameters}
        lists = {
            name: member_names(name, entry)
            for name, entry in generators.items()
            if isinstance(entry, ParameterList)
        }
        if lists:
            texts = {name: ", ".join(f":{member}" for member in members) for name, members in lists.items()}
            for statement in (entry for plan in plans for entry in plan["statements"]):
                statement["sql"] = replace_parameters(statement["sql"], texts, dialect)
                statement["draw"] = [entry for name in statement["draw"] for entry in lists.get(name, [name])]
        return plans


def member_names(name: str, parameter_list: ParameterList) -> list[str]:
    """The parameters of the engine that are the values of a list."""
    return [f"{name}_{number}" for number in range(1, parameter_list.count + 1)]


class Background(SqlWorkload):
    """A second load during the trials of a workload: own transactions, own connections, own figures."""

    name: Literal["sql"] = "sql"
    """`sql`, which may be left out, or a bundled workload of `dbdyno workloads`."""
    label: str | None = Field(default="background", pattern=TITLE)
    """Name in results; required if a workload has several."""
    connections: Connections
    """Number of connections; with `rate` the maximum of busy connections."""
    rate: Rate | None = None
    """Transactions per second, an open loop; without it a closed loop."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """With `rate`: the intervals between scheduled starts are random (`poisson`) or `constant`."""
    # A background load has none of its own.
    background: SkipJsonSchema[tuple[()]] = ()

    @property
    def point(self) -> Point:
        """Its load."""
        return Point(connections=self.connections, rate=self.rate)

    @property
    def load_text(self) -> str:
        """Its load in words."""
        if self.rate is None:
            return compose_count(self.connections, "on {number} connection", "on {number} connections")
        return compose_count(
            self.connections,
            "{rate:,g} transactions/s on at most {number} connection",
            "{rate:,g} transactions/s on at most {number} connections",
            rate=self.rate,
        )


def open_sequences(workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parameters of a workload's plan that are sequences without end."""
    generators = workload.get("sql", {}).get("parameters", {}).values()
    return [
        generator["sequence"]
        for generator in generators
        if "sequence" in generator and generator["sequence"]["last"] is None
    ]


SqlWorkload.model_rebuild()


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


def is_script(workload: dict[str, Any]) -> bool:
    """Whether a `[[workload]]` is a script."""
    return "script" in workload


def workload_title(workload: dict[str, Any]) -> str:
    """The title of a `[[workload]]`: its label, its name, or the script's file name without `.lua`."""
    if isinstance(path := workload.get("script"), str):
        stem = Path(path).stem
        return str(workload.get("label", stem if re.fullmatch(NAME, stem) else "lua"))
    return str(workload.get("label", workload.get("name")))
