"""Servers without room for all connections or their statements, and thousands of connections where there is.

What the engine says is held against what really fits.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from dbdyno.run.engine import Engine, EngineResult, find_engine
from dbdyno.servers.kinds.local import LocalServer

MANY = 3000
STATEMENTS = 11


@pytest.fixture(scope="module")
def loaded(mariadb: LocalServer) -> LocalServer:
    """The module's MariaDB with one small table."""
    result, _ = engine("prepare", mariadb, 1)
    assert result.done, result.failure()
    return mariadb


@pytest.fixture
def server(loaded: LocalServer) -> Iterator[LocalServer]:
    """The same, with the limits as they were after a test that changed them."""
    names = ("max_connections", "max_prepared_stmt_count")
    before = loaded.variables()
    yield loaded
    for name in names:
        loaded.query(f"SET GLOBAL {name} = {before[name]}")


def plan(server: LocalServer, connections: int, workload: str = "oltp_read_write") -> dict[str, Any]:
    """A run of a quarter of a second."""
    return {
        "schema": 1,
        "target": server.address().target(),
        "workload": {"name": workload, "options": {"tables": 1, "table_size": 1000}},
        "load": {"connections": connections},
        "phases": {"measure_us": 250_000},
        "seed": 1,
    }


def engine(
    command: Any, server: LocalServer, connections: int, **changes: Any
) -> tuple[EngineResult, list[Any]]:
    """The result and every record of one command."""
    records: list[Any] = []
    asked = {**plan(server, connections), **changes}
    result = Engine().run(command, asked, server.address().environment(), records.append)
    return result, records


def fitting(text: str) -> int:
    """The number of connections that is said to fit."""
    found = re.search(r"at most (\d+) connections fit", text)
    assert found is not None, text
    return int(found[1])


def test_statements_beyond_the_limit_are_counted_out(server: LocalServer) -> None:
    with pymysql.connect(
        unix_socket=server.address().unix_socket,
        user=server.address().user,
        password=server.address().password,
        database=server.address().database,
    ) as other:
        cursor = other.cursor()
        for number in range(7):
            cursor.execute(f"PREPARE held{number} FROM 'SELECT {number}'")
        server.query("SET GLOBAL max_prepared_stmt_count = 100")
        result, _ = engine("run", server, 20)
        assert result.exit_code == 3
        words = result.failure()
        assert "error 1461" in words
        assert f"20 connections with {STATEMENTS} prepared statements each need {20 * STATEMENTS}" in words
        assert "max_prepared_stmt_count is 100, of which others use 7" in words
        assert f"SET GLOBAL max_prepared_stmt_count = {20 * STATEMENTS + 7}" in words
        assert fitting(words) == (100 - 7) // STATEMENTS
        # What is said to fit fits, and one more does not.
        assert engine("run", server, fitting(words))[0].done
        assert engine("run", server, fitting(words) + 1)[0].exit_code == 3
        server.query(f"SET GLOBAL max_prepared_stmt_count = {20 * STATEMENTS + 7}")
        assert engine("run", server, 20)[0].done


def test_one_connection_with_too_many_statements_is_told_too(server: LocalServer) -> None:
    server.query("SET GLOBAL max_prepared_stmt_count = 5")
    result, _ = engine("run", server, 1)
    assert fitting(result.failure()) == 0


def test_connections_beyond_the_limit_are_counted_out(server: LocalServer) -> None:
    server.query("SET GLOBAL max_connections = 30")
    result, _ = engine("run", server, 100)
    assert result.exit_code == 3
    words = result.failure()
    assert "error 1040" in words
    assert "the run needs 100 connections, and max_connections is 30" in words
    # dbdyno's own administrative connection may come through the extra port, which counts apart.
    assert 28 <= fitting(words) <= 30
    assert re.search(r"SET GLOBAL max_connections = 10[0-2],", words)
    assert engine("run", server, fitting(words))[0].done


def test_connections_of_one_account_are_counted_out(started: Callable[..., LocalServer]) -> None:
    # MariaDB does not let 0, which is no limit, be changed while it runs.
    server = started("one account", variables={"max_user_connections": 8})
    assert engine("prepare", server, 1)[0].done
    result, _ = engine("run", server, 20)
    assert result.exit_code == 3
    words = result.failure()
    assert "the run needs 20 connections, and max_user_connections is 8" in words
    assert fitting(words) == 8
    assert "SET GLOBAL max_user_connections = 20" in words


def test_an_accounts_own_limit_is_counted_out(server: LocalServer) -> None:
    user = server.address().user
    accounts = [
        f"'{user}'@'{host}'" for (host,) in server.query(f"SELECT host FROM mysql.user WHERE user = '{user}'")
    ]
    try:
        for account in accounts:
            server.query(f"ALTER USER {account} WITH MAX_USER_CONNECTIONS 6")
        words = engine("run", server, 20)[0].failure()
    finally:
        for account in accounts:
            server.query(f"ALTER USER {account} WITH MAX_USER_CONNECTIONS 0")
    assert fitting(words) == 6, words
    assert "WITH MAX_USER_CONNECTIONS 20" in words


def with_open_files(limit: str, server: LocalServer, connections: int) -> subprocess.CompletedProcess[str]:
    """The engine in a process whose limits on open files `ulimit` has set."""
    return subprocess.run(
        ["sh", "-c", f"ulimit {limit}; exec {shlex.quote(str(find_engine()))} run"],
        input=json.dumps(plan(server, connections)) + "\n",
        capture_output=True,
        text=True,
        env=server.address().environment(),
        timeout=60,
        check=False,
    )


def test_too_few_open_files_are_told_before_anything_is_opened(server: LocalServer) -> None:
    before = int(server.status()["Connections"])
    ended = with_open_files("-n 100", server, 200)
    assert ended.returncode == 3
    assert "200 connections need 224 open files, and this process may open at most 100" in ended.stderr
    assert "ulimit -Hn 224" in ended.stderr
    assert int(server.status()["Connections"]) == before


def test_the_soft_limit_on_open_files_is_raised(server: LocalServer) -> None:
    assert with_open_files("-S -n 50", server, 100).returncode == 0


def test_three_thousand_connections_open_in_time(server: LocalServer) -> None:
    assert int(server.variables()["max_connections"]) >= MANY + 10
    result, records = engine("run", server, MANY, workload=plan(server, 1, "oltp_point_select")["workload"])
    assert result.done, result.failure()
    ready = next(record["data"] for record in records if record["type"] == "ready")
    assert ready["connections"] == MANY
    assert ready["prepared_statements"] == MANY
    assert ready["connect_us"] < 5_000_000
