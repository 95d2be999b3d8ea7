"""Measures how fast the engine resumes and pauses, and how much time a comparison in slices loses.

Two engines with the same plan take turns, in slices of `--slice-ms`. The columns are: the time from the
command to the first statement (median, 99th percentile); the time from the end of a slice to the end of its
last transaction (the same); the throughput in the guard time relative to the rest of the slice; the guard
time's share of a slice; and the share of all time that no slice counts, from one command to the next. The
exit code is 1 if a target is missed: 1 ms to resume at the 99th percentile, and at most a tenth of a slice of
guard time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import shared
from results import machine, write_section
from sides import US, Dbdyno, Setting

from dbdyno.run.engine import SlicedRun
from dbdyno.servers.server import Address

CONNECTIONS = (4, 64, 1024)
RESUME_MS_MAX = 1.0
GUARD_SHARE_MAX = 0.1
HEADER = (
    "| target | connections | event loops | resume, ms (p99) | pause, ms (p99) | rate in the guard time "
    "| guard | lost |\n|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Turn:
    """One slice, in milliseconds: from the command to the first statement, and from the end to the pause."""

    resume: float
    pause: float
    # Transactions in the guard time, and after it.
    guard_events: int
    events: int
    # From the command to the next command of the other engine, and the part of it that counts.
    total: float
    counted: float


def turn(run: SlicedRun, number: int, length_us: int) -> Turn:
    """One slice of one engine."""
    sent_s = time.time()
    record = run.run_slice(number, length_us)
    total_s = time.time() - sent_s
    counted_us = record["end_us"] - record["start_us"]
    return Turn(
        resume=(run.start_unix_us + record["began_us"]) / 1e3 - sent_s * 1e3,
        pause=(record["paused_us"] - record["end_us"]) / 1e3,
        guard_events=record["guard_events"],
        events=record["events"],
        total=total_s * 1e3,
        counted=counted_us / 1e3,
    )


def take_turns(
    plan: Mapping[str, Any], environment: Mapping[str, str], options: argparse.Namespace
) -> list[Turn]:
    """`--slices` slices of each of two engines, without the first two of each."""
    length_us = round(options.slice_ms * 1000)
    with ExitStack() as stack:
        runs = [stack.enter_context(SlicedRun(plan, environment)) for _ in range(2)]
        turns = [turn(run, number, length_us) for number in range(options.slices + 2) for run in runs]
        for run in runs:
            result = run.finish()
            if not result.done:
                raise SystemExit(result.failure())
    return turns[4:]


def row(name: str, connections: int, options: argparse.Namespace, turns: list[Turn]) -> tuple[str, bool]:
    """The row of one setting, and whether it meets the targets."""
    resume, pause = ([getattr(turn, key) for turn in turns] for key in ("resume", "pause"))
    guard = options.guard_ms / options.slice_ms
    lost = 1 - sum(turn.counted for turn in turns) / sum(turn.total for turn in turns)
    in_guard, after = (sum(getattr(turn, key) for turn in turns) for key in ("guard_events", "events"))
    guard_rate = in_guard / after * (1 / guard - 1)
    cells = (
        name,
        str(connections),
        str(options.workers),
        f"{statistics.median(resume):.2f} ({percentile_99(resume):.2f})",
        f"{statistics.median(pause):.2f} ({percentile_99(pause):.2f})",
        f"{guard_rate:.2f}",
        f"{guard:.0%}",
        f"{lost:.1%}",
    )
    met = percentile_99(resume) <= RESUME_MS_MAX and guard <= GUARD_SHARE_MAX
    return f"| {' | '.join(cells)} |", met


def percentile_99(values: list[float]) -> float:
    """By nearest rank."""
    return sorted(values)[max(0, -(-99 * len(values) // 100) - 1)]


def plan_of(target: Mapping[str, Any], connections: int, options: argparse.Namespace) -> dict[str, Any]:
    """The plan of both engines."""
    setting = Setting("oltp_point_select", connections, workers=options.workers)
    return {
        **Dbdyno(Address("", 0, None, "", "", "")).plan(setting),
        "target": target,
        "load": {
            "connections": connections,
            "shape": {"closed_slices": {"guard_us": round(options.guard_ms * 1000)}},
        },
        "phases": {"measure_us": 0},
        "report": {"interval_us": 0, "tick_us": 0},
        "start": {"on-command": {"start_timeout_us": 60 * US}},
    }


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    parser = sweep.parser("slices", __doc__, CONNECTIONS)
    parser.add_argument("--slices", type=int, default=200, help="slices of each of the two engines")
    parser.add_argument("--slice-ms", type=float, default=250)
    parser.add_argument("--guard-ms", type=float, default=20)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    lines = [f"## Pause and resume: slices of {options.slice_ms:g} ms\n", f"{machine()}.\n", HEADER]
    missed = []
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, shared(Path(scratch)) as laid:
        mariadb = Dbdyno(laid.address)
        mariadb.prepare(Setting("oltp_read_write", 1))
        targets = {"null": {"protocol": "null", "answer_us": 100}, "MariaDB": laid.address.target()}
        for name, target in targets.items():
            for connections in options.connections:
                plan = plan_of(target, connections, options)
                turns = take_turns(plan, mariadb.environment(), options)
                line, met = row(name, connections, options, turns)
                print(line, flush=True)
                lines.append(line)
                if not met:
                    missed.append(line)
    if options.output:
        write_section(options.output, "slices", "\n".join(lines))
    return sweep.end(missed)


if __name__ == "__main__":
    sys.exit(main())
