"""SQL of the user's own against real servers: what is counted is what the server did.

Every count is held against the server's own: its counters, and what stands in
the tables afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import variant

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

ROWS = 500


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def server(workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """A private server with two small tables of the user's own."""
    mariadb = request.param == "mariadb"
    spec = variant("sql") if mariadb else Variant(name="sql", server=ServerSpec(product="postgresql"))
    with closing(LocalServer(spec, workspace, None)) as server:
        server.start()
        item, log = table(server, "item"), table(server, "log")
        server.query(f"CREATE TABLE {item} (id INT PRIMARY KEY, owner VARCHAR(20), n INT NOT NULL)")
        rows = ",".join(f"({number}, 'owner{number % 7}', 0)" for number in range(1, ROWS + 1))
        server.query(f"INSERT INTO {item} VALUES {rows}")
        server.query(f"CREATE TABLE {log} (id BIGINT PRIMARY KEY, item INT, why VARCHAR(20))")
        if not mariadb:
            server.query(f"GRANT ALL ON {item}, {log} TO {server.address().user}")
        yield server


def table(server: LocalServer, name: str) -> str:
    """How the administrator names a table of the load's schema."""
    address = server.address()
    return name if address.target()["protocol"] == "postgresql" else f"{address.database}.{name}"


def run(
    server: LocalServer, sql: dict[str, Any], command: Any = "run", **changes: Any
) -> tuple[EngineResult, list[Any]]:
    """The result and every record of a run of these transactions, or of what comes before and after it."""
    address = server.address()
    workload = {"name": "sql", "statements": changes.pop("statements", "prepared"), "sql": sql}
    plan: dict[str, Any] = {
        "schema": 1,
        "target": address.target(),
        "workload": workload,
        "load": {"connections": 4},
        "phases": {"measure_us": 60_000_000, "events": 400},
        "seed": 3,
        **changes,
    }
    records: list[Any] = []
    result = Engine().run(command, plan, address.environment(), records.append)
    return result, records


def measured(result: EngineResult) -> dict[str, Any]:
    """The counts of the measurement."""
    assert result.end is not None
    counts: dict[str, Any] = result.end["phases"]["measure"]
    return counts


def kinds(records: list[Any]) -> dict[str, tuple[int, int]]:
    """How often each statement was answered, by its name, and rows that broke the contract."""
    totals: dict[str, list[int]] = {}
    for record in records:
        if record["type"] != "statements":
            continue
        for name, kind in record["data"]["kinds"].items():
            total = totals.setdefault(name, [0, 0])
            total[0] += kind["count"]
            total[1] += kind["row_count_mismatches"]
    return {name: (count, broken) for name, (count, broken) in totals.items()}


MIXED = {
    "parameters": {
        "id": {"integer": {"low": 1, "high": ROWS, "distribution": {"zipfian": {"exponent": 0.9}}}},
        "next": {"sequence": {"first": 1000}},
        "why": {"one_of": {"values": ["it's", "?", None], "weights": [1, 1, 1]}},
        "owner": {"result": {"statement": "look"}},
    },
    "transactions": [
        {
            "name": "write",
            "weight": 3,
            "statements": [
                {"sql": "BEGIN", "name": "begin"},
                {"sql": "SELECT owner FROM item WHERE id = :id", "name": "look", "rows": 1},
                {
                    "sql": "UPDATE item SET n = n + 1 WHERE id = :id AND owner = :owner",
                    "name": "change",
                    "rows": 1,
                },
                {"sql": "INSERT INTO log VALUES (:next, :id, :why)", "name": "add", "rows": 1},
                {"sql": "COMMIT", "name": "commit"},
            ],
        },
        {
            "name": "read",
            "statements": [
                {"sql": "SELECT ':id', n FROM item WHERE id = :id", "rows": 1, "draw": ["id"], "repeat": 2}
            ],
        },
    ],
}


@pytest.mark.parametrize("statements", ["prepared", "text"])
def test_counts_are_the_servers(server: LocalServer, statements: str) -> None:
    """Each statement is counted where its name says, and what it did stands in the tables."""
    server.query(f"DELETE FROM {table(server, 'log')}")
    server.query(f"UPDATE {table(server, 'item')} SET n = 0")
    result, records = run(server, MIXED, statements=statements)
    assert result.done, result.failure()
    counts, seen = measured(result), kinds(records)
    writes = seen["add"][0]
    assert 230 < writes < 370  # Three quarters of 400; nine standard deviations on either side.
    assert seen["read.1"] == (2 * (400 - writes), 0)
    assert {seen[name] for name in ("begin", "look", "change", "add", "commit")} == {(writes, 0)}
    assert (counts["events"], counts["row_count_mismatches"]) == (400, 0)
    assert counts["reads"] == writes + seen["read.1"][0]
    assert (counts["writes"], counts["other"]) == (2 * writes, 2 * writes + counts["retries"])
    ((rows, ids, changed),) = server.query(
        f"SELECT COUNT(*), COUNT(DISTINCT id), (SELECT SUM(n) FROM {table(server, 'item')}) "
        f"FROM {table(server, 'log')}"
    )
    assert (rows, ids, int(changed)) == (writes, writes, writes)
    why = dict(server.query(f"SELECT COALESCE(why, 'NULL'), COUNT(*) FROM {table(server, 'log')} GROUP BY 1"))
    assert set(why) == {"it's", "?", "NULL"}
    kinds_described = {kind["kind"]: kind for kind in result.hello["statements"]} if result.hello else {}
    # One whose result is kept travels as text.
    assert kinds_described["look"]["prepared"] is False
    assert kinds_described["add"]["prepared"] is (statements == "prepared")


