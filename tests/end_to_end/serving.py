"""`dbdyno ui` as a process, and requests to it, for the tests of its pages."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, expect
from tests.end_to_end.browser import Watched, watch
from tests.end_to_end.comparing import TIME_LIMIT_S, environment
from tests.unit.stored_run import Making, make

from dbdyno.report import writing as report
from dbdyno.store import Run
from dbdyno.verdict import judge

# Far above what a page or a step of a comparison takes, on a busy machine too.
expect.set_options(timeout=120_000)


def two_runs(folder: Path) -> Path:
    """A folder with two judged runs of one experiment, the first with a report."""
    for _ in range(2):
        run = make(folder, Making(speed=lambda trial, _: 100 if trial.variant == "a" else 90))
        judge(run)
        # Otherwise this process still writes to the run.
        run.release()
    report.write(runs_of(folder)[0])
    return folder


def runs_of(results: Path) -> list[Run]:
    return [Run.open(path.parent) for path in sorted(results.glob("made/*/experiment.json"))]


# Address of a server -> the query with its token, and the cookie for it.
QUERIES: dict[str, str] = {}
COOKIES: dict[str, str] = {}


@contextmanager
def serving(results: Path, folder: Path, *options: str, **variables: str) -> Iterator[str]:
    """`dbdyno ui` in a folder; gives its address without the token."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dbdyno", "ui", "--results", results, "--listen", "127.0.0.1:0", *options],
        stdout=subprocess.PIPE, cwd=folder, env=environment() | variables, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        printed = urlsplit(process.stdout.readline().strip())
        address = f"{printed.scheme}://{printed.netloc}"
        assert address.startswith("http://127.0.0.1:")
        QUERIES[address] = printed.query
        if printed.query:
            _, headers, _ = request(f"{address}/?{printed.query}")
            COOKIES[address] = headers["set-cookie"].partition(";")[0]
        yield address
    finally:
        process.send_signal(2)
        assert process.wait(TIME_LIMIT_S) == 130


def opened(
    browser: Browser, url: str, width: int = 1440, scheme: Literal["light", "dark"] = "light"
) -> Watched:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(120_000)
    watched = watch(context.new_page())
    address = "/".join(url.split("/")[:3])
    if query := QUERIES[address]:
        watched.page.goto(f"{address}/?{query}")
        expect(watched.page.locator("h1")).to_be_visible()
    watched.page.goto(url)
    return watched


def request(url: str, method: str = "GET", body: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of one answer, without following a redirect."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    with closing(connection):
        connection.request(method, url.removeprefix(f"http://{parts.netloc}") or "/", body, headers)
        answer = connection.getresponse()
        return (
            answer.status,
            {key.lower(): value for key, value in answer.getheaders()},
            answer.read().decode(errors="replace"),
        )


def status_of(url: str, **headers: str) -> int:
    """The status for a browser with the cookie."""
    address = "/".join(url.split("/")[:3])
    return request(url, Cookie=COOKIES[address], **headers)[0]
