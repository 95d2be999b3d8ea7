"""Compares dbdyno-engine, sysbench and pgbench on one private PostgreSQL.

sysbench runs in its default scheduling class and in SCHED_BATCH, as dbdyno does. All use prepared statements.
pgbench (`-S`) reads one row by its key from a table of 100,000 rows; the others read from one of four tables
of 20,000 rows. pgbench has one thread, as dbdyno has one event loop, and measures no percentiles. CPU per
query covers the client from 5 s after the start of the load to its end.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import shared
from results import machine, write_table
from sides import US, Dbdyno, Measured, Setting, in_turn, sysbenches
from table import Point, Reference, Targets, table
from watching import watch

from dbdyno.servers.server import Address

CONNECTIONS = (16, 256, 1024)
# CPU per query is at most that of sysbench, and that of pgbench, at every number of connections.
TARGETS = Targets(cpu=dict.fromkeys(CONNECTIONS, 1.0))
PGBENCH = Reference("pgbench", 1.0)
# Applies from 3000 connections on, which the default does not reach.
MEMORY_TARGET_MIB = 90
# pgbench opens at least this many connections per second.
CONNECTED_PER_S = 100
# The time, rate and mean latency that pgbench prints every second.
PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps, lat ([\d.]+) ms")


class Pgbench:
    """pgbench, which comes with PostgreSQL."""

    name = "pgbench"

    def __init__(self, address: Address) -> None:
        self.address = address

    def prepare(self) -> None:
        """Load its tables."""
        command = [*self._command(), "--initialize", "--scale=1", "--quiet"]
        subprocess.run(command, env=self.environment(), check=True, stderr=subprocess.DEVNULL)

    def run(self, setting: Setting) -> Measured:
        """One run. pgbench prints its first line one second after all clients are connected."""
        command = [
            *setting.launcher,
            *self._command(),
            "--select-only",
            "--protocol=prepared",
            "--no-vacuum",
            f"--client={setting.connections}",
            f"--jobs={setting.workers}",
            # The time includes connecting; pgbench must still run at the end of the window.
            f"--time={setting.seconds + 4 + setting.connections // CONNECTED_PER_S}",
            "--progress=1",
            "--progress-timestamp",
        ]
        window = (setting.count_from - 1, setting.seconds - 1)
        watched = watch(command, self.environment(), "", lambda line: line.startswith("progress: "), window)
        progress = [tuple(map(float, values)) for values in PROGRESS.findall(watched.output)]
        counted = list(itertools.pairwise(progress))[setting.count_from - 1 : setting.seconds - 1]
        if not counted:
            raise SystemExit(f"pgbench printed no progress:\n{watched.output[-3000:]}")
        seconds = counted[-1][1][0] - counted[0][0][0]
        queries = sum(now[1] * (now[0] - before[0]) for before, now in counted)
        return Measured(
            throughput=queries / seconds,
            cpu_per_query=watched.cpu_s * US / queries,
            memory=watched.memory_mib,
            connected_in_s=watched.connected_in_s - 1,
            latency_avg=sum(now[2] for _, now in counted) / len(counted),
        )

    def _command(self) -> list[str]:
        address = self.address
        connection = [f"--host={address.host}", f"--port={address.port}", f"--username={address.user}"]
        return ["pgbench", *connection, address.database]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PGPASSWORD": self.address.password}


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    sweep.require("sysbench", "sysbench")
    sweep.require("pgbench", "postgresql")
    missed: list[str] = []
    with (
        tempfile.TemporaryDirectory(dir=options.scratch) as scratch,
        shared(Path(scratch), "postgresql") as laid,
    ):
        Dbdyno(laid.address).prepare(Setting("oltp_read_write", 1))
        pgbench = Pgbench(laid.address)
        pgbench.prepare()
        for workload in options.workload:
            reference = (pgbench,) if workload == "oltp_point_select" else ()
            sides = (Dbdyno(laid.address), *sysbenches(laid.address, "batch"), *reference)
            points = []
            for connections in options.connections:
                setting = Setting(workload, connections, options.seconds, options.count_from)
                if connections == options.connections[0]:
                    sides[0].run(replace(setting, seconds=2, count_from=1))
                runs = in_turn(sides, setting, options.pairs)
                points.append(Point.of(connections, runs, pgbench.name))
            name = f"{workload} on PostgreSQL, shared, scheduling batch"
            text, missed_here = table(name, points, TARGETS, MEMORY_TARGET_MIB, PGBENCH)
            missed += missed_here
            print(text, flush=True)
            if options.output:
                about = f"{machine()}, PostgreSQL {laid.version}; runs of {options.seconds} s."
                write_table(options.output, f"{workload} postgresql", text, about)
    return sweep.end(missed)


def _options() -> argparse.Namespace:
    parser = sweep.parser("postgresql", __doc__, CONNECTIONS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
