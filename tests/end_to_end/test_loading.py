"""Loading on a real MariaDB: the same rows whichever way they travel, timed, and no file of ours ever read.

What the engine tells of a load is held against the server's own counters and CHECKSUM TABLE.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from benchmarks.peer import sysbench

from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.problem import Problem
from dbdyno.run import progress
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.loading import prepare
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.remote import open_remote
from dbdyno.servers.server import Server

ROWS = 3000


def plan(server: LocalServer, **changes: Any) -> dict[str, Any]:
    """A plan for two tables of 3000 rows."""
    options = {"tables": 2, "table_size": ROWS, **changes.pop("options", {})}
    return {
        "schema": 1,
        "target": server.address().target(),
        "workload": {"name": "oltp_read_write", "options": options},
        "load": {"connections": 1},
        "phases": {"measure_us": 1_000_000},
        "seed": 1,
        **changes,
    }


def engine(command: Any, server: LocalServer, **changes: Any) -> tuple[EngineResult, list[Any]]:
    """The result and every record of one command."""
    records: list[Any] = []
    asked = plan(server, **changes)
    result = Engine().run(command, asked, server.address().environment(), records.append)
    return result, records


def load(server: LocalServer, method: str, streams: int = 2, **options: Any) -> dict[str, Any]:
    """Load anew; the record of what was done."""
    for command in ("cleanup", "prepare"):
        loading = {"method": method, "streams": streams}
        result, records = engine(command, server, loading=loading, options=options)
        assert result.done, result.failure()
    (loaded,) = [record["data"] for record in records if record["type"] == "loaded"]
    return dict(loaded)


def checksums(server: LocalServer) -> list[Any]:
    """CHECKSUM TABLE of both tables."""
    return [row[1] for row in server.query("CHECKSUM TABLE dbdyno.sbtest1, dbdyno.sbtest2")]


@pytest.fixture
def local_infile(mariadb: LocalServer) -> Iterator[Callable[[int], None]]:
    """Set the server's local_infile for one test."""

    def set_to(value: int) -> None:
        mariadb.query(f"SET GLOBAL local_infile = {value}")

    yield set_to
    mariadb.query("SET GLOBAL local_infile = 1")


def test_rows_depend_neither_on_the_streams_nor_on_the_way(mariadb: LocalServer) -> None:
    sums = []
    for method, way in (("load-data", "load-data-local"), ("insert", "insert")):
        for streams in (1, 4):
            loaded = load(mariadb, method, streams)
            assert (loaded["way"], loaded["streams"], loaded["rows"]) == (way, streams, 2 * ROWS)
            sums.append(checksums(mariadb))
    assert all(one == sums[0] for one in sums), sums
    assert len(set(sums[0])) == 2, "two tables hold the same rows"
    assert mariadb.query("SELECT COUNT(*), MIN(id), MAX(id) FROM dbdyno.sbtest2") == [(ROWS, 1, ROWS)]


def test_a_way_that_was_loaded_is_kept_by_the_other(mariadb: LocalServer) -> None:
    load(mariadb, "load-data")
    result, records = engine("prepare", mariadb, loading={"method": "insert"})
    assert result.done
    (loaded,) = [record["data"] for record in records if record["type"] == "loaded"]
    assert (loaded["way"], loaded["rows"], loaded["tables"]) == ("none", 0, [])


def test_the_record_tells_what_the_server_saw(mariadb: LocalServer) -> None:
    names = ("Com_load", "Com_insert", "Com_create_index")
    before = mariadb.status()
    began = time.monotonic()
    loaded = load(mariadb, "auto", streams=1)
    took_us = (time.monotonic() - began) * 1e6
    after = mariadb.status()
    seen = [int(after[name]) - int(before[name]) for name in names]
    assert seen == [2, 0, 2]
    ((data_bytes,),) = mariadb.query(
        "SELECT SUM(LENGTH(id) + LENGTH(k) + LENGTH(c) + LENGTH(pad) + 4) FROM "
        "(SELECT * FROM dbdyno.sbtest1 UNION ALL SELECT * FROM dbdyno.sbtest2) AS both_tables"
    )
    assert loaded["bytes"] == data_bytes
    assert loaded["session_settings"] == {}
    assert [table["table"] for table in loaded["tables"]] == ["sbtest1", "sbtest2"]
    for key in ("rows", "bytes"):
        assert sum(table[key] for table in loaded["tables"]) == loaded[key]
    # One stream: nothing overlaps, and rows and index are parts of the whole.
    for key in ("rows_us", "index_us"):
        assert 0 < sum(table[key] for table in loaded["tables"]) <= loaded[key]
    assert loaded["rows_us"] + loaded["index_us"] + loaded["analyze_us"] < took_us


def test_no_index_takes_no_time(mariadb: LocalServer) -> None:
    loaded = load(mariadb, "auto", create_secondary=False)
    assert loaded["index_us"] == 0
    assert mariadb.query("SHOW INDEX FROM dbdyno.sbtest1 WHERE Column_name = 'k'") == []