def test_a_broken_contract_is_counted(server: LocalServer) -> None:
    """Half of the keys have no row."""
    sql = {
        "parameters": {"id": {"integer": {"low": 1, "high": 2 * ROWS}}},
        "transactions": [{"statements": [{"sql": "SELECT n FROM item WHERE id = :id", "rows": 1}]}],
    }
    result, _ = run(server, sql)
    assert result.done, result.failure()
    assert 100 < measured(result)["row_count_mismatches"] < 300


def test_a_replay_plays_each_query_once(server: LocalServer, tmp_path: Path) -> None:
    """A list of queries in order, taken by all users together, and values of a file."""
    server.query(f"DELETE FROM {table(server, 'log')}")
    ids = tmp_path / "ids.csv"
    ids.write_text("id,why\n" + "".join(f"{number},line {number}\n" for number in range(400)))
    column = {"from": {"path": str(ids)}, "order": "in-order"}
    queries = [
        {"statements": [{"sql": f"INSERT INTO log VALUES ({number}, 0, 'what?')", "name": "insert"}]}
        for number in range(1000, 1399)
    ]
    listed = {
        "parameters": {
            "id": {"csv": {**column, "column": "id"}},
            "why": {"csv": {**column, "column": "why"}},
        },
        "order": "in-order",
        "transactions": [
            *queries,
            {"statements": [{"sql": "INSERT INTO log VALUES (:id, 1, :why)", "repeat": 1}]},
        ],
    }
    result, records = run(server, listed, statements="text")
    assert result.done, result.failure()
    assert kinds(records)["insert"] == (399, 0)
    ((rows, least, most),) = server.query(
        f"SELECT COUNT(*), MIN(id), MAX(id) FROM {table(server, 'log')} WHERE item = 0"
    )
    assert (rows, least, most) == (399, 1000, 1398)
    ((one_id, why),) = server.query(f"SELECT id, why FROM {table(server, 'log')} WHERE item = 1")
    assert why == f"line {one_id}"


def test_errors_come_at_once_and_before_the_run(server: LocalServer, tmp_path: Path) -> None:
    """What is wrong with the transactions, and then what is wrong with their files."""
    wrong = {"transactions": [{"weight": -1, "statements": [{"sql": "SELECT :who", "repeat": 0}]}]}
    result, _ = run(server, wrong)
    assert result.exit_code == 2
    for part in ("the weight of transaction1 is -1", "uses :who", "has repeat 0"):
        assert part in result.stderr
    gone = {"csv": {"from": {"path": str(tmp_path / "gone.csv")}, "column": "a"}}
    sql = {"parameters": {"a": gone}, "transactions": [{"statements": [{"sql": "SELECT :a"}]}]}
    result, _ = run(server, sql)
    assert result.exit_code == 2
    assert "parameters.a: " in result.stderr
    assert "gone.csv" in result.stderr


def test_users_play_as_much_as_each_is_to(server: LocalServer) -> None:
    """Statements for every connection and for its end, and a limit for every user."""
    server.query(f"DELETE FROM {table(server, 'log')}")
    own = "pg_backend_pid()" if server.address().target()["protocol"] == "postgresql" else "CONNECTION_ID()"
    sql = {
        "parameters": {"next": {"sequence": {}}},
        "session": ["BEGIN"],
        "teardown": ["COMMIT"],
        "each": 25,
        "transactions": [
            {"statements": [{"sql": f"INSERT INTO log VALUES (:next, {own}, NULL)", "rows": 1}]}
        ],
    }
    result, _ = run(server, sql, phases={"measure_us": 60_000_000})
    assert result.done, result.failure()
    assert measured(result)["writes"] == 100
    # Without the last COMMIT nothing would stand there.
    users = server.query(f"SELECT item, COUNT(*), MAX(id) FROM {table(server, 'log')} GROUP BY item")
    assert [int(rows) for _, rows, _ in users] == [25] * 4
    assert max(int(most) for *_, most in users) == 100


def test_what_is_set_up_is_there_and_is_taken_away(server: LocalServer) -> None:
    """`prepare` sends the statements of the set-up in order, `cleanup` those that undo it."""
    sql = {
        "setup": ["CREATE TABLE own (id INT PRIMARY KEY)", "INSERT INTO own VALUES (1), (2), (3)"],
        "cleanup": ["DROP TABLE own"],
        "parameters": {"id": {"integer": {"high": 3}}},
        "transactions": [{"statements": [{"sql": "SELECT id FROM own WHERE id = :id", "rows": 1}]}],
    }
    for command in ("prepare", "run"):
        result, _ = run(server, sql, command)
        assert result.done, result.failure()
    assert measured(result)["row_count_mismatches"] == 0
    again, _ = run(server, sql, "prepare")
    assert "CREATE TABLE own" in again.failure()  # It does not bear to be sent twice, and says which one.
    result, _ = run(server, sql, "cleanup")
    assert result.done, result.failure()
    assert not run(server, sql)[0].done


def test_an_error_names_the_statement(server: LocalServer) -> None:
    """A table that is not there, found when it is prepared or sent."""
    sql = {"transactions": [{"statements": [{"sql": "SELECT 1 FROM nowhere"}]}]}
    for statements in ("prepared", "text"):
        result, _ = run(server, sql, statements=statements)
        assert not result.done
        number = "42P01" if server.address().protocol == "postgresql" else "1146"
        assert number in result.failure()
        assert "nowhere" in result.failure()
