"""Measures how fast the engine resumes and pauses, and how much time a comparison in slices loses.

Two engines with the same plan take turns. The columns are: the time from the command to the first statement
(median, 99th percentile), and for comparison the time in which `cat` returns a line just before, which is the
machine's own share; the time from the end of a slice to the end of its last transaction; the throughput in
the guard time relative to the rest of the slice; and the share of all time that no slice counts, from one
command to the next. Guard time and length of a slice are those of comparisons. The exit code is 1 if a target
is missed: at most 1 ms to resume at the 99th percentile, and at most a tenth of the time lost.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
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

from dbdyno.experiment.slices import GUARD_SHARE, READ_SLICE_S, SLICE_ROUNDS, STATEMENT_S
from dbdyno.run.engine import SlicedRun
from dbdyno.servers.server import Address

CONNECTIONS = (4, 64, 1024)
RESUME_MS_MAX = 1.0
LOST_MAX = 0.1
HEADER = (
    "| target | connections | slice, ms | guard, ms | resume, ms (p99) | `cat`, ms (p99) | pause, ms (p99) "
    "| rate in the guard time | lost |\n|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Turn:
    """One slice, in milliseconds: from the command to the first statement, and from the end to the pause."""

    resume: float
    pause: float
    # The time in which `cat` returned a line before the command.
    echo: float
    # Transactions in the guard time, and after it.
    guard_events: int
    events: int
    # From the command to the next command of the other engine, and the part of it that counts.
    total: float
    counted: float


def turn(run: SlicedRun, number: int, length_us: int, cat: subprocess.Popen[bytes]) -> Turn:
    """One slice of one engine."""
    assert cat.stdin is not None
    assert cat.stdout is not None
    before_s = time.time()
    cat.stdin.write(b"\n")
    cat.stdin.flush()
    cat.stdout.readline()
    sent_s = time.time()
    record = run.run_slice(number, length_us)
    total_s = time.time() - sent_s
    counted_us = record["end_us"] - record["start_us"]
    return Turn(
        resume=(run.start_unix_us + record["began_us"]) / 1e3 - sent_s * 1e3,
        echo=(sent_s - before_s) * 1e3,
        pause=(record["paused_us"] - record["end_us"]) / 1e3,
        guard_events=record["guard_events"],
        events=record["events"],
        total=total_s * 1e3,
        counted=counted_us / 1e3,
    )


def take_turns(
    plan: Mapping[str, Any], environment: Mapping[str, str], slices: int, slice_ms: float
) -> list[Turn]:
    """`slices` slices of each of two engines, without the first two of each."""
    length_us = round(slice_ms * 1000)
    with ExitStack() as stack:
        cat = stack.enter_context(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        runs = [stack.enter_context(SlicedRun(plan, environment)) for _ in range(2)]
        turns = [turn(run, number, length_us, cat) for number in range(slices + 2) for run in runs]
        for run in runs:
            result = run.finish()
            if not result.done:
                raise SystemExit(result.failure())
    return turns[4:]


def row(name: str, connections: int, slice_ms: float, guard_ms: float, turns: list[Turn]) -> str:
    """The row of one setting."""
    in_guard, after = (sum(getattr(turn, key) for turn in turns) for key in ("guard_events", "events"))
    times = {key: [getattr(turn, key) for turn in turns] for key in ("resume", "echo", "pause")}
    cells = (
        name,
        str(connections),
        f"{slice_ms:g}",
        f"{guard_ms:g}",
        *(f"{statistics.median(values):.2f} ({percentile_99(values):.2f})" for values in times.values()),
        f"{in_guard / after * (slice_ms / guard_ms - 1):.2f}",
        f"{lost_share(turns):.1%}",
    )
    return f"| {' | '.join(cells)} |"


def lost_share(turns: list[Turn]) -> float:
    """The share of all time that no slice counts."""
    return 1 - sum(turn.counted for turn in turns) / sum(turn.total for turn in turns)


def percentile_99(values: list[float]) -> float:
    """By nearest rank."""
    return sorted(values)[max(0, -(-99 * len(values) // 100) - 1)]


def plan_of(target: Mapping[str, Any], connections: int, workers: int, guard_ms: float) -> dict[str, Any]:
    """The plan of both engines."""
    setting = Setting("oltp_point_select", connections, workers=workers)
    return {
        **Dbdyno(Address("", 0, None, "", "", "")).plan(setting),
        "target": target,
        "load": {
            "connections": connections,
            "shape": {"closed_slices": {"guard_us": round(guard_ms * 1000)}},
        },
        "phases": {"measure_us": 0},
        "report": {"interval_us": 0, "tick_us": 0},
        "start": {"on-command": {"start_timeout_us": 60 * US}},
    }


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    lines = [f"## Pause and resume on command\n\n{machine()}, {options.workers} event loops.\n\n{HEADER}"]
    missed = []
    print(lines[0], flush=True)
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, shared(Path(scratch)) as laid:
        mariadb = Dbdyno(laid.address)
        mariadb.prepare(Setting("oltp_read_write", 1))
        targets = {"null": {"protocol": "null", "answer_us": 100}, "MariaDB": laid.address.target()}
        for name, target in targets.items():
            for connections in options.connections:
                slice_s = max(READ_SLICE_S, SLICE_ROUNDS * connections * STATEMENT_S)
                slice_ms = options.slice_ms or slice_s * 1000
                guard_ms = slice_ms * GUARD_SHARE
                plan = plan_of(target, connections, options.workers, guard_ms)
                turns = take_turns(plan, mariadb.environment(), options.slices, slice_ms)
                lines.append(row(name, connections, slice_ms, guard_ms, turns))
                print(lines[-1], flush=True)
                is_slow = percentile_99([turn.resume for turn in turns]) > RESUME_MS_MAX
                if is_slow or lost_share(turns) > LOST_MAX:
                    missed.append(lines[-1])
    if options.output:
        write_section(options.output, "slices", "\n".join(lines))
    return sweep.end(missed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="slices", description=__doc__)
    parser.add_argument("--connections", nargs="+", type=int, default=CONNECTIONS)
    parser.add_argument("--slice-ms", type=float, default=None, help="length of all slices")
    parser.add_argument("--slices", type=int, default=200, help="slices of each of the two engines")
    parser.add_argument("--workers", type=int, default=1, help="event loops")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write a section of")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
