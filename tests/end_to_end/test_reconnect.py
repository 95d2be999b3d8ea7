"""Connections that are lost, closed and opened anew, on a real MariaDB.

Each count is held against what was really done to the connections, or against the server's own counters.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer

CONNECTIONS = 4
SECOND_US = 1_000_000
SEEDS = itertools.count(1)


@pytest.fixture(scope="module")
def loaded(mariadb: LocalServer) -> LocalServer:
    """The module's MariaDB with one small table."""
    result, _ = engine("prepare", mariadb)
    assert result.done, result.failure()
    return mariadb


@pytest.fixture
def server(loaded: LocalServer) -> Iterator[LocalServer]:
    """The same, up again after a test that stopped it."""
    yield loaded
    if not loaded.process():
        loaded.start()


def engine(command: Any, server: LocalServer, **changes: Any) -> tuple[EngineResult, list[Any]]:
    """The result and every record of one command; one second of oltp_read_write by default."""
    address = server.address()
    options = {"tables": 1, "table_size": 1000, **changes.pop("options", {})}
    plan = {
        "schema": 1,
        "target": address.target(),
        "workload": {"name": "oltp_read_write", "options": options},
        "load": {"connections": CONNECTIONS},
        "phases": {"measure_us": SECOND_US},
        # A run with the seed of an earlier one would write what is there already, which changes no row.
        "seed": next(SEEDS),
        **changes,
    }
    records: list[Any] = []
    result = Engine().run(command, plan, address.environment(), records.append)
    return result, records


def measured(result: EngineResult) -> Any:
    """The totals of the measurement, whose accounts must balance."""
    assert result.end is not None, result.stderr
    totals = result.end["phases"]["measure"]
    accounting = totals["accounting"]
    ended = accounting["done"] + accounting["failed"] + accounting["dropped"] + accounting["unfinished"]
    assert accounting["due"] == ended
    return totals


