"""report.html in Chromium: values, widths, colours, print, and no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser
from tests.end_to_end.browser import Watched, chromium, watch
from tests.unit.stored_run import Making, make, verdict_of

from dbdyno import result_text
from dbdyno.languages import languages, translator
from dbdyno.report import writing as report
from dbdyno.report.writing import report_folder
from dbdyno.store import Run
from dbdyno.text import recall
from dbdyno.verdict import judge

NAMES = ("one-thread-per-connection", "pool-of-threads")
WIDTHS = (1440, 800, 390)
# A4 without the margins of report.css, in CSS pixels.
A4_WIDTH = round((210 - 2 * 14) / 25.4 * 96)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A judged run with warnings, and variables that differ."""
    check: dict[str, Any] = {
        "code": "D01", "level": "warn", "text": "the load generator woke up late in trial 0003.",
        "evidence": {}, "subject": "", "override": None, "fix": "Keep a CPU free.",
    }  # fmt: skip
    variables = {NAMES[1]: {"thread_handling": "pool-of-threads", "tmpdir": "/srv/" + 40 * "x"}}
    making = Making(
        names=NAMES,
        findings=[check],
        variables=variables,
        speed=lambda trial, _tick: 100 if trial.variant == NAMES[0] else 90,
    )
    run = make(tmp_path_factory.mktemp("runs"), making)
    judge(run)
    for language in languages():
        report.write(run, language=language)
    return run


def opened(
    browser: Browser, run: Run, width: int, scheme: Literal["light", "dark"] = "light", language: str = "en"
) -> Watched:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched = watch(context.new_page())
    watched.page.goto(page_url(run, language))
    return watched


def page_url(run: Run, language: str = "en") -> str:
    return (report_folder(run, language) / "report.html").resolve().as_uri()


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_is_accessible_and_requests_nothing(
    browser: Browser, run: Run, width: int, scheme: Literal["light", "dark"], language: str
) -> None:
    watched = opened(browser, run, width, scheme, language)
    assert watched.requests == [page_url(run, language)]
    assert watched.console == []
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.violations() == []
    watched.page.context.close()


@pytest.mark.parametrize("language", languages())
def test_the_values_are_those_of_the_verdict_file(browser: Browser, run: Run, language: str) -> None:
    page, translate = opened(browser, run, 1440, language=language).page, translator(language)
    (comparison,) = verdict_of(run)["comparisons"]
    curve = comparison["curve"]
    box = page.locator("#verdict .verdict")
    assert box.locator(".word").inner_text().lower() == translate(result_text.VERDICTS[curve["verdict"]])
    assert box.locator(".ratio").inner_text() == f"{result_text.percent(curve['effect_percent'])} %"
    assert box.locator(".caveats li").all_inner_texts() == [
        translate(recall(one)) for one in curve["caveats"]
    ]
    rows = page.locator("#results table.results").first.locator("tbody tr").all()
    points = comparison["points"]
    # A row below those of the points is that of all of them together.
    assert len(rows) >= len(points) > 0
    for row, point in zip(rows, points, strict=False):
        cells = row.locator("td").all_inner_texts()
        assert cells[2] == f"{result_text.percent(point['effect_percent'])} %"
        low, high = point["interval_percent"]
        assert cells[3] == f"[{result_text.percent(low)}, {result_text.percent(high)}]"
        assert cells[5] == translate(result_text.VERDICTS[point["verdict"]])
    page.context.close()


def test_a_telephone_shows_change_and_verdict_without_scrolling(browser: Browser, run: Run) -> None:
    page = opened(browser, run, 390).page
    table = page.locator("#results .scroll").first
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
    cells = table.locator("tbody tr").first.locator("td:visible").all_inner_texts()
    assert cells[0].startswith(result_text.MINUS)
    assert "[" in cells[0]
    assert cells[-1] == "slower"
    chart = page.locator("figure").first.locator("svg:visible")
    assert chart.count() == 1
    # Text of 12 units is drawn at no less than 10 pixels.
    assert chart.evaluate("one => one.getBoundingClientRect().width / one.viewBox.baseVal.width") > 0.83
    page.context.close()


def test_a_code_and_the_contents_lead_somewhere(browser: Browser, run: Run) -> None:
    page = opened(browser, run, 1440).page
    page.get_by_role("link", name="D01").first.click()
    assert page.locator("#check-D01").is_visible()
    assert page.evaluate("location.hash") == "#check-D01"
    assert not page.locator("#trials table").is_visible()
    page.locator("#trials summary").click()
    assert page.locator("#trials table").is_visible()
    page.context.close()


def test_nothing_is_cut_on_paper(browser: Browser, run: Run, tmp_path: Path) -> None:
    page = opened(browser, run, A4_WIDTH).page
    page.emulate_media(media="print")
    too_wide = page.evaluate(
        """width => [...document.querySelectorAll('main *')]
            .filter(one => one.getBoundingClientRect().right > width + 1)
            .map(one => one.outerHTML.slice(0, 200))""",
        A4_WIDTH,
    )
    assert too_wide == []
    assert page.locator("#trials table").is_visible()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    page.context.close()
