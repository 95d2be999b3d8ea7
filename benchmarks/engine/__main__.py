"""Compares dbdyno-engine, sysbench and a bare loop on one private MariaDB.

They run one after the other, in an order that changes from pair to pair; every figure is a ratio of two runs
of one round. Where dbdyno has SCHED_BATCH, sysbench runs in its default class and in SCHED_BATCH. CPU per
query covers the client process from 5 s after the start of the load to its end, so it does not include
connecting. `make bench` runs this with its defaults.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import LAYOUTS, Laid
from results import machine, write_table
from sides import BARE_LOOP, BareLoop, Dbdyno, Setting, Side, in_turn, sysbenches
from table import Point, Targets, table

CONNECTIONS = (1, 16, 64, 256, 1024, 3000)
# dbdyno's default comes first: SCHED_BATCH if client and server share CPUs, else SCHED_OTHER.
SCHEDULINGS = {"shared": ("batch", "normal"), "apart": ("normal",), "namespaces": ("batch",)}
# Targets of oltp_point_select on shared CPUs.
SHARED_TARGETS = Targets(
    cpu={1: 1.05, 16: 0.92, 256: 0.65, 1024: 0.32, 3000: 0.18},
    throughput={1: 0.97, 16: 1.0, 256: 1.1, 1024: 1.4, 3000: 1.3},
    latency=1.1,
)
OTHER_TARGETS = Targets(latency=1.1)
WITH_ALL_TARGETS = ("oltp_point_select", "shared", "batch")
MEMORY_TARGET_MIB = 90


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    sweep.require("sysbench", "sysbench")
    if not BARE_LOOP.exists():
        raise SystemExit("the bare loop is not built: cargo build --release --package dbdyno-bare-loop")
    missed: list[str] = []
    for layout in options.layout:
        with (
            tempfile.TemporaryDirectory(dir=options.scratch) as scratch,
            LAYOUTS[layout](Path(scratch)) as laid,
        ):
            Dbdyno(laid.address).prepare(Setting("oltp_read_write", 1, launcher=laid.launcher))
            for workload in options.workload:
                for scheduling in options.scheduling or SCHEDULINGS[layout]:
                    targets = (
                        SHARED_TARGETS
                        if (workload, layout, scheduling) == WITH_ALL_TARGETS
                        else OTHER_TARGETS
                    )
                    name = f"{workload}, {layout}, scheduling {scheduling}"
                    points = _points(options, laid, workload, scheduling)
                    text, missed_here = table(name, points, targets, MEMORY_TARGET_MIB)
                    missed += missed_here
                    print(text, flush=True)
                    if options.output:
                        about = f"{machine()}, MariaDB {laid.version}; runs of {options.seconds} s."
                        write_table(options.output, f"{workload} {layout} {scheduling}", text, about)
    return sweep.end(missed)


def _points(options: argparse.Namespace, laid: Laid, workload: str, scheduling: str) -> list[Point]:
    points = []
    for connections in options.connections:
        setting = Setting(
            workload,
            connections,
            options.seconds,
            options.count_from,
            scheduling=scheduling,
            workers=options.workers,
            launcher=laid.launcher,
        )
        dbdyno = Dbdyno(laid.address)
        sides: tuple[Side, ...] = (dbdyno, *sysbenches(laid.address, scheduling), BareLoop(laid.address))
        if connections == options.connections[0]:
            dbdyno.run(replace(setting, seconds=2, count_from=1))
        points.append(Point.of(connections, in_turn(sides, setting, options.pairs), "bare loop"))
    return points


def _options() -> argparse.Namespace:
    parser = sweep.parser("engine", __doc__, CONNECTIONS)
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--scheduling", nargs="+", choices=("batch", "normal"))
    parser.add_argument("--workers", type=int, default=1, help="event loops of the engine")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
