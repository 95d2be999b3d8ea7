"""A fleet of processes on this machine: the same numbers as one engine, and no result of a part of it."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dbdyno.binary import EngineProblem
from dbdyno.experiment.model import Fleet
from dbdyno.fleet.carrier import EngineLost
from dbdyno.fleet.fleet_engine import FleetEngine
from dbdyno.fleet.streams import SILENT_S
from dbdyno.run.engine import Engine, EngineResult, Record
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address

NULL = {"protocol": "null"}


def plan(
    connections: int, *, target: Mapping[str, Any] = NULL, seconds: float = 2.0, **load: Any
) -> dict[str, Any]:
    return {
        "schema": 1,
        "target": dict(target),
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 1000}},
        "load": {"connections": connections, "shape": "closed", **load},
        "phases": {"warmup_us": 500_000, "measure_us": round(seconds * 1e6)},
        "seed": 1,
        "client": {"workers": 1, "scheduling": "normal"},
        "start": {"on-command": {"start_timeout_us": 20_000_000}},
    }


@pytest.fixture
def fleet() -> Iterator[FleetEngine]:
    with closing(FleetEngine(Fleet(engines=3, address="local"))) as engine:
        yield engine


def run(
    engine: Engine, document: Mapping[str, Any]
) -> tuple[EngineResult, list[Record], dict[int, list[bytes]]]:
    records: list[Record] = []
    lines: dict[int, list[bytes]] = {}
    result = engine.run(
        "run", document, on_record=records.append, open_lines=lambda index: lines.setdefault(index, []).append
    )
    return result, records, lines


def engine_processes() -> list[psutil.Process]:
    engines = []
    for process in psutil.Process().children(recursive=True):
        # It may have ended, or wait for its parent.
        with suppress(psutil.Error):
            words = process.cmdline()
            if "dbdyno-engine" in " ".join(words) and "run" in words:
                engines.append(process)
    return engines


def test_the_counts_of_a_fleet_are_the_sums_of_its_engines(fleet: FleetEngine) -> None:
    result, records, lines = run(fleet, plan(7))
    assert result.done, result.failure()
    ends = [json.loads(lines[index][-1])["data"] for index in range(3)]
    assert result.end is not None
    merged = result.end["phases"]["measure"]
    for key in ("events", "reads", "rows", "bytes", "latency_sum_us"):
        assert merged[key] == pytest.approx(sum(end["phases"]["measure"][key] for end in ends), rel=1e-12), (
            key
        )
    values: dict[int, int] = {}
    for end in ends:
        for lower, count in end["phases"]["measure"]["latency_us"]:
            values[lower] = values.get(lower, 0) + count
    assert merged["latency_us"] == [[lower, values[lower]] for lower in sorted(values)]
    # The nearest rank of the joined samples, by numpy.
    joined = np.repeat(sorted(values), [values[lower] for lower in sorted(values)])
    expected = np.quantile(joined, 0.99, method="inverted_cdf")
    assert merged["percentiles_us"]["p99"]["value_us"] == pytest.approx(expected, rel=1e-3, abs=1.0)
    kinds = [record["type"] for record in records]
    assert kinds.count("hello") == kinds.count("ready") == kinds.count("end") == 1
    ready = next(record["data"] for record in records if record["type"] == "ready")
    assert ready["connections"] == 7
    connections = [
        json.loads(line)["data"]["connections"] for of in lines.values() for line in of if b'"ready"' in line
    ]
    assert sorted(connections) == [2, 2, 3]
    intervals = [record["data"] for record in records if record["type"] == "interval"]
    assert sum(one["events"] for one in intervals if one["phase"] == "measure") == merged["events"]


def test_the_load_begins_together(fleet: FleetEngine) -> None:
    result, _, _ = run(fleet, plan(3, seconds=0.5))
    assert [one["name"] for one in result.fleet] == ["engine 1", "engine 2", "engine 3"]
    # One clock and two CPUs: what is left is the time until each process runs.
    assert max(abs(one["start_skew_us"]) for one in result.fleet) < 50_000
    assert max(abs(one["clock_offset_us"]) for one in result.fleet) < 5_000


def test_an_open_loop_keeps_its_rate(fleet: FleetEngine) -> None:
    document = plan(6, seconds=3.0)
    document["load"]["shape"] = {"constant": {"rate_per_s": 900.0}}
    result, _, _ = run(fleet, document)
    assert result.end is not None, result.failure()
    accounting = result.end["phases"]["measure"]["accounting"]
    assert accounting["due"] == pytest.approx(2700, abs=3)
    assert accounting["due"] == accounting["done"] + accounting["unfinished"]


@contextmanager
def signalled(process: Callable[[], int], number: signal.Signals, after_s: float) -> Iterator[list[float]]:
    """Send a signal to a process `after_s` after it has begun. Yields the instant, once it has happened."""
    sent: list[float] = []

    def send() -> None:
        deadline = time.monotonic() + 10.0
        while time.monotonic() < deadline:
            with suppress(IndexError, psutil.Error):
                found = process()
                time.sleep(after_s)
                os.kill(found, number)
                sent.append(time.monotonic())
                return
            time.sleep(0.02)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        thread.join()


def child(number: int, word: str) -> int:
    """A child process whose command line has a word."""
    return int([one for one in psutil.Process().children() if word in one.cmdline()][number].pid)


def second_engine() -> int:
    return child(1, "run")


STOPPED = r"the engine on engine [123] was lost: its process was stopped \(SIGSTOP\)"


@pytest.mark.parametrize(
    ("process", "number", "why"),
    [
        (second_engine, signal.SIGKILL, "the engine on engine [123] was lost: it ended with status -9"),
        (second_engine, signal.SIGSTOP, STOPPED),
        (partial(child, 0, "merge"), signal.SIGSTOP, r"the engine's process was stopped \(SIGSTOP\)"),
    ],
)
def test_a_lost_engine_ends_the_run_within_five_seconds(
    fleet: FleetEngine, process: Callable[[], int], number: signal.Signals, why: str
) -> None:
    with (
        signalled(process, number, 1.0) as sent,
        pytest.raises(EngineProblem, match=why),
    ):
        run(fleet, plan(6, seconds=30.0))
    assert time.monotonic() - sent[0] < 5.0
    assert engine_processes() == []
    assert run(fleet, plan(3, seconds=0.2))[0].done


def sleeping(address: Address, seconds: float) -> dict[str, Any]:
    """A plan whose transactions take longer than its measurement of 0.3 s."""
    document = plan(3, target=address.target("tcp"), seconds=0.3)
    document["phases"]["warmup_us"] = 0
    statement = {"sql": f"SELECT SLEEP({seconds})"}
    document["workload"] = {"name": "sql", "sql": {"transactions": [{"statements": [statement]}]}}
    return document


def test_an_engine_that_is_stopped_while_it_waits_for_the_last_transactions(
    fleet: FleetEngine, mariadb: LocalServer
) -> None:
    address = mariadb.address()
    with (
        signalled(second_engine, signal.SIGSTOP, 1.5) as sent,
        pytest.raises(EngineLost, match=STOPPED),
    ):
        fleet.run("run", sleeping(address, 20.0), address.environment())
    assert time.monotonic() - sent[0] < 5.0


def test_a_slow_server_is_not_taken_for_a_stopped_engine(fleet: FleetEngine, mariadb: LocalServer) -> None:
    """The engines write no record for longer than one that hangs under load may."""
    address = mariadb.address()
    result = fleet.run("run", sleeping(address, SILENT_S + 1.5), address.environment())
    assert result.done, result.failure()


def test_an_engine_that_is_stopped_while_it_connects_or_loads(fleet: FleetEngine) -> None:
    """From a server that accepts connections and says nothing. One engine creates the tables."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = {"tcp": {"host": "127.0.0.1", "port": server.getsockname()[1]}}
        target = {"protocol": "mysql", "endpoints": [endpoint], "user": "u", "database": "d"}
        document = plan(3, target=target)
        with (
            signalled(second_engine, signal.SIGSTOP, 0.3) as sent,
            pytest.raises(EngineLost, match=STOPPED),
        ):
            fleet.run("run", document)
        assert time.monotonic() - sent[0] < 5.0
        del document["start"]
        with (
            signalled(partial(child, 0, "prepare"), signal.SIGSTOP, 0.3) as sent,
            pytest.raises(EngineProblem, match=r"process was stopped \(SIGSTOP\)"),
        ):
            fleet.run("prepare", document)
        assert time.monotonic() - sent[0] < 5.0


