"""The load generators to compare: dbdyno-engine, sysbench and the bare loop, on the same tables.

All three use the same transport (TCP, no TLS), server-side prepared statements and uniform keys (the bare
loop: constant ones). Each reports what it measured from `count_from` to the end of its run.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from peer import sysbench
from watching import watch

from dbdyno.run.engine import find_engine
from dbdyno.servers.server import Address

US = 1_000_000
BARE_LOOP = Path(__file__).resolve().parents[2] / "target" / "release" / "dbdyno-bare-loop"


@dataclass(frozen=True)
class Setting:
    """The settings of one run. `launcher` is a command prefix that determines where the client runs (CPUs,
    namespace).
    """

    workload: str
    connections: int
    seconds: int = 10
    count_from: int = 5
    tables: int = 4
    table_size: int = 20_000
    scheduling: str = "batch"
    workers: int = 1
    rate: int | None = None
    launcher: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What one side measured. Latencies in ms (None: not measured), CPU in µs per query, memory in MiB."""

    throughput: float
    cpu_per_query: float
    memory: float
    connected_in_s: float
    latency_avg: float | None = None
    latency_p95: float | None = None
    latency_p99: float | None = None


class Side(Protocol):
    """One load generator."""

    name: str

    def run(self, setting: Setting) -> Measured:
        """One run."""


class Dbdyno:
    """dbdyno-engine; `program` is another build of it."""

    def __init__(self, address: Address, name: str = "dbdyno", program: Path | None = None) -> None:
        self.address = address
        self.name = name
        self.program = str(program or find_engine())

    def plan(self, setting: Setting) -> dict[str, Any]:
        """The engine's plan for `setting`; the time before `count_from` is its warm-up."""
        shape = {"poisson": {"rate_per_s": float(setting.rate)}} if setting.rate else "closed"
        return {
            "schema": 1,
            "target": self.address.target(),
            "workload": {
                "name": setting.workload,
                "options": {"tables": setting.tables, "table_size": setting.table_size},
            },
            "load": {"connections": setting.connections, "shape": shape},
            "phases": {
                "warmup_us": setting.count_from * US,
                "measure_us": (setting.seconds - setting.count_from) * US,
            },
            "seed": 1,
            "client": {"scheduling": setting.scheduling, "workers": setting.workers},
        }

    def prepare(self, setting: Setting) -> None:
        """Load the tables that all sides use."""
        watch([*setting.launcher, self.program, "prepare"], self.environment(), self.plan_line(setting))

    def run(self, setting: Setting) -> Measured:
        """One run."""
        watched = watch(
            [*setting.launcher, self.program, "run"],
            self.environment(),
            self.plan_line(setting),
            lambda line: line.startswith('{"type":"phase"'),
            (setting.count_from, setting.seconds),
        )
        totals = json.loads(watched.output.splitlines()[-1])["data"]["phases"]["measure"]
        latency = {name: known["value_us"] / 1000 for name, known in totals["percentiles_us"].items()}
        return Measured(
            throughput=totals["events"] * US / (totals["end_us"] - totals["start_us"]),
            cpu_per_query=watched.cpu_s * US / (totals["reads"] + totals["writes"] + totals["other"]),
            memory=watched.memory_mib,
            connected_in_s=watched.connected_in_s,
            latency_avg=totals["latency_sum_us"] / totals["events"] / 1000,
            latency_p95=latency["p95"],
            latency_p99=latency["p99"],
        )

    def plan_line(self, setting: Setting) -> str:
        return json.dumps(self.plan(setting)) + "\n"

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.address.environment()}