def test_a_server_that_refuses_load_data_gets_inserts(
    mariadb: LocalServer, local_infile: Callable[[int], None]
) -> None:
    expected = (load(mariadb, "load-data"), checksums(mariadb))[1]
    local_infile(0)
    loaded = load(mariadb, "auto")
    assert loaded["way"] == "insert"
    assert checksums(mariadb) == expected


def test_a_demanded_load_data_that_is_refused_names_the_way_out(
    mariadb: LocalServer, local_infile: Callable[[int], None]
) -> None:
    local_infile(0)
    engine("cleanup", mariadb)
    result, _ = engine("prepare", mariadb, loading={"method": "load-data"})
    assert result.exit_code == 4
    assert "LOAD DATA LOCAL" in result.failure()
    assert "local_infile" in result.failure()


def test_rows_that_somebody_else_put_there_are_told(mariadb: LocalServer) -> None:
    """LOAD DATA LOCAL passes over rows whose key is there; the engine must not."""
    engine("cleanup", mariadb)
    # Another session writes row 2900 as soon as the table is there.
    asked = {"table_size": 400_000, "tables": 1}
    server_side = (
        "BEGIN NOT ATOMIC REPEAT DO SLEEP(0.01); UNTIL (SELECT COUNT(*) FROM information_schema.tables "
        "WHERE table_schema = 'dbdyno' AND table_name = 'sbtest1') END REPEAT; "
        "INSERT INTO dbdyno.sbtest1 (id, k) VALUES (399999, 1); END"
    )
    other = threading.Thread(target=mariadb.query, args=(server_side,))
    other.start()
    result, _ = engine("prepare", mariadb, options=asked, loading={"method": "load-data", "streams": 1})
    other.join()
    assert result.exit_code == 4
    assert "stored 49999 of 50000 rows in sbtest1" in result.failure()
    engine("cleanup", mariadb, options=asked)


def test_ids_beyond_32_bits_are_loaded(mariadb: LocalServer) -> None:
    """Two streams begin at 1 and in the middle of 2^33 rows; what they got done in a moment is enough."""
    engine("cleanup", mariadb)
    options = {"tables": 1, "table_size": 2**33}
    asked = plan(mariadb, options=options, loading={"streams": 2})
    records: list[Any] = []

    class Enough(Exception):  # noqa: N818 — not an error.
        pass

    def stop_soon(record: Any) -> None:
        records.append(record)
        # Under one AUTO-INC lock streams take turns.
        if record["type"] == "loading" and record["data"]["rows"] >= 150_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Engine().run("prepare", asked, mariadb.address().environment(), stop_soon)
    try:
        columns = mariadb.query("SHOW COLUMNS FROM dbdyno.sbtest1 WHERE Field IN ('id', 'k')")
        assert [column[1] for column in columns] == ["bigint(20)", "bigint(20)"]
        ((low, high, k),) = mariadb.query("SELECT MIN(id), MAX(id), MAX(k) FROM dbdyno.sbtest1")
        assert low == 1
        assert 2**32 < high < 2**33
        assert k > 2**32
    finally:
        result, _ = engine("cleanup", mariadb, options=options)
        assert result.done, result.failure()


EXPERIMENT = Experiment(
    name="loading",
    workloads=(OltpWorkload(name="oltp_read_write", tables=2, table_size=ROWS),),
    load=Load(connections=(1,), duration_s=1.0),
    variants=(Variant(name="one", server=ServerSpec()),),
)


def lab_prepare(server: Server, admin: LocalServer) -> list[Any]:
    """Load as the lab does; the values of local_infile that were seen meanwhile."""
    seen: list[Any] = []

    def tell(_: progress.Progress) -> None:
        seen.append(admin.query("SELECT @@GLOBAL.local_infile")[0][0])

    prepare(EXPERIMENT, EXPERIMENT.workloads[0], server, Engine(), tell)
    return seen


def test_local_infile_is_on_only_while_our_own_server_is_loaded(
    mariadb: LocalServer, local_infile: Callable[[int], None]
) -> None:
    local_infile(0)
    engine("cleanup", mariadb)
    before = mariadb.status()
    assert set(lab_prepare(mariadb, mariadb)) == {1}
    after = mariadb.status()
    assert int(after["Com_load"]) > int(before["Com_load"])
    assert after["Com_insert"] == before["Com_insert"]
    assert mariadb.query("SELECT @@GLOBAL.local_infile") == [(0,)]


def test_local_infile_comes_back_when_loading_fails(
    mariadb: LocalServer, local_infile: Callable[[int], None]
) -> None:
    local_infile(0)
    engine("cleanup", mariadb)
    mariadb.query("CREATE TABLE dbdyno.sbtest2 (id INT)")
    try:
        with pytest.raises(Problem, match="not made by dbdyno"):
            lab_prepare(mariadb, mariadb)
    finally:
        mariadb.query("DROP TABLE dbdyno.sbtest2")
    assert mariadb.query("SELECT @@GLOBAL.local_infile") == [(0,)]


