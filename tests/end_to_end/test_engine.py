"""The engine against a real MariaDB: its counts are the server's, its rows are the same whoever loads them.

Each number is held against an independent one: the server's own counters, CHECKSUM TABLE, a second session.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
import pytest

from dbdyno.binary import EngineProblem
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.measure.figures import longest_gap
from dbdyno.run.engine import Engine, EngineResult, SlicedRun
from dbdyno.servers import Server, Workspace, open_server
from dbdyno.servers.server import Address

ROWS = 2000
TABLES = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A private MariaDB with an empty schema."""
    spec = ServerSpec(variables={"innodb_lock_wait_timeout": 1, "innodb_buffer_pool_size": "64M"})
    variant = Variant(name="engine", server=spec)
    workspace = Workspace.open(Path(tmp_path_factory.mktemp("servers")))
    with closing(workspace), closing(open_server(variant, workspace, None)) as server:
        server.restore()
        server.start()
        yield server


def plan(address: Address, **changes: Any) -> dict[str, Any]:
    """One connection, one second of oltp_read_write, without warm-up."""
    asked: dict[str, Any] = {
        "schema": 1,
        "target": address.target(),
        "workload": {
            "name": "oltp_read_write",
            "options": {"tables": TABLES, "table_size": ROWS, **changes.pop("options", {})},
        },
        "load": {"connections": 1},
        "phases": {"measure_us": 1_000_000},
        "seed": 1,
    }
    return {**asked, **changes}


def events(number: int) -> dict[str, int]:
    """Phases that end with so many transactions, whatever time a busy machine takes for them."""
    return {"measure_us": 60_000_000, "events": number}


def engine(command: Any, server: Server, **changes: Any) -> tuple[EngineResult, list[Any]]:
    """The result and every record of one command."""
    records: list[Any] = []
    address = server.address()
    result = Engine().run(command, plan(address, **changes), address.environment(), records.append)
    return result, records


@pytest.fixture(scope="module", autouse=True)
def tables(server: Server) -> None:
    """The tables of `plan`."""
    result, _ = engine("prepare", server)
    assert result.done, result.failure()


def counters(server: Server) -> dict[str, int]:
    """The server's counts of commands."""
    names = (
        "Com_select",
        "Com_update",
        "Com_delete",
        "Com_insert",
        "Com_begin",
        "Com_commit",
        "Com_stmt_execute",
    )
    status = server.status()
    return {name: int(status[name]) for name in names}


def test_counts_are_the_servers_own(server: Server) -> None:
    before = counters(server)
    result, records = engine("run", server, phases=events(100))
    after = counters(server)
    assert result.done, result.failure()
    kinds: dict[str, int] = {}
    for record in records:
        if record["type"] == "statements":
            for kind, stats in record["data"]["kinds"].items():
                kinds[kind] = kinds.get(kind, 0) + stats["count"]
    selects = sum(kinds[kind] for kind in kinds if kind.endswith(("_select", "_range")))
    counted = {
        "Com_select": selects,
        "Com_update": kinds["index_update"] + kinds["non_index_update"],
        "Com_delete": kinds["delete"],
        "Com_insert": kinds["insert"],
        "Com_begin": kinds["begin"],
        "Com_commit": kinds["commit"],
        "Com_stmt_execute": sum(kinds.values()),
    }
    assert counted["Com_commit"] == 100
    # The event in flight at the end is played to its end and not counted: at most 20 statements, of which 14
    # are selects. Our own look at the counters adds nothing to these.
    for name, count in counted.items():
        seen = after[name] - before[name]
        assert count <= seen <= count + (20 if name == "Com_stmt_execute" else 14), (name, count, seen)


