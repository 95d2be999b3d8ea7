"""Compares one event loop with two, and shows how many the pilot of `workers = "auto"` chooses.

Client and server share the CPUs, as on a machine of two. First the pilot runs several times, with the steps
and the rule of `dbdyno compare`. Then one and two event loops run in pairs, in alternating order. The null
target (no server) shows what a second event loop can give at most. The exit code is 1 if a target is missed:
most pilots choose a number with at least 0.95 of the faster one's throughput, and the null target has at
least 1.9 times the throughput with two event loops.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, mode
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import shared
from results import machine, write_section
from sides import US, Dbdyno, Setting
from table import paired_ratio

from dbdyno.run.engine import Engine
from dbdyno.run.pilot import MEASURE_S, WARMUP_S, decide, measured_usage
from dbdyno.servers.server import Address
from dbdyno.store.preparation import Usage

NULL_MIN, CHOICE_MIN = 1.9, 0.95
NULL = "null target"
HEADER = (
    "| target | connections | event loops chosen, per pilot | one: busy, waiting | two: busy, waiting "
    "| one, tx/s | two, tx/s | two / one | interval | target |\n|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Load:
    """Point selects at one number of connections, on one target."""

    target: Mapping[str, Any]
    environment: Mapping[str, str]
    connections: int

    def run(self, workers: int, warmup_s: float, measure_s: float) -> Usage:
        """One run of the engine."""
        setting = Setting("oltp_point_select", self.connections, workers=workers)
        plan = {
            **Dbdyno(Address("", 0, None, "", "", "")).plan(setting),
            "target": self.target,
            "phases": {"warmup_us": round(warmup_s * US), "measure_us": round(measure_s * US)},
        }
        result = Engine().run("run", plan, self.environment)
        if result.end is None or not result.done:
            raise SystemExit(result.failure())
        return measured_usage(workers, self.connections, result.end["phases"]["measure"])

    def pilot(self) -> int:
        """The number of event loops that one pilot chooses, of at most two."""
        usages: list[tuple[int, Usage]] = []
        following: int | None = 1
        while following is not None:
            usages.append((following, self.run(following, WARMUP_S, MEASURE_S)))
            chosen, following = decide(usages, 2)
        for workers, usage in usages:
            print(f"  pilot: {workers}: {_shares([usage])}, {usage['events_per_s']:.0f}/s", file=sys.stderr)
        print(f"  chosen: {chosen}", file=sys.stderr)
        return chosen


def measure(name: str, load: Load, options: argparse.Namespace) -> tuple[str, bool]:
    """The row of one target, and whether its target is met."""
    chosen = [load.pilot() for _ in range(options.pilots)]
    runs: dict[int, list[Usage]] = {1: [], 2: []}
    for pair in range(options.pairs):
        for workers in (1, 2) if pair % 2 else (2, 1):
            runs[workers].append(load.run(workers, WARMUP_S, options.seconds))
    one, two = ([usage["events_per_s"] for usage in runs[workers]] for workers in (1, 2))
    ratio, interval = paired_ratio(two, one)
    if name == NULL:
        is_met, required = ratio >= NULL_MIN, f"at least {NULL_MIN}"
    else:
        # Of the chosen number to the faster one.
        share = (ratio if mode(chosen) == 2 else 1.0) / max(1.0, ratio)
        is_met, required = (
            share >= CHOICE_MIN,
            f"the choice has at least {CHOICE_MIN} of the faster: {share:.2f}",
        )
    cells = (
        name,
        str(load.connections),
        ", ".join(map(str, chosen)),
        _shares(runs[1]),
        _shares(runs[2]),
        f"{median(one):.0f}",
        f"{median(two):.0f}",
        f"{ratio:.3f}",
        interval,
        f"{required}, {'met' if is_met else 'MISSED'}",
    )
    return f"| {' | '.join(cells)} |", is_met


def _shares(usages: list[Usage]) -> str:
    busy, waiting = (median(usage[key] for usage in usages) for key in ("busy", "waiting"))
    return f"{busy:.2f}, {waiting:.2f}"


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    lines = [
        f"## One and two event loops\n\n{machine()}; oltp_point_select, runs of {options.seconds:g} s.\n"
    ]
    lines.append(HEADER)
    missed = []
    print("\n".join(lines), flush=True)

    def add(name: str, target: Mapping[str, Any], environment: Mapping[str, str], connections: int) -> None:
        line, is_met = measure(name, Load(target, environment, connections), options)
        lines.append(line)
        print(line, flush=True)
        if not is_met:
            missed.append(line)

    add(NULL, {"protocol": "null"}, {}, 64)
    for product, name in (("mariadb", "MariaDB"), ("postgresql", "PostgreSQL")):
        with (
            tempfile.TemporaryDirectory(dir=options.scratch) as scratch,
            shared(Path(scratch), product) as laid,
        ):
            Dbdyno(laid.address).prepare(Setting("oltp_point_select", 1))
            for connections in options.connections:
                add(name, laid.address.target(), laid.address.environment(), connections)
    if options.output:
        write_section(options.output, "workers", "\n".join(lines))
    return sweep.end(missed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workers", description=__doc__)
    parser.add_argument("--connections", nargs="+", type=int, default=(16,))
    parser.add_argument("--pilots", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="measurement of one run of a pair")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write a section of")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
