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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from layouts import LAYOUTS, Laid
from results import machine, write_section
from sides import BARE_LOOP, BareLoop, Dbdyno, Measured, Setting, Side, Sysbench
from table import Level, table

LEVELS = (1, 16, 64, 256, 1024, 3000)
# As the lab runs the engine: SCHED_BATCH where client and server share CPUs. The other is an option away.
SCHEDULINGS = {"shared": ("batch", "normal"), "apart": ("normal",), "namespaces": ("batch",)}


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
                    text, its_missed = table(
                        workload, layout, scheduling, _levels(options, laid, workload, scheduling)
                    )
                    missed += its_missed
                    print(text, flush=True)
                    if options.output:
                        section = f"{workload} {layout} {scheduling}"
                        about = f"{machine()}, MariaDB {laid.version}; {options.seconds} s a run.\n\n"
                        title, _, rest = text.partition("\n")
                        write_section(options.output, section, f"{title}\n\n{about}{rest.lstrip()}")
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
        levels.append(Level(connections, *_in_turn(sides, setting, options.pairs)))
    return levels


def _in_turn(sides: Sequence[Side], setting: Setting, pairs: int) -> list[list[Measured]]:
    """Runs per side; who goes first rotates."""
    runs: list[list[Measured]] = [[] for _ in sides]
    for pair in range(pairs):
        for turn in range(len(sides)):
            position = (pair + turn) % len(sides)
            measured = sides[position].run(setting)
            runs[position].append(measured)
            print(
                f"  {setting.connections:5} connections, pair {pair + 1}: {sides[position].name:9} "
                f"{measured.throughput:8.0f} tx/s {measured.cpu_per_query:6.2f} us",
                file=sys.stderr,
            )
    return runs


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