class Sysbench:
    """sysbench 1.0, or another `program` with additional `options`. Its checkpoint at `count_from`
    resets all of its counters. With `is_batch` it runs in SCHED_BATCH instead of the default class.
    """

    def __init__(
        self,
        address: Address,
        name: str = "sysbench",
        program: str = "sysbench",
        options: Sequence[str] = (),
        *,
        is_batch: bool = False,
    ) -> None:
        self.address = address
        self.name = name
        self.program = program
        self.options = options
        self.scheduler = ("chrt", "--batch", "0") if is_batch else ()

    def run(self, setting: Setting) -> Measured:
        """One run."""
        with sysbench(self.address, *self._arguments(setting), program=self.program) as command:
            watched = watch(
                [*setting.launcher, *self.scheduler, *command],
                os.environ,
                "",
                lambda line: line.startswith("Threads started!"),
                (setting.count_from, setting.seconds),
            )
        final = watched.output.rpartition("Latency histogram")[2]
        latency = _histogram(final)
        return Measured(
            throughput=float(_find(r"transactions:\s+\d+\s+\(([\d.]+) per sec", final)),
            cpu_per_query=watched.cpu_s * US / float(_find(r"queries:\s+(\d+)", final)),
            memory=watched.memory_mib,
            connected_in_s=watched.connected_in_s,
            latency_avg=float(_find(r"avg:\s+([\d.]+)", final)),
            latency_p95=_nearest_rank(latency, 95),
            latency_p99=_nearest_rank(latency, 99),
        )

    def _arguments(self, setting: Setting) -> list[str]:
        return [
            f"--threads={setting.connections}",
            f"--time={setting.seconds}",
            f"--report-checkpoints={setting.count_from}",
            "--histogram",
            "--rand-type=uniform",
            *([f"--rate={setting.rate}"] if setting.rate else []),
            f"--tables={setting.tables}",
            f"--table-size={setting.table_size}",
            *self.options,
            setting.workload,
            "run",
        ]


class BareLoop:
    """The limit: one epoll loop that sends constant messages and discards the replies."""

    name = "bare loop"

    def __init__(self, address: Address) -> None:
        self.address = address

    def run(self, setting: Setting) -> Measured:
        """One run."""
        command = [
            *setting.launcher,
            str(BARE_LOOP),
            f"--host={self.address.host}",
            f"--port={self.address.port}",
            f"--user={self.address.user}",
            f"--database={self.address.database}",
            f"--connections={setting.connections}",
            f"--count-from={setting.count_from}",
            f"--seconds={setting.seconds}",
            f"--workload={setting.workload}",
            f"--tables={setting.tables}",
            f"--table-size={setting.table_size}",
            *(["--batch"] if setting.scheduling == "batch" else []),
        ]
        watched = watch(
            command,
            {**os.environ, **self.address.environment()},
            "",
            lambda line: line.startswith("started"),
            (setting.count_from, setting.seconds),
        )
        counted = json.loads(watched.output.splitlines()[-1])
        per_event = 20 if setting.workload == "oltp_read_write" else 1
        return Measured(
            throughput=counted["queries"] / counted["seconds"] / per_event,
            cpu_per_query=watched.cpu_s * US / counted["queries"],
            memory=watched.memory_mib,
            connected_in_s=watched.connected_in_s,
            latency_p95=counted["p95_us"] / 1000,
            latency_p99=counted["p99_us"] / 1000,
        )


def sysbenches(address: Address, scheduling: str) -> list[Sysbench]:
    """sysbench as users start it, and where dbdyno has SCHED_BATCH, sysbench in that class too."""
    batch = [Sysbench(address, "sysbench batch", is_batch=True)] if scheduling == "batch" else []
    return [Sysbench(address), *batch]


def in_turn(sides: Sequence[Side], setting: Setting, pairs: int) -> dict[str, list[Measured]]:
    """The runs of each side by its name, in rotating order; each is reported on standard error."""
    runs: dict[str, list[Measured]] = {side.name: [] for side in sides}
    for pair in range(pairs):
        for turn in range(len(sides)):
            position = (pair + turn) % len(sides)
            measured = sides[position].run(setting)
            runs[sides[position].name].append(measured)
            print(
                f"  {setting.connections:5} connections, pair {pair + 1}: {sides[position].name:14} "
                f"{measured.throughput:8.0f} tx/s {measured.cpu_per_query:6.2f} us",
                file=sys.stderr,
            )
    return runs


def _histogram(text: str) -> list[tuple[float, int]]:
    """Value in ms and count of each bucket that `--histogram` prints."""
    rows = re.findall(r"^\s+([\d.]+) \|\**\s*(\d+)$", text, re.MULTILINE)
    return [(float(value), int(count)) for value, count in rows]


def _nearest_rank(buckets: list[tuple[float, int]], percent: float) -> float:
    rank = percent / 100 * sum(count for _, count in buckets)
    seen = 0
    for value, count in buckets:
        seen += count
        if seen >= rank:
            return value
    raise SystemExit("sysbench printed no latency histogram")


def _find(pattern: str, output: str) -> str:
    match = re.search(pattern, output)
    if match is None:
        raise SystemExit(f"sysbench did not print {pattern!r}:\n{output[-3000:]}")
    return match.group(1)
