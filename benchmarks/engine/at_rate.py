"""Do dbdyno-engine and sysbench measure the same latency at an equal fixed rate?

The rate is half the throughput of the slower client in a closed loop. Server and client run on separate CPUs.
On shared CPUs a generator often waits for a CPU; sysbench then starts its clock late, dbdyno adds the
delay to the latency, and the two measure different things. Similarly, oltp_point_select has no target:
sysbench's clock starts when its generator has woken up, dbdyno's at the scheduled start of the event, and a
wake-up of about 40 us is a fifth of such an event.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from layouts import apart
from results import machine, write_section
from sides import Dbdyno, Measured, Setting, Sysbench
from table import Figure, Point

FIGURES = {
    "oltp_read_write": (
        Figure("throughput", "throughput, tx/s"),
        Figure("latency_avg", "average latency, ms", low=0.90, high=1.10),
        Figure("latency_p95", "p95, ms"),
    ),
    "oltp_point_select": (
        Figure("throughput", "throughput, tx/s"),
        Figure("latency_avg", "average latency, ms"),
        Figure("latency_p95", "p95, ms"),
    ),
}


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    held = True
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, apart(Path(scratch)) as laid:
        ours, theirs = Dbdyno(laid.address), Sysbench(laid.address)
        ours.prepare(Setting("oltp_read_write", 1, launcher=laid.launcher))
        for workload, figures in FIGURES.items():
            setting = Setting(workload, 16, options.seconds, 2, scheduling="normal", launcher=laid.launcher)
            closed = [side.run(replace(setting, seconds=7)).throughput for side in (ours, theirs)]
            at_rate = replace(setting, rate=round(min(closed) / 2))
            runs: tuple[list[Measured], list[Measured]] = ([], [])
            for pair in range(options.pairs):
                for position in (0, 1) if pair % 2 == 0 else (1, 0):
                    runs[position].append((ours, theirs)[position].run(at_rate))
            point = Point(16, runs[0], runs[1])
            lines = [
                f"## {workload} at {at_rate.rate} tx/s (Poisson), CPUs apart ({options.pairs} pairs)\n",
                f"{machine()}, MariaDB {laid.version}.\n",
                "| connections | | dbdyno | sysbench | | ratio | interval | target | | |",
                "|---|---|---|---|---|---|---|---|---|---|",
            ]
            for figure in figures:
                row, is_met = figure.row(point)
                lines.append(row)
                held &= is_met
            print("\n".join(lines), flush=True)
            if options.output:
                write_section(options.output, f"at-rate {workload}", "\n".join(lines))
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="at_rate", description=__doc__)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write a section of")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
