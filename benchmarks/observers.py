"""Measures what an open view costs the measured server: `dbdyno watch` or a page of `dbdyno ui`.

    python -m benchmarks.observers watch
    python -m benchmarks.observers ui

Two variants are the same server; while the second one is measured, the view shows the run. dbdyno compares
them block by block, and its gate says whether a loss of more than 2 % of throughput is excluded. The exit
code is that of the gate: 0 if it is excluded, 1 if the loss is surely larger, 5 if that is undecided.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THIS, ROOT = str(Path(__file__).resolve()), str(Path(__file__).resolve().parents[1])
MAX_LOSS = "2%"
DBDYNO = str(Path(sys.executable).with_name("dbdyno"))
EXPERIMENT = """
[experiment]
name = "observers"
question = "Does an open view cost throughput?"

[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 10_000

[load]
connections = [8]
duration = "6s"
warmup = "3s"

[design]
blocks = 12
state_per = "trial"

[override]
P17 = "the variants are the same server; the view is the difference"

[[variant]]
name = "alone"

[[variant]]
name = "observed"
[variant.server]
before_trial = {begin}
after_trial = {end}
hook_timeout = "60s"
"""
# Seconds that a view may take until it shows the run.
READY_S = 40.0


def main() -> int:
    """Compare, or be the view of one trial."""
    match sys.argv[1:]:
        case ["watch" | "ui" as what]:
            return _compare(what)
        case ["begin", what, folder]:
            return _begin(what, Path(folder))
        case ["end", folder]:
            pid = int(Path(folder, "pid").read_text())
            os.killpg(pid, signal.SIGTERM)
            return 0
        case ["view", what, folder]:
            return {"watch": _watch, "ui": _ui}[what](Path(folder))
    raise SystemExit(__doc__)


def _compare(what: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "observers.toml")
        begin, end = ([sys.executable, THIS, *words, name] for words in (["begin", what], ["end"]))
        file.write_text(EXPERIMENT.format(begin=_toml(begin), end=_toml(end)))
        command = [
            DBDYNO,
            "compare",
            str(file),
            "--results",
            str(Path(name, "results")),
            "--max-loss",
            MAX_LOSS,
        ]
        return subprocess.run([*command, "--no-report"], check=False).returncode


def _toml(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _begin(what: str, folder: Path) -> int:
    """Start the view in a session of its own, and wait until it shows the run."""
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    with (folder / "view.log").open("ab") as log:
        view = subprocess.Popen(
            [sys.executable, __file__, "view", what, str(folder)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    (folder / "pid").write_text(str(view.pid))
    deadline = time.monotonic() + READY_S
    while not ready.exists():
        if view.poll() is not None or time.monotonic() > deadline:
            sys.stderr.write((folder / "view.log").read_text(errors="replace")[-2000:])
            return 1
        time.sleep(0.1)
    return 0


def _watch(folder: Path) -> int:
    """`dbdyno watch` in a terminal of its own."""
    is_ready = False

    def read(descriptor: int) -> bytes:
        nonlocal is_ready
        data = os.read(descriptor, 65536)
        if not is_ready and b"trials" in data:
            is_ready = True
            (folder / "ready").touch()
        return data

    os.environ["TERM"] = "xterm-256color"
    return pty.spawn([DBDYNO, "watch", "--results", str(folder / "results")], read)


def _ui(folder: Path) -> int:
    """`dbdyno ui`, and a browser that shows the run."""
    sys.path.insert(0, ROOT)
    from tests.end_to_end.browser import chromium  # noqa: PLC0415 — needs Playwright.

    server = subprocess.Popen(
        [DBDYNO, "ui", "--results", str(folder / "results"), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    run = max((folder / "results").glob("observers/*/experiment.json"), key=str).parent
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{address}run/observers/{run.name}")
        page.locator(".state").wait_for()
        (folder / "ready").touch()
        time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
