"""Replaying what servers have recorded: the server counts the same statements as when it recorded them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peer import sysbench
from tests.conftest import variant

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

COUNTERS = ("Com_select", "Com_update", "Com_delete", "Com_insert", "Com_begin", "Com_commit")
TABLES = ("--tables=2", "--table-size=2000")


@pytest.fixture(scope="module")
def mariadb(workspace: Workspace) -> Iterator[LocalServer]:
    """A private MariaDB with sysbench's tables."""
    with closing(LocalServer(variant("replay"), workspace, None)) as server:
        server.start()
        with sysbench(server.address(), *TABLES, "oltp_read_write", "prepare") as argv:
            subprocess.run(argv, check=True, capture_output=True, timeout=120)
        yield server


@pytest.fixture(scope="module")
def postgresql(workspace: Workspace) -> Iterator[LocalServer]:
    """A private PostgreSQL that logs every statement, with a small table."""
    spec = ServerSpec(product="postgresql", variables={"log_statement": "all"})
    with closing(LocalServer(Variant(name="replay", server=spec), workspace, None)) as server:
        server.start()
        server.query("CREATE TABLE item (id INT PRIMARY KEY, n INT NOT NULL)")
        server.query("INSERT INTO item SELECT i, 0 FROM generate_series(1, 100) i")
        server.query(f"GRANT ALL ON item TO {server.address().user}")
        yield server


def counted(server: LocalServer) -> dict[str, int]:
    """What the server has counted since it was started."""
    status = server.status()
    return {name: int(status[name]) for name in COUNTERS}


