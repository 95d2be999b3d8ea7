"""`dbdyno watch` on a real run in progress: what it shows changes, and equals the store."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.comparing import EXPERIMENT, TIME_LIMIT_S, Comparing, environment
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from dbdyno import result_text
from dbdyno.store import Run
from dbdyno.store.listing import find_run, is_running
from dbdyno.watch import view
from dbdyno.watch.app import WatchApp

# Long enough that a trial is seen while it runs.
LONGER = EXPERIMENT.replace('duration = "1s"', 'duration = "4s"').replace("[1, 4]", "[4]")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`dbdyno compare` in progress."""
    comparing = Comparing(tmp_path, LONGER)
    process = subprocess.Popen(
        comparing.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    yield process
    if process.poll() is None:
        process.terminate()
    process.wait(TIME_LIMIT_S)


def run_of(results: Path) -> Run:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not list(results.glob("small/*/experiment.json")):
        assert time.monotonic() < deadline, "the run begins"
        time.sleep(0.05)
    return find_run(results, None)


async def until(pilot: Pilot[None], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not reached():
        assert time.monotonic() < deadline
        await pilot.pause(0.1)


def text_of(app: WatchApp, name: str) -> str:
    return str(app.query_one(name, Static).render())


def screen_of(app: WatchApp) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


async def follow(run: Run) -> None:
    app = WatchApp(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "now " in text_of(app, "#head"))
        first = text_of(app, "#head")
        assert "RUNNING: block 1" in first
        await until(pilot, lambda: text_of(app, "#head") != first)
        await until(pilot, lambda: app.now is not None and len(app.now.ended) == 1)
        await until(pilot, lambda: app.now is not None and not app.now.is_running)
        assert text_of(app, "#head").splitlines()[1].startswith("ENDED: ")
        verdict = run.verdict()
        assert verdict is not None
        assert all(effect.sentence in text_of(app, "#verdict-texts") for effect, _ in verdict.sentences)
        assert all(finding.summary in text_of(app, "#texts") for finding in run.findings())
        check_trials(app, run)
        screen = screen_of(app)
        assert len(screen.splitlines()) == 24
        assert "4 of 4 trials have ended" in screen
        await pilot.press("q")
    assert app.return_code == 0


def check_trials(app: WatchApp, run: Run) -> None:
    """Every row equals the engine's own totals of that trial."""
    table = app.query_one(DataTable)
    shown = [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]
    stored = sorted(run.trials(), key=lambda trial: -trial.index)
    assert len(shown) == len(stored) == 4
    for row, trial in zip(shown, stored, strict=True):
        (end,) = (record["data"] for record in trial.records() if record["type"] == "end")
        totals = end["phases"]["measure"]
        seconds = (totals["end_us"] - totals["start_us"]) / 1e6
        figures = dict(zip(view.COLUMNS, row, strict=True))
        assert figures["variant"][0] == trial.meta["variant"][0]
        assert figures["transactions/s"] == result_text.rate(totals["events"] / seconds)
        assert figures["p99 ms"] == result_text.milliseconds(totals["percentiles_us"]["p99"]["value_us"])
        assert figures["errors"] == str(sum(totals["errors"].values()))
        assert float(figures["CPUs"]) > 0.0


@pytest.mark.long
def test_the_view_follows_a_run_to_its_verdict(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    run = run_of(tmp_path)
    asyncio.run(follow(run))
    assert process.wait(TIME_LIMIT_S) == 0
    see_in_a_terminal(tmp_path)


def see_in_a_terminal(results: Path) -> None:
    """The command in a terminal shows the run, and ends when q is pressed."""
    run = find_run(results, None)
    assert not is_running(run)
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "dbdyno", "watch", "--results", str(results)]
    shown = b""
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env={**environment(), "TERM": "xterm"}
    ) as watching:
        os.close(terminal)
        deadline = time.monotonic() + TIME_LIMIT_S
        while b"ENDED: " not in shown:
            assert time.monotonic() < deadline, shown
            shown += os.read(main, 1 << 16)
        os.write(main, b"q")
        while watching.poll() is None:
            try:
                os.read(main, 1 << 16)
            except OSError:
                break
        assert watching.wait(TIME_LIMIT_S) == 0
    os.close(main)