@pytest.mark.alone
def test_engines_take_turns_and_nothing_is_in_flight_between_slices(server: Server) -> None:
    asked = plan(
        server.address(),
        workload={"name": "oltp_read_only", "options": {"tables": TABLES, "table_size": ROWS}},
        load={"connections": 8, "shape": {"closed_slices": {"guard_us": 20_000}}},
        client={"workers": 2},
        report={"interval_us": 0, "tick_us": 0},
        phases={"measure_us": 0},
        start={"on-command": {"start_timeout_us": 60_000_000}},
    )
    with ExitStack() as stack:
        runs = [stack.enter_context(SlicedRun(asked, server.address().environment())) for _ in "ab"]
        events = [0, 0]
        for number, turn in enumerate([0, 1, 1, 0, 0, 1]):
            before = counters(server)["Com_commit"]
            record = runs[turn].run_slice(number, 120_000)
            after = counters(server)["Com_commit"]
            assert record["slice"] == number
            assert record["events"] > 0
            assert after - before == record["guard_events"] + record["events"] + record["in_flight"], record
            assert counters(server)["Com_commit"] == after, "a paused engine sends nothing"
            events[turn] += after - before
        for run, count in zip(runs, events, strict=True):
            result = run.finish()
            assert result.done, result.failure()
            assert result.end is not None
            totals = result.end["phases"]["measure"]
            assert (totals["events"], totals["accounting"]["unfinished"]) == (count, 0)
            assert not totals["errors"]


def test_an_engine_in_slices_that_ends_is_reported(server: Server) -> None:
    asked = plan(
        server.address(),
        load={"connections": 1, "shape": {"closed_slices": {"guard_us": 20_000}}},
        report={"interval_us": 0, "tick_us": 0},
        start={"on-command": {"start_timeout_us": 60_000_000}},
    )
    with (
        SlicedRun(asked, server.address().environment()) as run,
        pytest.raises(EngineProblem, match="for_us of slice 7 is 20000; it must be between 20001"),
    ):
        run.run_slice(7, 20_000)


def test_every_statement_keeps_its_contract(server: Server) -> None:
    # A seed of its own: a run repeated with the same seed writes what is there already, and changes no row.
    _, records = engine("run", server, load={"connections": 8}, seed=2)
    windows = [record["data"]["kinds"] for record in records if record["type"] == "statements"]
    assert windows
    for kinds in windows:
        for kind, stats in kinds.items():
            assert stats["rows"] == stats["rows_expected"], (kind, stats)
            assert stats["row_count_mismatches"] == 0, (kind, stats)


SINGLE = {
    "oltp_point_select": "Com_select",
    "oltp_update_index": "Com_update",
    "oltp_update_non_index": "Com_update",
    "oltp_delete": "Com_delete",
    "oltp_insert": "Com_insert",
    "select_random_points": "Com_select",
    "select_random_ranges": "Com_select",
}


@pytest.mark.parametrize("mode", ["prepared", "text"])
@pytest.mark.parametrize("name", SINGLE)
def test_workloads_of_one_statement_send_that_statement(server: Server, name: str, mode: str) -> None:
    before = server.status()
    options = {"tables": TABLES, "table_size": ROWS}
    workload = {"name": name, "options": options, "statements": mode}
    seed = 100 + list(SINGLE).index(name)
    result, _ = engine("run", server, workload=workload, phases=events(100), seed=seed)
    after = server.status()
    _load_anew(server)
    assert result.done, result.failure()
    assert result.end is not None
    assert result.end["phases"]["measure"]["events"] == 100
    sent = {key: int(after[key]) - int(before[key]) for key in (SINGLE[name], "Com_stmt_execute")}
    # One more may have been in flight at the end.
    assert sent[SINGLE[name]] in (100, 101)
    text = mode == "text" or name == "oltp_insert"
    assert sent["Com_stmt_execute"] == (0 if text else sent[SINGLE[name]])


def _load_anew(server: Server) -> None:
    for command in ("cleanup", "prepare"):
        result, _ = engine(command, server)
        assert result.done, result.failure()


def test_text_and_prepared_statements_do_the_same_work(server: Server) -> None:
    rows = []
    for mode in ("prepared", "text"):
        _load_anew(server)
        options = {"tables": TABLES, "table_size": ROWS}
        workload = {"name": "oltp_read_write", "options": options, "statements": mode}
        _, records = engine("run", server, workload=workload)
        windows = [record["data"]["kinds"] for record in records if record["type"] == "statements"]
        assert all(stats["row_count_mismatches"] == 0 for kinds in windows for stats in kinds.values())
        rows.append({kind for kinds in windows for kind in kinds})
    assert rows[0] == rows[1] != set()


