"""Measures what an open view costs the measured server: `dbdyno watch`, or a page of `dbdyno ui`.

    python -m benchmarks.observers watch
    python -m benchmarks.observers ui
    python -m benchmarks.observers none

`none` is a process that does nothing: its effect is the error of the method.

A private server on all CPUs has one long trial, which the view shows. The view, with the browser that has the
page open, is frozen and thawed every two seconds by a cgroup; a pair is one such period with and one without
it, in random order. (A view notices SIGSTOP and SIGCONT, and draws its whole screen after them.) The periods
are that short because the machine's speed drifts by more than 2 % within a minute. Three figures, the last
two by the signed-rank test of the pairs' ratios:

- the CPU time that the view takes, as a share of all CPUs: what the server cannot have;
- the CPU time of server and load generator per transaction: what the view costs in caches and switches;
- the throughput.

The first two limit the loss: throughput is the CPU time that is left, divided by that of a transaction. They
vary less than the throughput, which also has the noise of everything else that runs.

The exit code is 0 if a loss of more than 2 % is excluded by the throughput or by that limit, 1 if the loss is
significantly larger, 5 if neither.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from dbdyno.stats.paired import Ratios, effect
from dbdyno.store.listing import find_run

ROOT = Path(__file__).resolve().parents[1]
DBDYNO = str(Path(sys.executable).with_name("dbdyno"))
MAX_LOSS_PERCENT = 2.0
# A view reads the run every two seconds, and at once when it continues, so a period contains one or two
# readings. Whole seconds, because the load generator counts transactions by seconds.
PERIOD_S = 2.0
# Seconds that a view may take until it shows the run.
READY_S = 60.0
EXPERIMENT = """
[experiment]
name = "observers"

