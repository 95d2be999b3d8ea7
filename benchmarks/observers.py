"""Measures what an open view costs the measured server: `dbdyno watch`, or a page of `dbdyno ui`.

    python -m benchmarks.observers watch
    python -m benchmarks.observers ui
    python -m benchmarks.observers none

`none` is a process that does nothing: its effect is the error of the method.

A private server has one long trial, which the view shows. The view, with the browser that has the page open,
is stopped (SIGSTOP) and continued every few seconds; a pair is one such period with and one without it, in
random order. The effect is that of the pairs' throughput ratios, by the signed-rank test. Pairs of a few
seconds are needed because the machine's speed drifts by more than 2 % within a minute.

The exit code is 0 if a loss of more than 2 % is excluded, 1 if the loss is surely larger, 5 if neither.
"""

from __future__ import annotations

import argparse
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
from dbdyno.store import Run
from dbdyno.store.listing import find_run

ROOT = Path(__file__).resolve().parents[1]
DBDYNO = str(Path(sys.executable).with_name("dbdyno"))
MAX_LOSS_PERCENT = 2.0
# A view reads the run every two seconds, so a period contains two or three readings.
PERIOD_S = 6.0
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
class Period:
    """A time in which the view went on or was stopped, in seconds of the Unix clock."""

    begin_s: float
    end_s: float
    is_open: bool


def main() -> int:
    """Measure, or be the view."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("view", choices=("watch", "ui", "none"))
    parser.add_argument("--pairs", type=int, default=100, help="of periods with and without the view")
    parser.add_argument("--be-view-of", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be_view_of is not None:
        return {"watch": _watch, "ui": _ui, "none": _none}[options.view](options.be_view_of)
    with tempfile.TemporaryDirectory() as name:
        ratios = _measure(Path(name), options.view, options.pairs)
    change = effect(Ratios(*[dict(enumerate(ratios))] * 2))
    if change is None or change.interval_percent is None:
        sys.exit("too few pairs for an interval: at least 6 are needed")
    low, high = change.interval_percent
    change_text = f"{change.effect_percent:+.2f} % (95 % interval {low:+.2f} to {high:+.2f})"
    print(
        f"{options.view}: throughput {change_text} while it is open, {change.blocks} pairs of {PERIOD_S:g} s"
    )
    if low > -MAX_LOSS_PERCENT:
        return 0
    return 1 if high < -MAX_LOSS_PERCENT else 5


def _measure(folder: Path, view: str, pairs: int) -> list[float]:
    """Log ratio of the throughput with the view to that without it, per pair."""
    file, results = folder / "observers.toml", folder / "results"
    # The view starts within the trial.
    file.write_text(EXPERIMENT.format(seconds=READY_S + 2 * pairs * PERIOD_S))
    command = [DBDYNO, "run", str(file), "--results", str(results)]
    with (folder / "run.log").open("wb") as log:
        run = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(lambda: any(results.glob("observers/*/trials/*/events.jsonl*")), run, folder / "run.log")
        with _open_view(folder, view) as process:
            periods = list(_alternate(process, pairs))
        run.wait()
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait()
    return _ratios(_seconds(find_run(results, None)), periods)


def _wait_for(is_done: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not is_done():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(log.read_text(errors="replace")[-2000:])
        time.sleep(0.1)


@contextmanager
def _open_view(folder: Path, view: str) -> Iterator[psutil.Process]:
    """The process of a view that shows the run."""
    with (folder / "view.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.observers", view, "--be-view-of", str(folder)],
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
        child.wait()


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _alternate(process: psutil.Process, pairs: int) -> Iterator[Period]:
    """Let the view go on and stop it, in random order within each pair."""
    for _ in range(pairs):
        for is_open in random.sample((True, False), 2):
            for one in _family(process):
                one.resume() if is_open else one.suspend()
            begin = time.time()
            time.sleep(PERIOD_S)
            yield Period(begin, time.time(), is_open)


def _seconds(run: Run) -> list[tuple[float, float, int]]:
    """Begin and end of every measured interval on the Unix clock, and its transactions."""
    records = [record for trial in run.trials() for record in trial.records()]
    zero = next(
        (record["data"]["at_unix_us"] - record["data"]["at_us"]) / 1e6
        for record in records
        if record["type"] == "phase"
    )
    return [
        (zero + part["start_us"] / 1e6, zero + part["end_us"] / 1e6, part["events"])
        for part in (record["data"] for record in records if record["type"] == "interval")
    ]


def _ratios(seconds: Sequence[tuple[float, float, int]], periods: Sequence[Period]) -> list[float]:
    """One per pair, of the intervals that lie within its periods."""
    throughput = []
    for period in periods:
        parts = [one for one in seconds if period.begin_s <= one[0] and one[1] <= period.end_s]
        throughput.append(sum(one[2] for one in parts) / sum(one[1] - one[0] for one in parts))
    return [
        math.log(first / second) * (1 if period.is_open else -1)
        for period, first, second in zip(periods[::2], throughput[::2], throughput[1::2], strict=True)
    ]


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
