"""The two sides of a comparison: one run of dbdyno-engine, one run of sysbench, over the same tables.

Both report what they measured themselves; their CPU time is the system's account of the finished process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.run.engine import find_engine
from dbdyno.servers.server import Address
from dbdyno.stats.histogram import percentile

US = 1_000_000


@dataclass(frozen=True)
class Setting:
    """What both sides are asked to do. `rate` is transactions per second, None for a closed loop."""

    workload: str
    connections: int
    seconds: int
    tables: int
    table_size: int
    rate: int | None = None


@dataclass(frozen=True)
class Measured:
    """What one side measured. Latencies in ms, CPU in µs of user and system time per query."""

    throughput: float
    latency_avg: float
    latency_p95: float
    cpu_per_query: float


class Dbdyno:
    """dbdyno-engine with SCHED_BATCH, as the lab runs it where client and server share CPUs."""

    name = "dbdyno"

    def __init__(self, address: Address) -> None:
        self.address = address

    def plan(self, setting: Setting) -> dict[str, Any]:
        """The engine's plan for `setting`."""
        shape = {"poisson": {"rate_per_s": float(setting.rate)}} if setting.rate else "closed"
        return {
            "schema": 1,
            "target": self.address.target(),
            "workload": {
                "name": setting.workload,
                "options": {"tables": setting.tables, "table_size": setting.table_size},
            },
            "load": {"connections": setting.connections, "shape": shape},
            "phases": {"measure_us": setting.seconds * US},
            "seed": 1,
            "client": {"scheduling": "normal" if setting.rate else "batch"},
        }

    def prepare(self, setting: Setting) -> None:
        """Load the tables that both sides use."""
        self._engine("prepare", setting)

    def run(self, setting: Setting) -> Measured:
        """One run."""
        output, cpu_s = self._engine("run", setting)
        end = json.loads(output.splitlines()[-1])["data"]
        totals = end["phases"]["measure"]
        queries = totals["reads"] + totals["writes"] + totals["other"]
        seconds = (totals["end_us"] - totals["start_us"]) / US
        p95 = percentile(
            dict(totals["latency_us"]),
            95,
            totals["latency_min_us"],
            totals["latency_max_us"],
        )
        assert p95 is not None
        return Measured(
            throughput=totals["events"] / seconds,
            latency_avg=totals["latency_sum_us"] / totals["events"] / 1000,
            latency_p95=p95 / 1000,
            cpu_per_query=cpu_s * US / queries,
        )

    def _engine(self, command: str, setting: Setting) -> tuple[str, float]:
        environment = {**os.environ, **self.address.environment()}
        return _run([str(find_engine()), command], environment, json.dumps(self.plan(setting)) + "\n")


class Sysbench:
    """sysbench 1.0 with uniform keys and prepared statements, as dbdyno draws and sends them."""

    name = "sysbench"

    def __init__(self, address: Address) -> None:
        self.address = address

    def run(self, setting: Setting) -> Measured:
        """One run."""
        with tempfile.TemporaryDirectory() as directory:
            # The password goes through a file that only we can read, never through argv.
            config = Path(directory) / "sysbench.cfg"
            config.touch(mode=0o600)
            config.write_text(f"mysql-password={self.address.password}\n")
            output, cpu_s = _run(self._command(setting, config), dict(os.environ), "")
        queries = float(_find(r"queries:\s+(\d+)", output))
        return Measured(
            throughput=float(_find(r"transactions:\s+\d+\s+\(([\d.]+) per sec", output)),
            latency_avg=float(_find(r"avg:\s+([\d.]+)", output)),
            latency_p95=float(_find(r"95th percentile:\s+([\d.]+)", output)),
            cpu_per_query=cpu_s * US / queries,
        )

    def _command(self, setting: Setting, config: Path) -> list[str]:
        return [
            "sysbench",
            f"--config-file={config}",
            "--db-driver=mysql",
            f"--mysql-host={self.address.host}",
            f"--mysql-port={self.address.port}",
            f"--mysql-user={self.address.user}",
            f"--mysql-db={self.address.database}",
            f"--threads={setting.connections}",
            f"--time={setting.seconds}",
            "--rand-type=uniform",
            *([f"--rate={setting.rate}"] if setting.rate else []),
            f"--tables={setting.tables}",
            f"--table-size={setting.table_size}",
            setting.workload,
            "run",
        ]


def _find(pattern: str, output: str) -> str:
    match = re.search(pattern, output)
    if match is None:
        raise SystemExit(f"sysbench did not print {pattern!r}:\n{output}")
    return match.group(1)


def _run(command: list[str], environment: dict[str, str], given: str) -> tuple[str, float]:
    """Standard output and CPU seconds of a finished process."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(given)
        process.stdin.close()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}:\n{output[-2000:]}")
    return output, usage.ru_utime + usage.ru_stime
