"""What a fleet costs, and whether it adds up: `python -m benchmarks.fleet.scaling [merge|control|sum]`.

`merge` replays the records of one engine, with 64 connections to a private MariaDB server, as those of up to
200 through the real merge, and measures its CPU time and memory. `control` runs two engines of this machine
and compares the CPU time of driver and merge with that of the engines. `sum` runs 1, 2 and 3 engines with the
same connections on hosts of 0.4 CPUs (root only).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from results import machine, write_table
from tests.conftest import variant

from dbdyno.experiment.model import Fleet
from dbdyno.fleet.carrier import Carrier
from dbdyno.fleet.fleet_engine import FleetEngine
from dbdyno.fleet.ray_carrier import RayCarrier
from dbdyno.run.engine import Engine, EngineResult, find_engine
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address
from dbdyno.servers.workspace import Workspace

from .hosts import CPU_SHARE, Host, cluster, network

ENGINES = (1, 25, 50, 100, 200)
SECONDS = 20
# Connections of a fleet on hosts, and seconds of its measurement.
CONNECTIONS, SUM_S = 12, 10.0
# The argument with which this program runs on a host of the cluster.
ON_HOSTS = "sum-on-hosts"


def plan(
    connections: int, seconds: float, *, name: str = "oltp_read_write", count: int = 1
) -> dict[str, Any]:
    """A load on the null target, which answers at once."""
    return {
        "schema": 1,
        "target": {"protocol": "null"},
        "workload": {"name": name, "options": {"tables": 4, "table_size": 10_000}},
        "load": {"connections": connections, "shape": "closed"},
        "phases": {"warmup_us": 500_000, "measure_us": round(seconds * 1e6)},
        "seed": 1,
        "segment": {"index": 0, "count": count},
        "start": {"on-command": {"start_timeout_us": 60_000_000}},
    }


@contextmanager
def mariadb() -> Iterator[Address]:
    """A private server with the tables of `plan`."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-fleet-", dir="/var/tmp") as folder:
        workspace = Workspace.open(Path(folder))
        with closing(LocalServer(variant("recorded"), workspace, None)) as server:
            server.start()
            address = server.address()
            prepare = {**plan(1, 1.0), "target": address.target()}
            assert Engine().run("prepare", prepare, address.environment()).done
            yield address


def record_stream(address: Address, count: int) -> list[bytes]:
    """The records of the first engine of a fleet of `count`, which has 64 connections to a server."""
    lines: list[bytes] = []
    made = {**plan(64 * count, SECONDS, count=count), "target": address.target()}
    result = Engine().run("run", made, address.environment(), on_line=lines.append)
    assert result.done, result.failure()
    return lines