def test_hot_keys_are_hot_on_the_server(server: Server) -> None:
    _load_anew(server)
    schema = server.address().database
    keys = {"zipfian": {"exponent": 1.2}}
    options = {"tables": 1, "table_size": ROWS}
    workload = {"name": "oltp_update_index", "options": options, "keys": keys}
    query = f"SELECT SUM(k), SUM(IF(id <= 20, k, 0)) FROM {schema}.sbtest1"
    ((all_before, hot_before),) = server.query(query)
    result, _ = engine("run", server, workload=workload, phases=events(1000))
    ((all_after, hot_after),) = server.query(query)
    _load_anew(server)
    assert result.done, result.failure()
    # Each update adds 1 to k. Of 2,000 ids the first 20 get 66.6 % of Zipf's draws with exponent 1.2.
    weights = [id_**-1.2 for id_ in range(1, ROWS + 1)]
    expected = sum(weights[:20]) / sum(weights)
    share = float(hot_after - hot_before) / float(all_after - all_before)
    updates = float(all_after - all_before)
    assert updates == 1000
    assert abs(share - expected) < 4 * (expected * (1 - expected) / updates) ** 0.5


def checksums(server: Server, tables: int) -> list[Any]:
    """CHECKSUM TABLE of sbtest1 to sbtestN."""
    schema = server.address().database
    names = ", ".join(f"{schema}.sbtest{number}" for number in range(1, tables + 1))
    return [row[1] for row in server.query(f"CHECKSUM TABLE {names}")]


def test_rows_do_not_depend_on_the_number_of_streams(server: Server) -> None:
    sums = []
    for streams in (1, 4):
        for command in ("cleanup", "prepare"):
            result, _ = engine(command, server, loading={"streams": streams})
            assert result.done, result.failure()
        sums.append(checksums(server, TABLES))
    assert sums[0] == sums[1]
    assert len(set(sums[0])) == TABLES, "two tables hold the same rows"


def test_a_complete_table_is_kept(server: Server) -> None:
    result, records = engine("prepare", server)
    assert result.done
    steps = [record["data"]["step"] for record in records if record["type"] == "loading"]
    assert steps == ["kept"] * TABLES


def test_a_table_that_is_not_ours_is_never_touched(server: Server) -> None:
    schema = server.address().database
    server.query(f"CREATE TABLE {schema}.sbtest3 (id INT)")
    try:
        result, _ = engine("prepare", server, options={"tables": 3})
        assert result.exit_code == 4
        assert "sbtest3 (not made by dbdyno)" in result.failure()
        result, records = engine("cleanup", server, options={"tables": 3})
        assert result.done
        warnings = [record["data"]["code"] for record in records if record["type"] == "warning"]
        assert warnings == ["table-kept"]
        assert server.query(f"SELECT COUNT(*) FROM {schema}.sbtest3") == [(0,)]
    finally:
        server.query(f"DROP TABLE {schema}.sbtest3")
        engine("prepare", server)


def test_a_lock_wait_timeout_is_rolled_back_counted_and_retried(server: Server) -> None:
    address = server.address()
    engine("prepare", server)
    blocker = pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        database=address.database,
    )
    with closing(blocker), blocker.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT COUNT(*) FROM sbtest1 FOR UPDATE")
        release = threading.Timer(1.8, blocker.rollback)
        release.start()
        before = int(server.status()["Com_rollback"])
        options = {"tables": 1}
        result, _ = engine("run", server, options=options, phases={"measure_us": 3_500_000})
        release.join()
    assert result.done, result.failure()
    assert result.end is not None
    totals = result.end["phases"]["measure"]
    assert totals["errors"] == {"1205": 1}
    assert totals["error_classes"] == {"1205": "lock-timeout"}
    assert totals["retries"] == 1
    assert totals["accounting"]["failed"] == 0
    # The wait of one second belongs to the event that was retried.
    assert totals["latency_max_us"] > 1_000_000
    assert int(server.status()["Com_rollback"]) - before >= 1


