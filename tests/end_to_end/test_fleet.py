"""A fleet of processes on this machine: the same numbers as one engine, and no result of a part of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dbdyno.experiment.fleet import Fleet
from dbdyno.fleet.carrier import EngineLost
from dbdyno.fleet.engine_host import EngineHost
from dbdyno.fleet.fleet_engine import FleetEngine
from dbdyno.run.engine import Engine, EngineResult, Record
from dbdyno.servers.kinds.local import LocalServer

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
    own = psutil.Process().children(recursive=True)
    return [one for one in own if "dbdyno-engine" in " ".join(one.cmdline()) and "run" in one.cmdline()]


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


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (signal.SIGKILL, "it ended with status -9"),
        (signal.SIGSTOP, "it wrote no record for 3 s"),
    ],
)
def test_a_lost_engine_ends_the_run_within_five_seconds(
    fleet: FleetEngine, number: signal.Signals, why: str
) -> None:
    killed: list[float] = []

    def kill() -> None:
        while len(engine_processes()) < 3:
            time.sleep(0.05)
        time.sleep(1.0)
        os.kill(engine_processes()[1].pid, number)
        killed.append(time.monotonic())

    thread = threading.Thread(target=kill)
    thread.start()
    document = plan(6, seconds=30.0)
    with pytest.raises(EngineLost, match=f"the engine on engine [123] was lost: {why}"):
        run(fleet, document)
    ended = time.monotonic()
    thread.join()
    assert ended - killed[0] < 5.0
    assert engine_processes() == []
    # The next run has new places.
    assert run(fleet, plan(3, seconds=0.5))[0].done


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
        assert all(phase["errors"] == {} for phase in counts)
        ((rows,),) = mariadb.query("SELECT COUNT(*) FROM dbdyno.unique_numbers")
        events = sum(phase["events"] for phase in counts)
        # Those in flight at the end may have been stored, too.
        assert events <= rows <= events + 5
    finally:
        mariadb.query("DROP TABLE dbdyno.unique_numbers")


def test_an_engine_that_hangs_without_its_process_is_killed_by_the_next_one() -> None:
    """The process that watches the engine is killed, and the engine notices neither this nor signals."""
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
        (left,) = psutil.Process(host.pid).children()
        host.kill()
    assert left.is_running()
    EngineHost().close()
    assert psutil.wait_procs([left], 5.0) == ([left], [])
