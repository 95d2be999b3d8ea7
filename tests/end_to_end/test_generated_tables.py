"""Generated tables: the same rows on every server, however they travel, and nobody else's lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from tests.conftest import variant
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address
from dbdyno.servers.workspace import Workspace

ROWS = 21_000  # Enough for three streams in one table.
CUSTOMERS = 500

SETUP = [
    "CREATE TABLE IF NOT EXISTS customer (id BIGINT PRIMARY KEY, code VARCHAR(12) NOT NULL, born DATE)",
    "CREATE TABLE IF NOT EXISTS item (id BIGINT PRIMARY KEY, owner BIGINT NOT NULL REFERENCES customer(id), "
    "code VARCHAR(12), price DECIMAL(10,2) NOT NULL, hot INT NOT NULL, at TIMESTAMP(3) NULL, "
    "note VARCHAR(60), state VARCHAR(4) NOT NULL, own INT DEFAULT 7)",
]
TABLES = [
    {
        "name": "customer",
        "rows": CUSTOMERS,
        "columns": [
            {"name": "id", "values": {"sequence": {"first": 10, "step": 3}}},
            {"name": "code", "values": {"text": {"length": 12, "alphabet": "aé'\\\t\n,;€"}}},
            {"name": "born", "values": {"date": {"from": "1950-01-01", "to": "2010-12-31"}}, "nulls": 0.25},
        ],
    },
    {
        "name": "item",
        "rows": ROWS,
        "columns": [
            {"name": "id", "values": {"sequence": {}}},
            {"name": "owner", "values": {"foreign_key": {"table": "customer", "column": "id"}}},
            {"name": "code", "values": {"foreign_key": {"table": "customer", "column": "code"}}},
            {"name": "price", "values": {"decimal": {"low": -5, "high": 500}}},
            {
                "name": "hot",
                "values": {"integer": {"low": 1, "high": 50, "distribution": {"zipfian": {"exponent": 0.9}}}},
            },
            {
                "name": "at",
                "values": {
                    "timestamp": {
                        "from": "2024-03-31 00:30:00",
                        "to": "2024-03-31 04:00:00",
                        "digits": 3,
                        "order": "rising",
                    }
                },
            },
            {"name": "note", "values": {"text": {"length": {"low": 0, "high": 60}}}, "nulls": 0.1},
            {"name": "state", "values": {"one_of": {"values": ["new", "it's"], "weights": [9, 1]}}},
        ],
    },
]
SQL: dict[str, Any] = {
    "setup": SETUP,
    "tables": TABLES,
    "after": ["CREATE INDEX by_owner ON item (owner)"],
    "cleanup": ["DROP TABLE IF EXISTS item", "DROP TABLE IF EXISTS customer"],
    "parameters": {"id": {"integer": {"high": ROWS}}},
    "transactions": [{"statements": [{"sql": "SELECT owner FROM item WHERE id = :id", "rows": 1}]}],
}


@dataclass(frozen=True)
class Served:
    """A server, as these tests need it."""

    name: str
    address: Address
    query: Callable[[str], list[tuple[Any, ...]]]
    """What the administrator asks."""

    def table(self, name: str) -> str:
        """How the administrator names a table of the load's schema."""
        return name if self.name == "postgresql" else f"{self.address.database}.{name}"

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Every row of a table."""
        return [tuple(row) for row in self.query(f"SELECT * FROM {self.table(table)} ORDER BY id")]


@pytest.fixture(scope="module", params=["mariadb", "mysql", "postgresql"])
def server(workspace: Workspace, mysql: MySQLServer, request: pytest.FixtureRequest) -> Iterator[Served]:
    """One of each product; MySQL allows LOAD DATA LOCAL for the time."""
    if request.param == "mysql":
        mysql.sql("SET GLOBAL local_infile = ON")
        mysql.sql("SET GLOBAL time_zone = '+01:00'")
        yield Served("mysql", mysql.address(), mysql.sql)
        mysql.sql("SET GLOBAL local_infile = OFF")
        mysql.sql("SET GLOBAL time_zone = 'SYSTEM'")
        return
    mariadb = request.param == "mariadb"
    spec = variant("rows") if mariadb else Variant(name="rows", server=ServerSpec(product="postgresql"))
    with closing(LocalServer(spec, workspace, None)) as local:
        local.start()
        served = Served(request.param, local.address(), local.query)
        if mariadb:
            local.query("SET GLOBAL time_zone = '+01:00'")
        yield served


@pytest.fixture(autouse=True)
def clean(server: Served) -> Iterator[None]:
    """No table is left by one test to the next."""
    yield
    assert command(server, "cleanup").done


def command(server: Served, name: Any, sql: dict[str, Any] | None = None, **changes: Any) -> EngineResult:
    """The result of a command of the engine with these tables."""
    return told(server, name, sql, **changes)[0]


def told(
    server: Served, name: Any, sql: dict[str, Any] | None = None, **changes: Any
) -> tuple[EngineResult, list[Any]]:
    """The same and every record."""
    plan: dict[str, Any] = {
        "schema": 1,
        "target": server.address.target(),
        "workload": {"name": "sql", "sql": sql or SQL},
        "load": {"connections": 2},
        "phases": {"measure_us": 60_000_000, "events": 100},
        "seed": 5,
        **changes,
    }
    records: list[Any] = []
    result = Engine().run(name, plan, server.address.environment(), records.append)
    return result, records


SEEN: dict[str, list[tuple[Any, ...]]] = {}
"""What stood in the tables of the first server, by table."""


def test_rows_are_the_same_everywhere(server: Served) -> None:
    """By LOAD DATA or COPY in three streams, and by INSERT in one; on three products."""
    for method, streams in (("auto", 3), ("insert", 1)):
        result, records = told(server, "prepare", loading={"method": method, "streams": streams})
        assert result.done, result.failure()
        (loaded,) = [record["data"] for record in records if record["type"] == "loaded"]
        bulk = "copy" if server.name == "postgresql" else "load-data-local"
        assert loaded["way"] == ("insert" if method == "insert" else bulk)
        assert [(table["table"], table["rows"]) for table in loaded["tables"]] == [
            ("customer", CUSTOMERS),
            ("item", ROWS),
        ]
        time_zone = "UTC" if server.name == "postgresql" else "+00:00"
        assert list(loaded["session_settings"].values()) == [time_zone]
        for table in ("customer", "item"):
            rows = server.rows(table)
            assert SEEN.setdefault(table, rows) == rows
        assert command(server, "run").done
        assert command(server, "cleanup").done
    customers, items = SEEN["customer"], SEEN["item"]
    assert [row[0] for row in customers] == list(range(10, 10 + 3 * CUSTOMERS, 3))
    assert {row[1] for row in items} <= {row[0] for row in customers}
    assert {row[2] for row in items} <= {row[1] for row in customers}
    assert {row[8] for row in items} == {7}
    assert sorted(row[5] for row in items) == [row[5] for row in items]


def test_the_servers_time_is_utc(server: Served) -> None:
    """An hour that no clock in Berlin shows is stored as it stands in the plan."""
    assert command(server, "prepare").done
    sql = f"SELECT {{}} FROM {server.table('item')} WHERE id = 1"
    if server.name == "postgresql":
        ((seconds,),) = server.query(sql.format("EXTRACT(EPOCH FROM at)"))
    else:
        ((seconds,),) = server.query(sql.format("UNIX_TIMESTAMP(at)"))
    assert int(seconds) == 1_711_845_000


def test_a_second_prepare_keeps_what_is_complete(server: Served) -> None:
    """Rows of the same plan are kept, those of another are a conflict, and none is changed."""
    assert command(server, "prepare").done
    change = "UPDATE {} SET own = 8 WHERE id = 1"
    server.query(change.format(server.table("item")))
    result, records = told(server, "prepare")
    assert result.done, result.failure()
    steps = [(r["data"]["step"], r["data"]["table"]) for r in records if r["type"] == "loading"]
    assert steps == [("kept", "customer"), ("kept", "item")]
    other = command(server, "prepare", seed=6)
    assert other.end is not None
    assert other.end["reason"] == "data-conflict"
    for part in ("customer contains rows of another plan", "item contains rows of another plan", "seed=6"):
        assert part in other.failure()
    assert server.rows("item")[0][8] == 8


def test_what_was_left_unfinished_is_made_anew(server: Served) -> None:
    """A statement of `after` fails; the next prepare empties what it knows as its own and fills it again."""
    broken = {**SQL, "after": ["CREATE INDEX by_nothing ON item (nothing)"]}
    result = command(server, "prepare", broken)
    assert not result.done
    assert "by_nothing" in result.failure()
    result, records = told(server, "prepare")
    assert result.done, result.failure()
    assert [r["data"]["rows"] for r in records if r["type"] == "loaded"] == [ROWS + CUSTOMERS]
    assert len(server.rows("item")) == ROWS


def test_rows_of_others_are_never_touched(server: Served) -> None:
    """A table that holds a row already, and one that is not there."""
    row = "INSERT INTO customer VALUES (1, 'mine', NULL)"
    result = command(server, "prepare", {**SQL, "setup": [SETUP[0], row]})
    assert result.end is not None
    assert result.end["reason"] == "data-conflict"
    assert "customer contains rows that dbdyno did not load; table item does not exist" in result.failure()
    assert [row[1] for row in server.rows("customer")] == ["mine"]


def test_values_that_do_not_fit_are_told(server: Served) -> None:
    """LOAD DATA would cut them to size and only warn."""
    narrow = [SETUP[0].replace("VARCHAR(12)", "VARCHAR(11)")]
    for method in ("auto", "insert"):
        sql = {**SQL, "setup": narrow, "tables": TABLES[:1], "after": []}
        result = command(server, "prepare", sql, loading={"method": method, "streams": 2})
        assert not result.done
        expected = "character varying(11)" if server.name == "postgresql" else "'code'"
        assert expected in result.failure()
    twice = [{**TABLES[0], "columns": [{"name": "id", "values": {"constant": {"value": 3}}}]}]
    result = command(server, "prepare", {**SQL, "setup": [SETUP[0]], "tables": twice, "after": []})
    assert not result.done