def meanwhile(
    work: Callable[[], None], server: LocalServer, **changes: Any
) -> tuple[EngineResult, list[Any]]:
    """As `engine` for a run, with `work` done one second after its beginning.

    The run is followed by another thread, and not the work: a server ends with the thread that started it.
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine, "run", server, **changes)
        time.sleep(1.0)
        work()
        return running.result()


def kill_sessions(server: LocalServer, killed: list[int], most: int = CONNECTIONS) -> None:
    """Kills every connection of the load, or the first of them, each once, and notes them."""
    user = server.address().user
    found = server.query(f"SELECT id FROM information_schema.processlist WHERE user = '{user}'")
    for (number,) in found[:most]:
        server.query(f"KILL CONNECTION {number}")
        killed.append(number)


def test_killed_connections_come_back(server: LocalServer) -> None:
    killed: list[int] = []
    before = int(server.status()["Com_stmt_prepare"])
    result, _ = meanwhile(lambda: kill_sessions(server, killed), server, phases={"measure_us": 2 * SECOND_US})
    assert result.done, result.failure()
    assert len(killed) == CONNECTIONS
    totals = measured(result)
    assert totals["reconnects"] == CONNECTIONS
    lost = {code: count for code, count in totals["errors"].items() if code not in ("1213", "1020", "1205")}
    assert sum(lost.values()) == CONNECTIONS, totals["errors"]
    assert set(lost) <= {"2013", "1927"}
    # Prepared anew, all of them: nine kinds on one table, BEGIN and COMMIT among the eleven.
    prepared = int(server.status()["Com_stmt_prepare"]) - before
    assert prepared == 2 * CONNECTIONS * 11
    assert totals["row_count_mismatches"] == 0
    assert totals["accounting"]["failed"] == 0


def test_a_loss_that_is_to_be_retried_is_made_good(server: LocalServer) -> None:
    """These errors start the event anew, and a lost connection is opened for it."""
    killed: list[int] = []
    result, _ = meanwhile(
        lambda: kill_sessions(server, killed),
        server,
        phases={"measure_us": 2 * SECOND_US},
        retry={"codes": [1213, 1020, 1205, 1927, 2013], "rollback": False},
        reconnect={"on_lost": "stop", "first_us": 1000, "max_us": 1000},
    )
    assert result.done, result.failure()
    totals = measured(result)
    assert totals["reconnects"] == len(killed) == CONNECTIONS
    lost = sum(totals["errors"].get(code, 0) for code in ("1927", "2013"))
    assert lost == CONNECTIONS, totals["errors"]
    assert totals["accounting"]["failed"] == totals["row_count_mismatches"] == 0


def test_a_run_may_end_at_the_first_loss(server: LocalServer) -> None:
    result, _ = meanwhile(
        # One alone: when the others would be killed, the run that ends may have closed them.
        lambda: kill_sessions(server, [], most=1),
        server,
        phases={"measure_us": 5 * SECOND_US},
        reconnect={"on_lost": "stop"},
    )
    assert result.exit_code == 4
    assert result.end is not None
    assert result.end["reason"] == "connection-lost"
    assert measured(result)["events"] > 0
    assert measured(result)["reconnects"] == 0


def restart(server: LocalServer) -> None:
    server.stop(clean=True)
    server.start()


@pytest.mark.alone
def test_a_restart_shows_in_the_latency_of_what_was_due(server: LocalServer) -> None:
    result, records = meanwhile(
        lambda: restart(server),
        server,
        load={"connections": CONNECTIONS, "shape": {"constant": {"rate_per_s": 100.0}}},
        phases={"measure_us": 12 * SECOND_US},
    )
    assert result.done, result.failure()
    totals = measured(result)
    # A server that is going down may still let one in, and lose it again. Every loss starts an event anew.
    assert CONNECTIONS <= totals["reconnects"] <= totals["retries"]
    assert totals["row_count_mismatches"] == 0
    # Nobody could connect while it was down: 2003 counts every attempt that failed.
    assert totals["errors"].get("2003", 0) > 0
    # The outage as the counts of each second tell it, and as the latency does: an event due when it began
    # has waited for its end.
    intervals = [record["data"] for record in records if record["type"] == "interval"]
    silent = [interval for interval in intervals if interval["events"] == 0]
    longest_us = totals["latency_max_us"]
    # A small server restarts within 0.15 s; without an outage transactions take a millisecond.
    assert longest_us > max(50_000, (len(silent) - 1) * SECOND_US)
    assert totals["accounting"]["due"] == 1200
    assert totals["accounting"]["unfinished"] < 20, "the backlog was worked off"


def test_a_server_that_stays_away_ends_the_run(server: LocalServer) -> None:
    result, records = meanwhile(
        lambda: server.stop(clean=False),
        server,
        phases={"measure_us": 60 * SECOND_US},
        reconnect={"give_up_us": SECOND_US},
    )
    assert result.exit_code == 4
    assert result.end is not None
    assert result.end["reason"] == "connection-lost"
    assert "could not be opened again within 1.0 s" in result.failure()
    assert "onnection refused" in result.failure()
    totals = measured(result)
    intervals = [record["data"] for record in records if record["type"] == "interval"]
    assert sum(interval["events"] for interval in intervals) == totals["events"] > 0
    assert 1.5 < totals["end_us"] / SECOND_US < 5.0


def test_a_run_that_ends_without_its_server_is_no_result(server: LocalServer) -> None:
    result, _ = meanwhile(lambda: server.stop(clean=False), server, phases={"measure_us": 3 * SECOND_US})
    assert result.exit_code == 4
    assert "none could be opened again" in result.failure()
    totals = measured(result)
    assert totals["end_us"] == 3 * SECOND_US
    assert totals["accounting"]["unfinished"] == CONNECTIONS


@pytest.mark.parametrize("statements", ["prepared", "text"])
def test_connections_are_renewed_as_often_as_asked(server: LocalServer, statements: str) -> None:
    before = server.status()
    workload = {
        "name": "oltp_point_select",
        "options": {"tables": 1, "table_size": 1000},
        "statements": statements,
    }
    result, _ = engine("run", server, workload=workload, load={"connections": 2, "reconnect_every": 5})
    after = server.status()
    assert result.done, result.failure()
    totals = measured(result)
    # Both connections play on for at most one event after the end, for which each may have been renewed.
    opened = int(after["Connections"]) - int(before["Connections"])
    assert 0 <= opened - 2 - totals["reconnects"] <= 2
    # Five events on each connection, the first five before the first renewal.
    assert 0 <= totals["events"] - 5 * totals["reconnects"] <= 2 * 5
    assert totals["reconnects"] > 20
    assert totals["errors"] == {}
    prepared = int(after["Com_stmt_prepare"]) - int(before["Com_stmt_prepare"])
    # The end of the run may catch each connection between its login and its statement.
    assert 0 <= opened - prepared <= 2 if statements == "prepared" else prepared == 0


@pytest.mark.alone
def test_renewing_costs_latency(server: LocalServer) -> None:
    workload = {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 1000}}
    means = []
    for every in (0, 1):
        result, _ = engine(
            "run", server, workload=workload, load={"connections": 1, "reconnect_every": every}
        )
        totals = measured(result)
        means.append(totals["latency_sum_us"] / totals["events"])
        # In a closed loop the next event is due when the last one ends, whatever lies between them.
        busy_us = totals["latency_sum_us"] + totals["accounting"]["unfinished_us"]
        assert busy_us == pytest.approx(SECOND_US, rel=0.02)
    assert means[1] > 2 * means[0]


def test_an_account_that_is_gone_is_named(server: LocalServer) -> None:
    user = server.address().user
    accounts = [
        f"'{user}'@'{host}'" for (host,) in server.query(f"SELECT host FROM mysql.user WHERE user = '{user}'")
    ]

    def lock_out() -> None:
        for account in accounts:
            server.query(f"ALTER USER {account} ACCOUNT LOCK")
        kill_sessions(server, [])

    result, _ = meanwhile(
        lock_out, server, phases={"measure_us": 20 * SECOND_US}, reconnect={"give_up_us": 500_000}
    )
    for account in accounts:
        server.query(f"ALTER USER {account} ACCOUNT UNLOCK")
    assert result.exit_code == 4
    assert "account is locked" in result.failure()
    assert "4151" in measured(result)["errors"], measured(result)["errors"]