def between(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What was counted in between."""
    return {name: after[name] - before[name] for name in COUNTERS}


def record(
    server: LocalServer, log: str, script: str, threads: int, mode: str
) -> tuple[Path, dict[str, int]]:
    """What sysbench sent, in a log of this kind, and what the server counted of it."""
    path = Path(server.query("SELECT @@datadir")[0][0]) / f"{log}-{script}-{mode}.log"
    name = "slow_query_log" if log == "slow" else "general_log"
    server.query(f"SET GLOBAL {name}_file = '{path}'")
    server.query("SET GLOBAL long_query_time = 0")
    server.query(f"SET GLOBAL {name} = ON")
    before = counted(server)
    limits = (f"--threads={threads}", "--events=60", "--time=0", f"--db-ps-mode={mode}")
    with sysbench(server.address(), *TABLES, *limits, script, "run") as argv:
        subprocess.run(argv, check=True, capture_output=True, timeout=120)
    after = counted(server)
    server.query(f"SET GLOBAL {name} = OFF")
    return path, between(before, after)


def play(server: LocalServer, replay: dict[str, Any], **changes: Any) -> tuple[EngineResult, list[Any]]:
    """The result and the records of a replay."""
    order = changes.pop("order", "in-order")
    address = server.address()
    plan: dict[str, Any] = {
        "schema": 1,
        "target": address.target(),
        "workload": {"name": "sql", "sql": {"order": order, "replay": replay}},
        "load": {"connections": 3},
        "phases": {"measure_us": 120_000_000},
        "retry": {"codes": [1213, 1205]},
        "seed": 1,
        **changes,
    }
    records: list[Any] = []
    return Engine().run("run", plan, address.environment(), records.append), records


@pytest.mark.parametrize("log", ["general", "slow"])
@pytest.mark.parametrize("mode", ["auto", "disable"])
@pytest.mark.parametrize(("script", "threads"), [("oltp_read_write", 1), ("oltp_read_only", 3)])
def test_a_log_of_sysbench_makes_the_same_counts(
    mariadb: LocalServer, log: str, mode: str, script: str, threads: int
) -> None:
    """Prepared and as text, on connections that take turns; what a prepared statement executes counts once.

    Writers are alone, so that no deadlock makes statements that nobody asked for.
    """
    path, recorded = record(mariadb, log, script, threads, mode)
    before = counted(mariadb)
    result, _ = play(
        mariadb, {"file": str(path), "format": f"{log}-log", "times": 1}, load={"connections": threads}
    )
    assert result.done, result.failure()
    assert between(before, counted(mariadb)) == recorded
    assert recorded["Com_select"] == 14 * 60
    assert result.end is not None
    assert result.hello is not None
    counts = result.end["phases"]["measure"]
    assert (counts["events"], counts["reads"]) == (60, 14 * 60)
    assert {kind["prepared"] for kind in result.hello["statements"]} == {False}
    assert "SELECT c FROM sbtest1 WHERE id=?" in {kind["sql"] for kind in result.hello["statements"]}


def test_a_weighted_mix_has_the_shares_of_the_log(mariadb: LocalServer, tmp_path: Path) -> None:
    """The same text is one transaction that weighs as often as it was recorded."""
    log = tmp_path / "queries.sql"
    log.write_text(
        "SHOW TABLES;\n"
        + "SELECT c FROM sbtest1 WHERE id=1;\n" * 3
        + "UPDATE sbtest1 SET k=k+1 WHERE id=2;\n"
    )
    before = counted(mariadb)
    result, records = play(
        mariadb,
        {"file": str(log), "format": "queries"},
        order="weighted",
        phases={"measure_us": 60_000_000, "events": 800},
    )
    assert result.done, result.failure()
    seen = between(before, counted(mariadb))
    assert seen["Com_select"] + seen["Com_update"] == 800
    assert 500 < seen["Com_select"] < 700  # 600, eight standard deviations on either side.
    (warning,) = [
        r["data"] for r in records if r["type"] == "warning" and r["data"]["code"] == "replay-left-out"
    ]
    assert warning["text"] == "4 recorded statements are replayed; left out: SHOW 1"


def test_what_failed_when_it_was_recorded_does_not_end_a_replay(mariadb: LocalServer, tmp_path: Path) -> None:
    """With `retry.all` an error is counted, and the next transaction has its turn."""
    log = tmp_path / "queries.sql"
    log.write_text("INSERT INTO sbtest1 (id) VALUES (1); SELECT 1; SELECT 2;")
    replay = {"file": str(log), "format": "queries", "times": 1}
    assert not play(mariadb, replay)[0].done
    before = counted(mariadb)
    result, _ = play(mariadb, replay, retry={"all": True}, load={"connections": 1})
    assert result.done, result.failure()
    assert result.end is not None
    assert result.end["phases"]["measure"]["errors"] == {"1062": 3}
    assert between(before, counted(mariadb))["Com_select"] == 2


def test_a_file_that_cannot_be_replayed_says_why(mariadb: LocalServer, tmp_path: Path) -> None:
    """One that is not there, one that holds nothing, and a log of another kind of server."""
    gone = play(mariadb, {"file": str(tmp_path / "gone.log"), "format": "general-log"})[0]
    assert gone.exit_code == 2
    assert "gone.log: No such file" in gone.stderr
    log = tmp_path / "queries.sql"
    log.write_text("SELECT 1;\n")
    nothing = play(mariadb, {"file": str(log), "format": "slow-log"})[0]
    assert (nothing.exit_code, "check that replay.format is" in nothing.stderr) == (2, True)
    other = play(mariadb, {"file": str(log), "format": "postgresql-log"})[0]
    assert (other.exit_code, "a log of another kind of server" in other.stderr) == (2, True)


def test_a_log_of_postgresql(postgresql: LocalServer, tmp_path: Path) -> None:
    """With the values of what is prepared: the rows become what they became when it was recorded."""
    sql = {
        "parameters": {"id": {"integer": {"high": 100}}},
        "transactions": [
            {
                "statements": [
                    {"sql": "BEGIN"},
                    {"sql": "UPDATE item SET n = n + 1 WHERE id = :id"},
                    {"sql": "SELECT n FROM item WHERE id = :id"},
                    {"sql": "COMMIT"},
                ]
            }
        ],
    }
    for statements in ("prepared", "text"):
        postgresql.query("UPDATE item SET n = 0")
        before = len(log_text(postgresql))
        result, _ = play(
            postgresql,
            {},
            workload={"name": "sql", "statements": statements, "sql": sql},
            phases={"measure_us": 60_000_000, "events": 50},
        )
        assert result.done, result.failure()
        log = tmp_path / "recorded.log"
        log.write_text(log_text(postgresql)[before:])
        once = dict(postgresql.query("SELECT id, n FROM item"))
        assert sum(once.values()) == 50
        replay = {"file": str(log), "format": "postgresql-log", "times": 2}
        result, _ = play(postgresql, replay)
        assert result.done, result.failure()
        assert result.end is not None
        counts = result.end["phases"]["measure"]
        assert (counts["events"], counts["reads"], counts["writes"]) == (100, 100, 100)
        assert dict(postgresql.query("SELECT id, n FROM item")) == {id_: 3 * n for id_, n in once.items()}


def log_text(server: LocalServer) -> str:
    """What the server has written; every session writes what it does before it does it."""
    ((data,),) = server.query("SHOW data_directory")
    return (Path(data).parent / "error.log").read_text()
