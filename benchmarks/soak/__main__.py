"""Runs a load for a long time and prints the slopes of memory, file handles, threads and throughput.

`dbdyno run` runs point selects on a private server of each wire protocol, in turn; `--target null` runs the
load generator without a server instead. Every 5 s the benchmark reads what dbdyno and its load generator use.
With `--kill 1%%` the server ends that share of the connections every second, and the load generator connects
again. The exit code is 1 if the run failed, or if a figure has grown by over 5 %% of its value (and over
8 MiB, handles or threads).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil

from dbdyno.binary import ENGINE
from dbdyno.checks.limits import USABLE
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import find_engine
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

from .killer import Killer
from .usage import Series, is_flat, slope, slopes

SAMPLE_S = 5.0
US = 1_000_000
NULL = "null"
TARGETS = ("mariadb", "postgresql", NULL)
TABLES, TABLE_SIZE = 4, 20_000


def main() -> int:
    """Exit code 0 if everything is flat."""
    options = _options()
    bad: list[str] = []
    for target in options.targets:
        print(f"{target}: {options.connections} connections, {options.minutes:g} min", flush=True)
        bad += _soak_null(options) if target == NULL else _soak(target, options)
    for one in bad:
        print(f"BAD  {one}")
    return 1 if bad else 0


def _soak(product: str, options: argparse.Namespace) -> list[str]:
    """One server: what is wrong."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.scratch)))
        folder.chmod(0o711)
        workspace = stack.enter_context(closing(Workspace.open(folder)))
        server = stack.enter_context(closing(_server(product, options.connections, workspace)))
        server.start()
        address = server.address()
        secret = folder / "password"
        secret.write_text(address.password)
        secret.chmod(0o600)
        url = f"{address.protocol}://{address.user}@{address.host}:{address.port}/{address.database}"
        command = [sys.executable, "-m", "dbdyno", "run", "oltp_point_select", "--target", url]
        command += [
            "--connections",
            str(options.connections),
            "--share-machine",
            "--time",
            f"{options.minutes * 60:g}s",
        ]
        command += [
            "--tables",
            str(TABLES),
            "--table-size",
            str(TABLE_SIZE),
            "--warmup",
            "2s",
            "--workers",
            "1",
        ]
        command += ["--password-file", str(secret), "--results", str(folder)]
        lab = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        killer = Killer(server, options.kill)
        rates: list[tuple[float, float]] = []
        watched = _watch(lab, folder, rates, killer if options.kill else None)
        output = lab.communicate()[0]
        bad = [] if lab.returncode == 0 else [f"{product}: dbdyno run ended with {lab.returncode}"]
        print(output.rstrip())
        if options.kill:
            print(f"  killed {killer.killed} connections in {killer.seconds} s")
        return bad + _print_slopes(product, watched, rates)


def _server(product: str, connections: int, workspace: Workspace) -> LocalServer:
    memory = "shared_buffers" if product == "postgresql" else "innodb_buffer_pool_size"
    variables = {
        memory: "256MB" if product == "postgresql" else "256M",
        "max_connections": _connections_of_server(connections),
    }
    spec = ServerSpec(product=product, variables=dict(variables))
    return LocalServer(Variant(name="soak", server=spec), workspace, None)


def _connections_of_server(connections: int) -> int:
    """max_connections of a server for a load: P07 stops a load that needs more than a share of them."""
    return math.ceil(connections / USABLE) + 20


def _watch(
    lab: subprocess.Popen[str], folder: Path, rates: list[tuple[float, float]], killer: Killer | None
) -> Sequence[Series]:
    """Sample dbdyno and the load generator of its measurement until the load generator ends."""
    own = Series("dbdyno", psutil.Process(lab.pid))
    engine: Series | None = None
    reader = _Throughput(folder)
    while lab.poll() is None:
        events = next(folder.glob("*/*/trials/0001/events.jsonl"), None)
        if events is not None and engine is None and (process := _engine_below(own.process)):
            engine = Series("load generator", process)
        if engine is not None:
            had_rates = bool(rates)
            rates += reader.read(events)
            # While connections are opened, a killed one would end the run, as it should.
            if killer is not None and rates and not had_rates:
                killer.start()
        # Before that, connections are opened; after it, dbdyno loads what it needs to judge.
        if engine is not None and rates and engine.process.is_running():
            own.sample()
            engine.sample()
        time.sleep(SAMPLE_S if rates else 0.2)
    if killer is not None:
        killer.close()
    return [one for one in (own, engine) if one is not None]


