"""Texts of another person's run are text wherever they are shown: pages, reports, charts, site and Markdown.

Every string of a run that its models accept gets markup: names, errors of servers, findings, sentences, texts
for translations. The pages are opened in Chromium.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Page, expect
from tests.end_to_end.browser import chromium
from tests.end_to_end.serving import opened, serving
from tests.unit.pages import Page as Parsed
from tests.unit.stored_run import Making, make

from dbdyno.problem import Problem
from dbdyno.report import writing as report
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.report.site import write_site
from dbdyno.store import Run, files
from dbdyno.verdict import judge

MARK = "canary"
PAYLOADS = (
    f"<img src=x onerror=window.xss=1 alt={MARK}>",
    f"\"><script>window.xss=1</script>'{MARK}",
    f"' onmouseover='window.xss=1' {MARK}=\"",
    f"</title></textarea></style></template><svg onload=window.xss=1>{MARK}",
    f"[{MARK}](javascript:window.xss=1) `<script>window.xss=1</script>` {{{{7*7}}}} {{xss}}",
)
# Files with texts that are shown.
FILES = (
    "environment.json", "checks.json", "verdict.json", "measured.json", "explained.json", "texts.json",
    "trials/0001/trial.json", "trials/0001/server.json",
)  # fmt: skip
# Elements that a page of dbdyno has, and a text must not add; and attributes that run scripts.
ACTIVE = r"""() => [...document.querySelectorAll('*')].filter(one =>
    ['IMG', 'IFRAME', 'OBJECT', 'EMBED', 'FORM'].includes(one.tagName)
        && one.getAttribute('action') !== '/compare'
    || [...one.attributes].some(two => two.name.startsWith('on') || /^\s*javascript:/i.test(two.value)))
    .map(one => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all strings."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*place, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from leaves(one, (*place, index))
    elif isinstance(value, str):
        yield place


def poison(value: Any, place: tuple[Any, ...], payload: str) -> None:
    for key in place[:-1]:
        value = value[key]
    value[place[-1]] += payload


def named_run(results: Path) -> Run:
    """A run whose names and errors have markup."""
    names = tuple(f"{name}{payload}" for name, payload in zip("ab", PAYLOADS[:2], strict=True))
    making = Making(
        blocks=6,
        connections=(10,),
        names=names,
        question=PAYLOADS[0],
        conclusion=PAYLOADS[3],
        override={"P07": PAYLOADS[1]},
        failed=lambda trial: PAYLOADS[0] if trial.block == 1 else None,
        variables={names[1]: {"init_connect": PAYLOADS[4]}},
        speed=lambda trial, _: 100 if trial.variant == names[0] else 90,
    )
    run = make(results, making)
    judge(run)
    files.write(run.path / "experiment.toml", f"# {''.join(PAYLOADS)}\n".encode())
    return run


def poisoned_run(results: Path) -> tuple[Run, int]:
    """A run with markup in all strings that its models accept; their number without repetitions in lists."""
    run, count = named_run(results), 0
    for number, name in enumerate(FILES):
        path = run.path / name
        document = json.loads(path.read_text())
        kinds: set[tuple[Any, ...]] = set()
        for place in leaves(document):
            kind = tuple("#" if isinstance(key, int) else key for key in place)
            if kind in kinds:
                continue
            kinds.add(kind)
            changed = json.loads(json.dumps(document))
            poison(changed, place, PAYLOADS[(number + len(kinds)) % len(PAYLOADS)])
            files.write_json(path, changed)
            if is_readable(run):
                document, count = changed, count + 1
            files.write_json(path, document)
    run.release()
    assert run.changed_files() == []
    return run, count


def is_readable(run: Run) -> bool:
    """Whether the models accept the files of a run; otherwise it is refused, which is fine too."""
    try:
        with run.reading():
            gather(run)
    except (Problem, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return False
    return True


@pytest.mark.long
def test_texts_are_text_everywhere(browser: Browser, tmp_path: Path) -> None:
    results = tmp_path / "results"
    named = named_run(results)
    named.release()
    poisoned, count = poisoned_run(results)
    assert count > 60
    places: list[str] = []

    def require_inert(shown: Page, place: str) -> None:
        assert shown.evaluate("window.xss") is None, place
        assert shown.evaluate(ACTIVE) == [], place
        assert MARK in shown.content(), place
        places.append(place)

    with serving(results, tmp_path) as address:
        one, other = (f"made/{run.path.name}" for run in (named, poisoned))
        for path in (
            "/",
            f"/run/{one}",
            f"/run/{other}",
            f"/compare?run={one}&run={other}",
            f"/report/{other}",
        ):
            shown = opened(browser, address + path).page
            expect(shown.locator("h1, h2").first).to_be_visible()
            require_inert(shown, path)
            shown.context.close()
        shown = opened(browser, f"{address}/new?like={other}").page
        expect(shown.get_by_label("Experiment file (TOML)")).to_have_value(re.compile(MARK))
        assert shown.evaluate("window.xss") is None
        shown.context.close()
    saved = [report.write(named, folder=tmp_path / "named")]
    saved += [
        report.write(poisoned, language=language, folder=tmp_path / "poisoned") for language in ("en", "ko")
    ]
    saved += [write_site(results, tmp_path / "site", lambda _: None)[0]]
    charts = [path for path in tmp_path.glob("named/charts/*.svg") if MARK in path.read_text()]
    assert len(charts) > 2
    for file in (*saved, *tmp_path.glob("site/**/report.html"), *charts):
        shown = browser.new_page()
        shown.goto(file.as_uri())
        require_inert(shown, str(file))
        shown.close()
        if file.suffix == ".html":
            # Also without the policy of the page.
            parsed = Parsed(file.read_text())
            assert set(parsed.tags).isdisjoint({"script", "iframe", "img", "object", "form"})
    for run, language in itertools.product((named, poisoned), ("en", "ko")):
        markdown = as_markdown(gather(run), language=language)
        rendered = Parsed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
        assert set(rendered.tags).isdisjoint({"script", "img", "svg", "iframe", "a"})
        assert rendered.text.count(MARK) > 5
        places.append(f"Markdown, {language}")
    assert len(places) >= 18, places
