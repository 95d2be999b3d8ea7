"""dbdyno-engine, sysbench and a bare loop on one private MariaDB, in turn.

Every figure is a ratio of two runs that follow one another; who begins changes from pair to pair. CPU per
query is that of the client process between 5 s after the start and the end, over the queries of that same
window, so that connecting is not in it. `make bench` runs this with its defaults.
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
from sides import BARE_LOOP, BareLoop, Dbdyno, Setting, Sysbench, in_turn
from table import Bars, Level, table

LEVELS = (1, 16, 64, 256, 1024, 3000)
# As the lab runs the engine: SCHED_BATCH where client and server share CPUs. The other is an option away.
SCHEDULINGS = {"shared": ("batch", "normal"), "apart": ("normal",), "namespaces": ("batch",)}
# Of a point select, CPUs shared.
SHARED_BARS = Bars(
    cpu={1: 1.05, 16: 0.92, 256: 0.65, 1024: 0.32, 3000: 0.18},
    throughput={1: 0.97, 16: 1.0, 256: 1.1, 1024: 1.4, 3000: 1.3},
    latency=1.1,
)
OTHER_BARS = Bars(latency=1.1)
BARRED = ("oltp_point_select", "shared", "batch")
MEMORY_BAR_MIB = 90


def main() -> int:
    """Exit code 0 when every bar holds, 1 otherwise."""
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
                    bars = SHARED_BARS if (workload, layout, scheduling) == BARRED else OTHER_BARS
                    name = f"{workload}, {layout}, scheduling {scheduling}"
                    levels = _levels(options, laid, workload, scheduling)
                    text, its_missed = table(name, levels, bars, MEMORY_BAR_MIB)
                    missed += its_missed
                    print(text, flush=True)
                    if options.output:
                        about = f"{machine()}, MariaDB {laid.version}; {options.seconds} s a run."
                        write_table(options.output, f"{workload} {layout} {scheduling}", text, about)
    return sweep.end(missed)


def _levels(options: argparse.Namespace, laid: Laid, workload: str, scheduling: str) -> list[Level]:
    levels = []
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
        sides = (Dbdyno(laid.address), Sysbench(laid.address), BareLoop(laid.address))
        if connections == options.connections[0]:
            sides[0].run(replace(setting, seconds=2, count_from=1))
        levels.append(Level(connections, *in_turn(sides, setting, options.pairs)))
    return levels


def _options() -> argparse.Namespace:
    parser = sweep.parser("engine", __doc__, LEVELS)
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--scheduling", nargs="+", choices=("batch", "normal"))
    parser.add_argument("--workers", type=int, default=1, help="event loops of the engine")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