@pytest.mark.alone
def test_a_frozen_server_is_the_longest_gap_of_all_workers(server: Server) -> None:
    pid = server.describe().identity["pid"]
    signals: list[float] = []

    def send(number: signal.Signals) -> None:
        os.kill(pid, number)
        signals.append(time.time())

    timers = [
        threading.Timer(1.2, send, (signal.SIGSTOP,)),
        threading.Timer(2.2, send, (signal.SIGCONT,)),
    ]
    list(map(threading.Timer.start, timers))
    result, records = engine(
        "run", server, load={"connections": 8}, client={"workers": 2}, phases={"measure_us": 4_000_000}
    )
    list(map(threading.Timer.join, timers))
    assert result.done, result.failure()
    assert result.end is not None
    gaps = result.end["phases"]["measure"]["gaps"]
    stopped_us, continued_us = (at * 1e6 for at in signals)
    assert gaps["longest_us"] == pytest.approx(continued_us - stopped_us, abs=300_000)
    (start_us,) = (one["data"]["at_unix_us"] for one in records if one["type"] == "phase")
    assert start_us + gaps["longest_start_us"] == pytest.approx(stopped_us, abs=300_000)
    # The gap lasts over the ends of intervals, each of which has a part of it.
    parts = [one["data"] for one in records if one["type"] == "interval"]
    assert longest_gap(parts, consecutive=True) == pytest.approx(
        (gaps["longest_start_us"], gaps["longest_us"]), abs=2
    )


def test_deadlocks_are_retried_and_no_row_is_lost(server: Server) -> None:
    options = {"tables": 1, "table_size": ROWS, "index_updates": 4, "delete_inserts": 4}
    engine("prepare", server, options=options)
    workload = {"name": "oltp_write_only", "options": {**options, "table_size": 20, "range_size": 10}}
    result, _ = engine(
        "run", server, workload=workload, load={"connections": 16}, phases={"measure_us": 2_000_000}
    )
    assert result.done, result.failure()
    assert result.end is not None
    totals = result.end["phases"]["measure"]
    assert totals["errors"].get("1213", 0) > 0, "16 users of 20 rows met no deadlock"
    assert totals["error_classes"]["1213"] == "deadlock"
    # A user whose ROLLBACK is under way when the measurement ends has met the error and not begun anew.
    assert 0 <= sum(totals["errors"].values()) - totals["retries"] <= 16
    schema = server.address().database
    assert server.query(f"SELECT COUNT(*), MAX(id) FROM {schema}.sbtest1") == [(ROWS, ROWS)]


def test_a_missing_table_names_itself_and_the_way_out(server: Server) -> None:
    result, _ = engine("run", server, options={"tables": 5})
    assert result.exit_code == 3
    assert "sbtest3" in result.failure()
    assert "load the tables first" in result.failure()


def test_a_wrong_password_is_one_clear_sentence(server: Server) -> None:
    address = server.address()
    asked = plan(address)
    result = Engine().run("run", asked, {Address.PASSWORD_VARIABLE: "canary-not-the-password"})
    assert result.exit_code == 3
    assert "Access denied" in result.failure()
    assert "canary" not in result.stderr


def test_a_lost_connection_ends_a_run_that_is_to_stop(server: Server) -> None:
    killer = threading.Timer(0.7, _kill_sessions, [server])
    killer.start()
    result, _ = engine(
        "run",
        server,
        load={"connections": 4},
        phases={"measure_us": 5_000_000},
        reconnect={"on_lost": "stop"},
    )
    killer.join()
    assert result.exit_code == 4
    assert result.end is not None
    assert result.end["reason"] == "connection-lost"
    assert result.end["phases"]["measure"]["events"] > 0


def _kill_sessions(server: Server) -> None:
    user = server.address().user
    for _ in range(3):
        for (number,) in server.query(f"SELECT id FROM information_schema.processlist WHERE user = '{user}'"):
            try:
                server.query(f"KILL {number}")
            except pymysql.MySQLError:
                return
        time.sleep(0.05)


def test_the_unix_socket_works_too(server: Server) -> None:
    result, _ = engine("run", server, target=server.address().target("unix"))
    assert result.done, result.failure()


def test_no_password_leaves_the_engine(server: Server) -> None:
    address = server.address()
    lines: list[bytes] = []
    result = Engine().run("run", plan(address), address.environment(), on_line=lines.append)
    assert result.done
    assert address.password
    assert address.password.encode() not in b"".join(lines)
    assert address.password not in result.stderr