def merge_streams(lines: Sequence[bytes], count: int) -> dict[str, float]:
    """CPU seconds of the merge per second of load, megabytes of memory, and megabytes of records per second.

    `lines` are the records of the first of `count` engines; the others have the same.
    """
    process = subprocess.Popen(
        [find_engine(), "merge", *(f"host{number}" for number in range(count))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    merged: list[bytes] = []
    reader = threading.Thread(target=lambda: merged.extend(process.stdout or ()))
    reader.start()
    size = 0
    for line in lines:
        for number in range(count):
            own = line
            if line.startswith(b'{"type":"hello"'):
                record = json.loads(line)
                record["data"]["plan"]["segment"]["index"] = number
                own = json.dumps(record).encode() + b"\n"
            process.stdin.write(b"%d " % number + own)
            size += len(own)
    process.stdin.close()
    reader.join()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, status
    end, one = json.loads(merged[-1])["data"], json.loads(lines[-1])["data"]
    assert end["phases"]["measure"]["events"] == count * one["phases"]["measure"]["events"]
    cpu_s = usage.ru_utime + usage.ru_stime
    seconds = SECONDS + 0.5
    return {
        "engines": count,
        "cpu": cpu_s / seconds,
        "mb": usage.ru_maxrss / 1024,
        "mb_per_s": size / seconds / 1e6,
    }


def table_of_merge() -> str:
    with mariadb() as address:
        streams = [record_stream(address, count) for count in ENGINES]
    rows = [merge_streams(lines, count) for count, lines in zip(ENGINES, streams, strict=True)]
    lines = [
        "## Fleets: the merge of records",
        "",
        f"Each engine's records are those of 64 connections to MariaDB, oltp_read_write, {SECONDS} s.",
        "",
        "| engines | records MB/s | CPU of the merge, of one core | of one core per engine | memory MB |",
        "|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['engines']:.0f} | {row['mb_per_s']:.2f} | {100 * row['cpu']:.2f} % | "
            f"{100 * row['cpu'] / row['engines']:.4f} % | {row['mb']:.0f} |"
        )
    return "\n".join(lines)


def _run(
    carrier: Carrier | None, engines: int, connections: int, seconds: float, address: str
) -> tuple[EngineResult, float]:
    """The result of a fleet, and the CPU seconds of this process and of the merge."""
    with closing(FleetEngine(Fleet(engines=engines, address=address), carrier=carrier)) as fleet:
        # The first run places the engines.
        fleet.run("run", plan(connections, 0.5, name="oltp_point_select"))
        before = time.process_time() + _children_s()
        result = fleet.run("run", plan(connections, seconds, name="oltp_point_select"))
        assert result.done, result.failure()
        used = time.process_time() + _children_s() - before
    return result, used


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def table_of_control() -> str:
    """Driver and merge, as a share of the engines' CPU time."""
    result, used = _run(None, 2, 32, 30.0, "local")
    engines_s = sum(one["cpu_s"] for one in result.fleet)
    # The engines are children of this process, too.
    control_s = used - engines_s
    lines = [
        "## Fleets: the control path",
        "",
        "| | CPU seconds in 30 s | of the engines' |",
        "|---|---:|---:|",
        f"| 2 engines | {engines_s:.2f} | |",
        f"| driver, engine hosts and merge | {control_s:.3f} | {100 * control_s / engines_s:.2f} % |",
    ]
    return "\n".join(lines)


def sum_on_hosts() -> int:
    """Runs on the first host of the cluster: prints what 1, 2 and 3 engines reach, as JSON."""
    rows = []
    for pins in (True, False):
        for engines in (1, 2, 3):
            result, _ = _run(RayCarrier("auto", pins=pins), engines, CONNECTIONS, SUM_S, "auto")
            measured = result.end["phases"]["measure"] if result.end else {}
            rows.append(
                {
                    "engines": engines,
                    "pins": pins,
                    "tps": measured["events"] * 1e6 / (measured["end_us"] - measured["start_us"]),
                    "engine_s": sum(one["cpu_s"] for one in result.fleet),
                    "daemons_s": sum(one["daemons_cpu_s"] for one in result.fleet),
                }
            )
    print(json.dumps(rows))
    return 0


def separate(hosts: Sequence[Host], connections: int, seconds: float) -> float:
    """Transactions per second of engines that run at the same time, but know nothing of one another."""
    share = plan(connections // len(hosts), seconds, name="oltp_point_select")
    del share["start"]
    processes = [
        subprocess.Popen(host.argv(str(find_engine()), "run"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for host in hosts
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(json.dumps(share).encode() + b"\n")
        process.stdin.close()
    with ThreadPoolExecutor() as pool:
        outputs = pool.map(lambda process: (process.stdout or io.BytesIO()).read(), processes)
    ends = [json.loads(output.splitlines()[-1])["data"]["phases"]["measure"] for output in outputs]
    for process in processes:
        assert process.wait() == 0
    return sum(float(one["events"] * 1e6 / (one["end_us"] - one["start_us"])) for one in ends)


def table_of_sums() -> str:
    with network(3) as (*hosts, _server), cluster(hosts) as environment:
        for host in hosts:
            host.limit_cpu(CPU_SHARE)
        command = [sys.executable, "-m", "benchmarks.fleet.scaling", ON_HOSTS]
        answer = hosts[0].run(*command, environment=environment, seconds=400)
        alone = {count: separate(hosts[:count], CONNECTIONS, SUM_S) for count in (1, 2, 3)}
    rows = json.loads(answer.stdout.splitlines()[-1])
    lines = [
        f"## Fleets: engines on hosts of {CPU_SHARE} CPUs, {CONNECTIONS} connections to the null target",
        "",
        "Separate engines have the same connections and hosts, and run at the same time, but are no fleet: "
        "they show what the machine can do.",
        "",
        "| engines | Ray's processes pinned away | transactions/s | of so many separate engines "
        "| CPU of the engines, s in 10 s | CPU of Ray's processes, s |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        share = 100 * row["tps"] / alone[row["engines"]]
        lines.append(
            f"| {row['engines']} | {'yes' if row['pins'] else 'no'} | {row['tps']:,.0f} | {share:.1f} % | "
            f"{row['engine_s']:.2f} | {row['daemons_s']:.2f} |"
        )
    return "\n".join(lines)


TABLES = {"merge": table_of_merge, "control": table_of_control, "sum": table_of_sums}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet.scaling", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)} (default: all)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables into results.md")
    options = parser.parse_args(arguments)
    if options.what == [ON_HOSTS]:
        return sum_on_hosts()
    if unknown := set(options.what) - set(TABLES):
        parser.error(f"there is no table {', '.join(sorted(unknown))}, but {', '.join(TABLES)}")
    for name in options.what or TABLES:
        text = TABLES[name]()
        print(text, flush=True)
        if options.output:
            write_table(options.output, f"fleet-{name}", text, f"On {machine()}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
