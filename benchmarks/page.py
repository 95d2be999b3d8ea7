"""Measures how long Chromium needs to open the report of a large run: 10 loads, 3 workloads, 20 blocks.

    .venv/bin/python -m benchmarks.page

A page is open when it is loaded and its first frame is on the screen. Every opening is paired with one of an
empty page, in random order, each in a browser profile of its own. The exit code is 1 if the median is over
the target.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser
from tests.end_to_end.browser import chromium
from tests.unit.stored_run import make_large

from dbdyno.report.writing import write

PAIRS = 10
TARGET_S = 2.0
# The second frame begins when the first is on the screen.
_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        report, empty = write(make_large(Path(name))), Path(name, "empty.html")
        empty.write_text("<!doctype html><title>empty</title>")
        pairs = []
        for _ in range(PAIRS):
            seconds = {page: _open_s(browser, page) for page in random.sample((report, empty), 2)}
            pairs.append((seconds[report], seconds[empty]))
        size = report.stat().st_size / 1e6
    opened, extra = median(one for one, _ in pairs), median(one - other for one, other in pairs)
    slowest = max(one for one, _ in pairs)
    print(
        f"report of {size:.2f} MB: open after {opened:.2f} s (at most {TARGET_S:g}; slowest {slowest:.2f}), "
        f"{extra:.2f} s more than an empty page, {PAIRS} pairs"
    )
    return 0 if opened < TARGET_S else 1


def _open_s(browser: Browser, path: Path) -> float:
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        begin = time.monotonic()
        page.goto(path.as_uri())
        page.evaluate(_FRAMES)
        return time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(main())
