"""`dbdyno ui` in Chromium: stored runs, a comparison that it starts and follows, and whom it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect
from tests.end_to_end.browser import chromium
from tests.end_to_end.comparing import EXPERIMENT
from tests.end_to_end.serving import QUERIES, opened, request, runs_of, serving, status_of, two_runs
from tests.unit.stored_run import verdict_of

from dbdyno import result_text
from dbdyno.languages import translator
from dbdyno.report import formatting
from dbdyno.ui.pages import RunReader

TOKEN = "0123456789abcdef-a-token"
# Long enough that a trial is seen while it runs.
LONGER = (
    EXPERIMENT.replace('duration = "1s"', 'duration = "3s"')
    .replace("[1, 4]", "[4]")
    .replace("blocks = 2", "blocks = 1")
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two judged runs of one experiment, the first with a report."""
    return two_runs(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def address(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(results, tmp_path_factory.mktemp("folder")) as address:
        yield address


def paths(results: Path) -> list[str]:
    first, second = (f"made/{run.path.name}" for run in runs_of(results))
    return ["/", f"/run/{first}", f"/compare?run={first}&run={second}", "/new"]


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (800, "dark"), (390, "dark"), (390, "light")])
def test_pages_fit_are_accessible_and_request_nothing_from_others(
    browser: Browser, address: str, results: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    for path in paths(results):
        watched = opened(browser, address + path, width, scheme)
        expect(watched.page.locator("h1")).to_be_visible()
        assert all(
            url.startswith((address, address.replace("http", "ws"), "data:")) for url in watched.requests
        )
        assert watched.console == []
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert watched.violations() == [], path
        watched.page.context.close()


def test_values_are_those_of_the_store(browser: Browser, address: str, results: Path) -> None:
    page = opened(browser, address).page
    listed = json.loads(
        subprocess.run(
            [sys.executable, "-m", "dbdyno", "list", "--format", "json", "--results", str(results)],
            capture_output=True, check=True,
        ).stdout
    )  # fmt: skip
    rows = page.locator("table tbody tr")
    expect(rows).to_have_count(len(listed))
    for row, one in zip(rows.all(), listed, strict=True):
        cells = row.locator("td").all_inner_texts()
        assert (cells[1], cells[3], cells[5].strip()) == (str(one["number"]), one["experiment"], one["text"])
    page.get_by_label("Words in experiment or result").fill("no-such-run")
    expect(page.get_by_text("No run contains these words.")).to_be_visible()
    run = runs_of(results)[0]
    page.goto(f"{address}/run/made/{run.path.name}")
    (comparison,) = verdict_of(run)["comparisons"]
    assert page.locator(".verdict .sentence").inner_text() == comparison["curve"]["sentence"]
    page.get_by_role("link", name="Open the report").click()
    assert page.content().count("dbdyno report") >= 1
    page.context.close()


def test_a_new_experiment_begins_with_that_of_a_run(browser: Browser, address: str, results: Path) -> None:
    page = opened(browser, address + paths(results)[1]).page
    page.get_by_role("link", name="New experiment from this one").click()
    expect(page.get_by_label("Experiment file (TOML)")).to_have_value(runs_of(results)[0].source())
    page.context.close()


def test_two_runs_are_shown_with_the_answer_of_diff(browser: Browser, address: str, results: Path) -> None:
    page = opened(browser, address).page
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare the two chosen runs").click()
    words = [
        formatting.estimate(entry)
        for run in runs_of(results)
        if (verdict := run.verdict()) is not None
        for entry, _ in verdict.sentences
    ]
    expect(page.locator(".verdict .ratio")).to_have_text(words)
    names = [str(run.path) for run in runs_of(results)]
    answer = subprocess.run(
        [sys.executable, "-m", "dbdyno", "diff", *names], capture_output=True, text=True, check=False
    ).stdout.splitlines()[-1]
    assert answer in page.locator("pre.answer").inner_text()
    page.goto(f"{address}/compare?run=made/nothing")
    expect(page.get_by_role("alert")).to_contain_text("choose two runs; 1 are chosen")
    page.context.close()


def test_korean_pages(browser: Browser, results: Path, tmp_path: Path) -> None:
    with serving(results, tmp_path, "--lang", "ko") as address:
        watched = opened(browser, f"{address}/run/made/{runs_of(results)[0].path.name}")
        expect(watched.page.locator(".word")).to_have_text(translator("ko")(result_text.VERDICTS["slower"]))
        assert watched.page.locator("html").get_attribute("lang") == "ko-KR"
        assert watched.violations() == []
        watched.page.context.close()


def test_an_experiment_is_checked_started_and_followed(browser: Browser, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with serving(results, tmp_path, "--allow-run") as address:
        page = opened(browser, f"{address}/new").page
        source = page.get_by_label("Experiment file (TOML)")
        source.fill(
            LONGER.replace("connections = [4]", "connections = [0]").replace("blocks = 1", "blocks = 0")
        )
        expect(page.get_by_text("2 errors")).to_be_visible()
        expect(page.get_by_text("load.connections")).to_be_visible()
        source.fill(LONGER)
        expect(page.get_by_text("The experiment is valid.")).to_be_visible()
        page.get_by_role("button", name="What does it cost?").click()
        expect(page.locator("pre.answer")).to_contain_text("Disk: ")
        assert list(tmp_path.glob(".dbdyno-ui*")) == []
        page.get_by_label("Save as").fill("small.toml")
        page.get_by_role("button", name="Save and start").click()
        expect(page.locator("pre.answer")).to_contain_text("server.product = mariadb")
        assert not (tmp_path / "small.toml").exists()
        page.get_by_role("button", name="Start it").click()
        page.get_by_role("link", name="Follow the run").click()
        figures = page.locator(".figures-now")
        expect(figures).to_contain_text(re.compile(r"\d transactions/s"))
        before = figures.inner_text()
        expect(figures).not_to_have_text(before)
        expect(page.locator(".verdict .sentence")).to_be_visible()
        (path,) = results.glob("small/*/verdict.json")
        (comparison,) = json.loads(path.read_text())["comparisons"]
        assert page.locator(".verdict .sentence").inner_text() in comparison["curve"]["sentence"]
        page.context.close()


@pytest.mark.long
def test_a_started_experiment_can_be_stopped(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "results", tmp_path, "--allow-run") as address:
        page = opened(browser, f"{address}/new").page
        page.get_by_label("Experiment file (TOML)").fill(LONGER)
        page.get_by_label("Save as").fill("../elsewhere.toml")
        page.get_by_role("button", name="Save and start").click()
        expect(page.locator("pre.answer")).to_contain_text("is no name of a file")
        page.get_by_label("Save as").fill("small.toml")
        page.get_by_role("button", name="Save and start").click()
        page.get_by_role("button", name="Start it").click()
        expect(page.get_by_role("link", name="Follow the run")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status").last).to_contain_text("has ended with exit code 130")
        page.context.close()


def test_starting_is_off_by_default(browser: Browser, address: str) -> None:
    page = opened(browser, f"{address}/new").page
    expect(page.get_by_text("Starting is off")).to_be_visible()
    assert page.get_by_role("button", name="Save and start").count() == 0
    page.context.close()


def test_other_hosts_and_origins_and_paths_are_refused(address: str, results: Path) -> None:
    assert status_of(address) == 200
    assert status_of(address, Host="rebound.example") == 403
    assert status_of(address, Origin="http://other.example") == 403
    for site in ("cross-site", "same-site"):
        foreign = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert status_of(f"{address}/compare", **foreign) == 403
        assert status_of(address, **foreign | {"Sec-Fetch-Mode": "navigate"}) == 200
    name = runs_of(results)[0].path.name
    assert status_of(f"{address}/report/made/{name}") == 200
    for path in (
        "/report/made/..",
        f"/report/..%2Fmade/{name}",
        "/report/%2Fetc/passwd",
        "/docs",
        "/openapi.json",
    ):
        assert status_of(f"{address}{path}") == 404, path


def test_a_token_is_asked_once(browser: Browser, results: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with serving(results, tmp_path, "--token-file", str(file)) as address:
        assert QUERIES[address] == ""
        assert request(address)[0] == 401
        page = opened(browser, address).page
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_label("Token")).to_be_visible()
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        expect(page.locator("table tbody tr")).to_have_count(2)
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert TOKEN not in cookie["value"]
        page.context.close()


def test_another_address_needs_a_token(results: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "dbdyno", "ui", "--results", str(results), "--listen", "0.0.0.0:0"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    assert "is not a loopback address" in answer.stderr
    assert "--token-file" in answer.stderr


def test_reading_waits_between_readings(results: Path) -> None:
    """However many pages show a run, it is read at most once a second."""
    followed = RunReader(runs_of(results)[0])
    first = followed.now()
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        assert followed.now() is first
