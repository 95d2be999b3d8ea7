"""Compares dbdyno and sysbench with the same Lua scripts on one private MariaDB, in pairs of runs.

The scripts are those of Debian's sysbench package. dbdyno runs as `sysbench --lua` through a symlink, so both
get the same command line and print the same report. dbdyno runs in SCHED_BATCH, because the server shares its
CPUs, and sysbench in its default class and in SCHED_BATCH. `--hot` also compares the peak memory of 3000
users after a minute of load.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import LAYOUTS
from results import machine, write_table
from sides import Dbdyno, Setting, Sysbench, in_turn, sysbenches
from table import Point, Targets, table

from dbdyno.binary import COMPAT, find_program

CONNECTIONS = (16, 256, 1024)
TARGETS = Targets(cpu={16: 1.0, 256: 0.8, 1024: 0.5})
HOT_S = 65


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    sweep.require("sysbench", "sysbench")
    missed: list[str] = []
    with (
        tempfile.TemporaryDirectory(dir=options.scratch) as scratch,
        tempfile.TemporaryDirectory() as links,
        LAYOUTS["shared"](Path(scratch)) as laid,
    ):
        link = Path(links) / "sysbench"
        link.symlink_to(find_program(COMPAT))
        Dbdyno(laid.address).prepare(Setting("oltp_read_write", 1))
        tables = [(f"{name}.lua", name, options.connections, options.seconds) for name in options.workload]
        if options.hot:
            tables.append(("Lua, 3000 users for a minute", options.workload[0], [3000], HOT_S))
        ours = Sysbench(laid.address, "dbdyno", str(link), ("--lua",))
        sides = (ours, *sysbenches(laid.address, "batch"))
        for title, workload, counts, seconds in tables:
            points = []
            for connections in counts:
                setting = Setting(workload, connections, seconds, options.count_from)
                points.append(Point.of(connections, in_turn(sides, setting, options.pairs), "none"))
            memory = min(run.memory for point in points for run in point.sysbench)
            text, missed_here = table(f"{title}, shared, scheduling batch", points, TARGETS, memory)
            missed += missed_here
            print(text, flush=True)
            if options.output:
                about = f"{machine()}, MariaDB {laid.version}; runs of {seconds} s."
                write_table(options.output, title, text, about)
    return sweep.end(missed)


def _options() -> argparse.Namespace:
    parser = sweep.parser("lua", __doc__, CONNECTIONS)
    parser.add_argument("--hot", action="store_true", help="also compare the memory of 3000 users")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