def test_a_server_that_refuses_one_engine_fails_the_run(fleet: FleetEngine, tmp_path: Path) -> None:
    target = {
        "protocol": "mysql",
        "endpoints": [{"tcp": {"host": "127.0.0.1", "port": 9}}],
        "user": "u",
        "database": "d",
    }
    result, _, _ = run(fleet, plan(6, target=target))
    assert not result.done
    assert result.exit_code == 3
    assert result.failure().startswith("engine ")
    assert engine_processes() == []


def test_tables_that_a_fleet_has_loaded_are_those_of_one_engine(
    fleet: FleetEngine, mariadb: LocalServer
) -> None:
    address = mariadb.address()
    document = plan(3, target=address.target("tcp"))
    del document["start"]
    document["workload"] = {"name": "oltp_read_write", "options": {"tables": 2, "table_size": 4000}}
    document["loading"] = {"streams": 2, "method": "insert"}
    checksums = []
    for engine in (fleet, Engine()):
        records: list[Record] = []
        result = engine.run("prepare", document, address.environment(), records.append)
        assert result.done, result.failure()
        # Prepared again, nothing is missing.
        assert engine.run("prepare", document, address.environment()).done
        (loaded, *_) = [one["data"] for one in records if one["type"] == "loaded" and one["data"]["rows"]]
        assert loaded["rows"] == 8000
        progress = [
            one["data"] for one in records if one["type"] == "loading" and one["data"]["step"] == "rows"
        ]
        assert (progress[-1]["rows"], progress[-1]["rows_planned"]) == (8000, 8000)
        checksums.append([row[1] for row in mariadb.query("CHECKSUM TABLE dbdyno.sbtest1, dbdyno.sbtest2")])
        assert mariadb.query("SELECT COUNT(DISTINCT id), MAX(id) FROM dbdyno.sbtest1") == [(4000, 4000)]
        assert engine.run("cleanup", document, address.environment()).done
    assert checksums[0] == checksums[1]
    assert all(checksums[0])


