"""Measures the engine's own CPU time per query, with a target that answers from memory (no kernel, no
server).

The time covers random keys, the schedule, row-count checks, counters and histograms. The other benchmarks
also include the cost of sockets.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from results import machine, write_section
from watching import watch

from dbdyno.run.engine import find_engine

US = 1_000_000


def main() -> None:
    """Print the table."""
    options = _options()
    lines = [
        "## The engine alone: the null target\n",
        f"{machine()}.\n",
        "| connections | oltp_point_select, us per query | oltp_read_write, us per query |",
        "|---|---|---|",
    ]
    for connections in options.connections:
        cost = [
            f"{_cost(workload, connections):.2f}" for workload in ("oltp_point_select", "oltp_read_write")
        ]
        lines.append(f"| {connections} | {' | '.join(cost)} |")
    print("\n".join(lines))
    if options.output:
        write_section(options.output, "ceiling", "\n".join(lines))


def _cost(workload: str, connections: int) -> float:
    plan = {
        "schema": 1,
        "target": {"protocol": "null"},
        "workload": {"name": workload, "options": {"tables": 4, "table_size": 20_000}},
        "load": {"connections": connections},
        "phases": {"warmup_us": US, "measure_us": 3 * US},
        "seed": 1,
    }
    watched = watch(
        [str(find_engine()), "run"],
        os.environ,
        json.dumps(plan) + "\n",
        lambda line: line.startswith('{"type":"phase"'),
        (1, 4),
    )
    totals = json.loads(watched.output.splitlines()[-1])["data"]["phases"]["measure"]
    queries: int = totals["reads"] + totals["writes"] + totals["other"]
    return watched.cpu_s * US / queries


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ceiling", description=__doc__)
    parser.add_argument("--connections", nargs="+", type=int, default=(1, 16, 256, 3000))
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write a section of")
    return parser.parse_args()


if __name__ == "__main__":
    main()