def test_a_server_that_is_only_reached_is_not_changed(
    mariadb: LocalServer, local_infile: Callable[[int], None]
) -> None:
    local_infile(0)
    engine("cleanup", mariadb)
    address = mariadb.address()
    endpoint = open_remote(
        f"mysql://{address.user}@{address.host}:{address.port}/{address.database}", address.password
    )
    endpoint.start()
    before = mariadb.status()
    assert set(lab_prepare(endpoint, mariadb)) == {0}
    after = mariadb.status()
    endpoint.close()
    assert after["Com_set_option"] == before["Com_set_option"]
    # Its refusal was taken for an answer, and the rows went in by INSERT.
    assert int(after["Com_insert"]) > int(before["Com_insert"])


def test_prewarm_reads_every_row_and_every_index(mariadb: LocalServer) -> None:
    load(mariadb, "auto")
    counters = ("Handler_read_rnd_next", "Handler_read_next")
    seen = {}
    for prewarm in ("none", "scan"):
        before = mariadb.status()
        workload = {"name": "oltp_point_select", "options": {"tables": 2, "table_size": ROWS}}
        result, records = engine(
            "run", mariadb, prewarm=prewarm, workload=workload, phases={"measure_us": 100_000}
        )
        assert result.done, result.failure()
        after = mariadb.status()
        seen[prewarm] = [int(after[name]) - int(before[name]) for name in counters]
        types = [record["type"] for record in records]
        read = [record["data"] for record in records if record["type"] == "loading"]
        assert types.index("ready") == 1 + len(read)
    # Point selects read neither way; looking at the counters reads some, the same number each time.
    for none, scan in zip(seen["none"], seen["scan"], strict=True):
        assert 2 * ROWS <= scan - none <= 2 * ROWS + 10, seen
    assert [record["step"] for record in read] == ["prewarmed"] * 2
    assert [record["rows"] for record in read] == [ROWS, 2 * ROWS]


def test_prewarm_of_a_missing_table_ends_the_run_with_one_sentence(mariadb: LocalServer) -> None:
    load(mariadb, "auto")
    result, records = engine("run", mariadb, prewarm="scan", options={"tables": 3})
    assert result.exit_code == 4
    assert "sbtest3" in result.failure()
    assert "load the tables first" in result.failure()
    assert records[-1]["type"] == "end"


def bulk_insert(server: LocalServer, connections: int, seconds: float) -> tuple[Any, int]:
    """The totals of a run of bulk_insert over the tables that are there, and the INSERTs the server saw."""
    before = int(server.status()["Com_insert"])
    result, _ = engine(
        "run",
        server,
        workload={"name": "bulk_insert"},
        load={"connections": connections},
        phases={"measure_us": round(seconds * 1e6)},
    )
    assert result.done, result.failure()
    assert result.end is not None
    return result.end["phases"]["measure"], int(server.status()["Com_insert"]) - before


def test_bulk_insert_stores_every_row_once_and_goes_on_after_them(mariadb: LocalServer) -> None:
    engine("cleanup", mariadb)
    bulk = {"workload": {"name": "bulk_insert"}, "load": {"connections": 3}}
    result, _ = engine("prepare", mariadb, **bulk)
    assert result.done, result.failure()
    tables = " UNION ALL ".join(f"SELECT * FROM dbdyno.sbtest{table}" for table in (1, 2, 3))
    stored = 0
    try:
        for _ in range(2):
            totals, inserts = bulk_insert(mariadb, 3, 0.5)
            ((rows, wrong),) = mariadb.query(f"SELECT COUNT(*), SUM(id != k) FROM ({tables}) AS all_rows")
            assert wrong == 0
            # Every row was an event; at most one of each connection ended after the measurement.
            assert totals["events"] <= rows - stored <= totals["events"] + 3
            assert totals["row_count_mismatches"] == 0
            assert totals["writes"] <= inserts <= totals["writes"] + 6
            stored = rows
        for table in (1, 2, 3):
            ((rows, last),) = mariadb.query(f"SELECT COUNT(*), MAX(id) FROM dbdyno.sbtest{table}")
            assert rows == last > 0
    finally:
        engine("cleanup", mariadb, **bulk)


def test_bulk_insert_sends_as_many_statements_as_sysbench(mariadb: LocalServer) -> None:
    engine("cleanup", mariadb)
    bulk = {"workload": {"name": "bulk_insert"}, "load": {"connections": 1}}
    engine("prepare", mariadb, **bulk)
    _, ours = bulk_insert(mariadb, 1, 1.0)
    ((rows,),) = mariadb.query("SELECT COUNT(*) FROM dbdyno.sbtest1")
    engine("cleanup", mariadb, **bulk)
    before = int(mariadb.status()["Com_insert"])
    said = ""
    with sysbench(mariadb.address(), f"--events={rows}", "--time=0", "bulk_insert") as command:
        for step in ("prepare", "run", "cleanup"):
            said += subprocess.run([*command, step], check=True, capture_output=True, text=True).stdout
    theirs = int(mariadb.status()["Com_insert"]) - before
    counted = re.search(r"transactions:\s+(\d+)", said)
    assert counted is not None
    assert int(counted[1]) == rows
    assert abs(ours - theirs) <= 1 + theirs // 100, (ours, theirs, rows)
