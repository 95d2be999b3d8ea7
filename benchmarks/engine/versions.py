"""Compares the CPU time per query of two builds of dbdyno-engine on one private MariaDB.

`python benchmarks/engine/versions.py OLD NEW` prints the ratio new / old of client CPU per query, with its
95 % interval. The exit code is 1 if an interval is not completely below `--most`.

In each run both builds are connected, and one is stopped (SIGSTOP) while the other works, in alternating
slices of a quarter of a second. The speed of the machine drifts by tens of percent over seconds; adjacent
slices have nearly the same speed, adjacent runs do not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import sweep
from layouts import shared
from sides import US, Dbdyno, Setting
from table import paired_ratio
from watching import cpu_s

CONNECTIONS = (16, 256, 1024)
# A 95 % interval needs at least six pairs.
RUNS = 12
SLICE_S = 0.25


class Build:
    """One run of one build, which is stopped between its slices."""

    def __init__(self, side: Dbdyno, setting: Setting) -> None:
        self.process = subprocess.Popen(
            [*setting.launcher, side.program, "run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=side.environment(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(side.plan_line(setting))
        self.process.stdin.close()
        for line in self.process.stdout:
            if line.startswith('{"type":"phase"'):
                break
        os.kill(self.process.pid, signal.SIGSTOP)
        self.cpu_before_s = cpu_s(self.process.pid)
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def run_slice(self) -> bool:
        """One slice; False when the run is over."""
        os.kill(self.process.pid, signal.SIGCONT)
        time.sleep(SLICE_S)
        os.kill(self.process.pid, signal.SIGSTOP)
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return True
        if status != 0:
            raise SystemExit(f"{self.process.args!r} ended with {os.waitstatus_to_exitcode(status)}")
        self.process.returncode = 0
        self.cpu_s = usage.ru_utime + usage.ru_stime - self.cpu_before_s
        return False

    def cpu_per_query(self) -> float:
        """Microseconds of CPU per query, after the end of the run."""
        self.reader.join()
        totals = json.loads(self.lines[-1])["data"]["phases"]["measure"]
        return self.cpu_s * US / sum(int(totals[kind]) for kind in ("reads", "writes", "other"))


def run(sides: list[Dbdyno], setting: Setting, number: int) -> list[float]:
    """CPU per query of each build over a run of `setting.seconds`, in which they take turns."""
    # The order alternates between runs.
    order = range(len(sides)) if number % 2 else reversed(range(len(sides)))
    builds = {index: Build(sides[index], setting) for index in order}
    turns = deque(builds.values())
    while turns:
        build = turns.popleft()
        if build.run_slice():
            turns.append(build)
    return [builds[index].cpu_per_query() for index in range(len(sides))]


def main() -> int:
    """Exit code 0 if every interval is below `--most`, 1 otherwise."""
    parser = sweep.parser("versions", __doc__, CONNECTIONS)
    parser.set_defaults(pairs=RUNS, workload=["oltp_point_select"], seconds=20, count_from=0)
    parser.add_argument("old", type=Path, help="path of the old dbdyno-engine")
    parser.add_argument("new", type=Path, help="path of the new dbdyno-engine")
    parser.add_argument(
        "--most", type=float, default=1.03, help="the interval of new / old CPU per query must be below this"
    )
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch, shared(Path(scratch)) as laid:
        sides = [Dbdyno(laid.address, name, getattr(options, name).resolve()) for name in ("old", "new")]
        sides[0].prepare(Setting("oltp_read_write", 1, launcher=laid.launcher))
        for workload in options.workload:
            for connections in options.connections:
                setting = Setting(workload, connections, options.seconds, 0, launcher=laid.launcher)
                sides[0].run(replace(setting, seconds=3, count_from=1))
                runs = [run(sides, setting, number) for number in range(options.pairs)]
                for old, new in runs:
                    print(f"  {connections:5}: old {old:6.2f} us, new {new:6.2f} us", file=sys.stderr)
                estimate, interval = paired_ratio([new for _, new in runs], [old for old, _ in runs])
                ratio = f"CPU per query new / old {estimate:.3f} ({interval})"
                line = f"{workload}, {connections} connections, {ratio}"
                print(line, flush=True)
                if not (interval and float(interval.split()[-1]) < options.most):
                    missed.append(f"{line}; {options.most} is not excluded")
    return sweep.end(missed)


if __name__ == "__main__":
    sys.exit(main())