def _engine_below(process: psutil.Process) -> psutil.Process | None:
    try:
        return next((one for one in process.children() if one.name() == ENGINE[:15]), None)
    except psutil.NoSuchProcess:
        return None


class _Throughput:
    """Reads the records that the load generator has written since the last call."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._read = folder, 0

    def read(self, path: Path | None) -> list[tuple[float, float]]:
        """End in s and events per second of each new interval of the measurement."""
        if path is None or not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = content.rfind(b"\n") + 1
        self._read += whole
        intervals = (
            json.loads(line)["data"] for line in content[:whole].splitlines() if b'"interval"' in line
        )
        return [_rate(one) for one in intervals if one.get("phase") == "measure"]


def _rate(interval: Mapping[str, Any]) -> tuple[float, float]:
    seconds = (interval["end_us"] - interval["start_us"]) / US
    return interval["end_us"] / US, interval["events"] / max(seconds, 1e-9)


def _soak_null(options: argparse.Namespace) -> list[str]:
    """The load generator without a server: what is wrong."""
    plan = {
        "schema": 1,
        "target": {"protocol": "null"},
        "workload": {"name": "oltp_point_select", "options": {"tables": TABLES, "table_size": TABLE_SIZE}},
        "load": {"connections": options.connections},
        "phases": {"warmup_us": US, "measure_us": round(options.minutes * 60 * US)},
        "seed": 1,
    }
    with subprocess.Popen(
        [find_engine(), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write(json.dumps(plan) + "\n")
        engine.stdin.close()
        series = Series("load generator", psutil.Process(engine.pid))
        rates: list[tuple[float, float]] = []
        due = time.monotonic()
        for line in engine.stdout:
            record = json.loads(line)
            if record["type"] == "interval" and record["data"].get("phase") == "measure":
                rates.append(_rate(record["data"]))
            if time.monotonic() >= due:
                due += min(SAMPLE_S, options.minutes)
                series.sample()
    bad = [] if engine.returncode == 0 else [f"null: the load generator ended with {engine.returncode}"]
    return bad + _print_slopes(NULL, [series], rates)


def _print_slopes(target: str, watched: Sequence[Series], rates: Sequence[tuple[float, float]]) -> list[str]:
    """Print every slope; those that are not flat."""
    bad = []
    for series in watched:
        if not series.samples:
            bad.append(f"{target}: no sample of {series.name}")
            continue
        hours = (series.samples[-1].at_s - series.samples[0].at_s) / 3600.0
        for one in slopes(series):
            flat = is_flat(one, hours)
            print(f"  {one.text()}{'' if flat else '  GROWS'}")
            bad += [] if flat else [f"{target}: {one.text()}"]
    if rates:
        one = slope("throughput", "transactions/s", [at for at, _ in rates], [rate for _, rate in rates])
        print(f"  {one.text()}; {len(rates)} intervals, {sum(rate == 0 for _, rate in rates)} of them empty")
    else:
        bad.append(f"{target}: no interval was measured")
    return bad


def _share(text: str) -> float:
    return float(text.removesuffix("%")) / 100.0 if text.endswith("%") else float(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="length of the load of each target")
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--kill", type=_share, default=0.0, metavar="SHARE", help="such as 1%%, each second")
    parser.add_argument(
        "--target",
        dest="targets",
        nargs="+",
        choices=TARGETS,
        default=["mariadb", "postgresql"],
        help="servers, or null: no server",
    )
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"), help="folder of the servers' data")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