[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 10_000

[load]
connections = [8]
duration = "{seconds:.0f}s"
warmup = "5s"

[design]
blocks = 1

[[variant]]
name = "server"
"""


@dataclass(frozen=True)
class Reading:
    """The CPU time that processes have used until an instant, in seconds."""

    at_s: float
    # Server and load generator.
    load_s: float
    # The view, with its browser.
    view_s: float


@dataclass(frozen=True)
class Period:
    """A time in which the view went on or was stopped."""

    begin: Reading
    end: Reading
    is_open: bool

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end.at_s - self.begin.at_s

    @property
    def view_s(self) -> float:
        """CPU time of the view."""
        return self.end.view_s - self.begin.view_s

    @property
    def load_s(self) -> float:
        """CPU time of server and load generator."""
        return self.end.load_s - self.begin.load_s


def main() -> int:
    """Measure, or be the view."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("view", choices=("watch", "ui", "none"))
    parser.add_argument("--pairs", type=int, default=200, help="of periods with and without the view")
    parser.add_argument("--be-view-of", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--within", type=Path, metavar="CGROUP", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be_view_of is not None:
        (options.within / "cgroup.procs").write_text(str(os.getpid()))
        return {"watch": _watch, "ui": _ui, "none": _none}[options.view](options.be_view_of)
    with tempfile.TemporaryDirectory() as name:
        periods, transactions = _measure(Path(name), options.view, options.pairs)
    opened = [one for one in periods if one.is_open]
    share = sum(one.view_s for one in opened) / sum(one.seconds for one in opened) / (os.cpu_count() or 1)
    per_s = [n / period.seconds for n, period in zip(transactions, periods, strict=True)]
    cost = [period.load_s / n for n, period in zip(transactions, periods, strict=True)]
    cost_change, cost_text = _change(periods, cost)
    (low, high), text = _change(periods, per_s)
    limit = 100.0 * (1.0 - (1.0 - share) / (1.0 + cost_change[1] / 100.0))
    print(
        f"{options.view}, {len(opened)} pairs of {PERIOD_S:g} s\n"
        f"  CPU time of the view: {100 * share:.2f} % of {os.cpu_count()} CPUs\n"
        f"  CPU time per transaction: {cost_text}\n"
        f"  so the loss is at most {limit:.2f} % (95 %)\n"
        f"  throughput: {text}"
    )
    if low > -MAX_LOSS_PERCENT or limit < MAX_LOSS_PERCENT:
        return 0
    return 1 if high < -MAX_LOSS_PERCENT else 5


def _change(periods: Sequence[Period], values: Sequence[float]) -> tuple[tuple[float, float], str]:
    """The change of a value while the view is open: its 95 % interval in percent, and its text."""
    ratios = [
        math.log(first / second) * (1 if period.is_open else -1)
        for period, first, second in zip(periods[::2], values[::2], values[1::2], strict=True)
    ]
    change = effect(Ratios(by_block := dict(enumerate(ratios)), by_block))
    if change is None or change.interval_percent is None:
        sys.exit("too few pairs for an interval: at least 6 are needed")
    low, high = change.interval_percent
    return (low, high), f"{change.effect_percent:+.2f} % (95 % interval {low:+.2f} to {high:+.2f})"


def _measure(folder: Path, view: str, pairs: int) -> tuple[list[Period], list[int]]:
    """The periods, and the transactions of each."""
    file, results = folder / "observers.toml", folder / "results"
    # The view starts within the trial.
    file.write_text(EXPERIMENT.format(seconds=READY_S + 2 * pairs * PERIOD_S))
    command = [DBDYNO, "run", str(file), "--results", str(results)]
    with (folder / "run.log").open("wb") as log:
        run = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(lambda: _begin_s(results) is not None, run, folder / "run.log")
        begin_s = _begin_s(results)
        assert begin_s is not None, "the trial has begun"
        with _freezer() as freezer, _open_view(folder, view, freezer) as process:
            periods = list(_alternate(psutil.Process(run.pid), process, freezer, begin_s, pairs))
        run.wait()
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait()
    (trial,) = find_run(results, None).trials()
    seconds = [
        (begin_s + part["start_us"] / 1e6, begin_s + part["end_us"] / 1e6, int(part["events"]))
        for part in (record["data"] for record in trial.records() if record["type"] == "interval")
    ]
    return periods, [_transactions(seconds, period) for period in periods]


def _begin_s(results: Path) -> float | None:
    """The begin of the trial on the Unix clock; None before it."""
    for path in results.glob("observers/*/trials/*/events.jsonl"):
        for line in path.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                # The last line may be incomplete.
                continue
            record = json.loads(line)
            if record["type"] == "phase":
                return float(record["data"]["at_unix_us"] - record["data"]["at_us"]) / 1e6
    return None


def _transactions(seconds: Sequence[tuple[float, float, int]], period: Period) -> int:
    """Those of the intervals of a period, whose ends are theirs but for the delay of a wake-up."""
    return sum(
        count for begin, end, count in seconds if period.begin.at_s <= (begin + end) / 2 <= period.end.at_s
    )


def _wait_for(is_done: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not is_done():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(log.read_text(errors="replace")[-2000:])
        time.sleep(0.1)


@dataclass(frozen=True)
class Freezer:
    """A cgroup whose processes can be frozen."""

    folder: Path
    # The file of its state, and what freezes and thaws.
    file: str
    frozen: str
    thawed: str

    def set(self, *, is_frozen: bool) -> None:
        """Freeze or thaw the processes."""
        (self.folder / self.file).write_text(self.frozen if is_frozen else self.thawed)


@contextmanager
def _freezer() -> Iterator[Freezer]:
    """A cgroup of version 1 or 2 for the view. Ends the program if this user may not make one."""
    kinds = (
        Freezer(Path("/sys/fs/cgroup/freezer/dbdyno-view"), "freezer.state", "FROZEN", "THAWED"),
        Freezer(Path("/sys/fs/cgroup/dbdyno-view"), "cgroup.freeze", "1", "0"),
    )
    for one in kinds:
        with suppress(OSError):
            one.folder.mkdir(exist_ok=True)
            if (one.folder / one.file).exists():
                break
    else:
        sys.exit("this benchmark freezes the view by a cgroup: run it as root")
    try:
        yield one
    finally:
        one.set(is_frozen=False)
        while (one.folder / "cgroup.procs").read_text().strip():
            time.sleep(0.05)
        one.folder.rmdir()


@contextmanager
def _open_view(folder: Path, view: str, freezer: Freezer) -> Iterator[psutil.Process]:
    """The process of a view that shows the run."""
    with (folder / "view.log").open("wb") as log:
        child = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.observers", view),
                *("--be-view-of", str(folder), "--within", str(freezer.folder)),
            ],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    process = psutil.Process(child.pid)
    try:
        _wait_for((folder / "ready").exists, child, folder / "view.log")
        yield process
    finally:
        for one in _family(process):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        # A frozen process ends when it is thawed.
        freezer.set(is_frozen=False)
        child.wait()


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _alternate(
    run: psutil.Process, view: psutil.Process, freezer: Freezer, begin_s: float, pairs: int
) -> Iterator[Period]:
    """Thaw the view and freeze it, in random order within each pair. Periods begin at the end of one of the
    load generator's intervals, which are whole seconds from the begin of the trial.
    """
    load = run.children(recursive=True)
    due_s = begin_s + math.ceil(time.time() - begin_s) + 1.0
    time.sleep(max(0.0, due_s - time.time()))
    for _ in range(pairs):
        for is_open in random.sample((True, False), 2):
            freezer.set(is_frozen=not is_open)
            begin = Reading(time.time(), _cpu_s(load), _cpu_s(_family(view)))
            due_s += PERIOD_S
            time.sleep(max(0.0, due_s - time.time()))
            yield Period(begin, Reading(time.time(), _cpu_s(load), _cpu_s(_family(view))), is_open)


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    """CPU time of the threads that run, which the kernel counts in nanoseconds (proc(5), schedstat)."""
    total_ns = 0
    for process in processes:
        for file in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
            with suppress(OSError):
                total_ns += int(file.read_text().split()[0])
    return total_ns / 1e9


def _watch(folder: Path) -> int:
    """`dbdyno watch` in a terminal of its own."""

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 65536)
        if b"trials" in data:
            (folder / "ready").touch()
        return data

    os.environ["TERM"] = "xterm-256color"
    return pty.spawn([DBDYNO, "watch", "--results", str(folder / "results")], read)


def _none(folder: Path) -> int:
    """No view."""
    (folder / "ready").touch()
    time.sleep(24 * 3600)
    return 0


def _ui(folder: Path) -> int:
    """`dbdyno ui`, and a browser that shows the run."""
    from tests.end_to_end.browser import chromium  # noqa: PLC0415 — needs Playwright.

    server = subprocess.Popen(
        [DBDYNO, "ui", "--results", str(folder / "results"), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    run = find_run(folder / "results", None).path
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{address}run/observers/{run.name}")
        page.locator(".state").wait_for()
        (folder / "ready").touch()
        time.sleep(24 * 3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
