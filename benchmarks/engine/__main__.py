"""dbdyno-engine, sysbench and a bare loop on one private MariaDB, in turn.

Every figure is a ratio of two runs that follow one another; who begins changes from pair to pair. CPU per
query is that of the client process between 5 s after the start and the end, over the queries of that same
window, so that connecting is not in it. `make bench` runs this with its defaults.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

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
    if shutil.which("sysbench") is None:
        raise SystemExit("sysbench is not installed: apt-get install sysbench")
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
    for line in missed:
        print(f"MISSED {line}", file=sys.stderr)
    return 1 if missed else 0


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
    parser = argparse.ArgumentParser(prog="engine", description=__doc__)
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--workload", nargs="+", default=["oltp_point_select", "oltp_read_write"])
    parser.add_argument("--scheduling", nargs="+", choices=("batch", "normal"))
    parser.add_argument("--connections", nargs="+", type=int, default=LEVELS)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="length of one run")
    parser.add_argument("--count-from", type=int, default=5, help="seconds of a run before the window")
    parser.add_argument("--workers", type=int, default=1, help="event loops of the engine")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write sections of")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