def test_loading_that_loses_an_engine_is_repeated(
    fleet: FleetEngine, mariadb: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = mariadb.address()
    document = plan(3, target=address.target("tcp"))
    del document["start"]
    document["workload"] = {"name": "oltp_read_write", "options": {"tables": 2, "table_size": 30_000}}
    document["loading"] = {"streams": 2, "method": "insert"}
    with signalled(partial(child, 1, "prepare"), signal.SIGKILL, 0.1) as sent:
        result = fleet.run("prepare", document, address.environment())
    assert sent
    assert "loading once more: the engine on engine" in caplog.text
    assert result.done, result.failure()
    for table in ("sbtest1", "sbtest2"):
        counts = mariadb.query(f"SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM dbdyno.{table}")
        assert counts == [(30_000, 30_000, 30_000)]
    assert fleet.run("cleanup", document, address.environment()).done


def test_rows_that_engines_insert_do_not_collide(fleet: FleetEngine, mariadb: LocalServer) -> None:
    """A sequence of the workload and random keys: each engine has its own part of them."""
    address = mariadb.address()
    document = plan(5, target=address.target("tcp"), seconds=1.0)
    document["workload"] = {
        "name": "sql",
        "sql": {
            "parameters": {"id": {"sequence": {"first": 1}}},
            "transactions": [
                {
                    "name": "insert",
                    "statements": [
                        {"sql": "INSERT INTO unique_numbers VALUES (:id, 1)", "rows": 1},
                    ],
                }
            ],
        },
    }
    mariadb.query("CREATE TABLE dbdyno.unique_numbers (id BIGINT PRIMARY KEY, engine INT)")
    try:
        records: list[Record] = []
        result = fleet.run("run", document, address.environment(), records.append)
        assert result.end is not None
        assert result.done, result.failure()
        counts = list(result.end["phases"].values())
        assert counts
        assert all(phase["errors"] == {} for phase in counts)
        ((rows,),) = mariadb.query("SELECT COUNT(*) FROM dbdyno.unique_numbers")
        events = sum(phase["events"] for phase in counts)
        # Those in flight at the end may have been stored, too.
        assert events <= rows <= events + 5
    finally:
        mariadb.query("DROP TABLE dbdyno.unique_numbers")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_an_engine_that_hangs_is_killed_when_its_host_process_cannot(number: signal.Signals) -> None:
    """The process that watches the engine is killed or stopped, and the engine notices nothing."""
    engine = (
        "import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    script = (
        "import sys, time\n"
        "from dbdyno.fleet.engine_host import EngineHost\n"
        "host = EngineHost()\n"
        f"host.start([sys.executable, '-c', {engine!r}], b'', {{}}, None)\n"
        "host.read(10.0)\n"
        "print('started', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"started\n"
        children = psutil.Process(host.pid).children()
        (left,) = (one for one in children if engine in one.cmdline())
        host.send_signal(number)
        deadline = time.monotonic() + 5.0
        with suppress(psutil.NoSuchProcess):
            # A stopped parent reaps nothing.
            while left.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        host.kill()
    assert psutil.wait_procs(children, 2.0)[1] == [], "the process that killed it ends, too"
