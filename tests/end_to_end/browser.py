"""Chromium, driven by Playwright, for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

# Violations of the rules of accessibility that a test does not accept.
SERIOUS = ("serious", "critical")


@dataclass
class Watched:
    """A page, and what it requested and wrote on its console."""

    page: Page
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def violations(self) -> list[str]:
        """The serious violations that axe (axe-core, rules of WCAG) reports, each with its first element."""
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in SERIOUS]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of Debian's package; a missing one fails the test."""
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing: make packages-browser"
    with sync_playwright() as playwright:
        # The tests may run as root, and the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def watch(page: Page) -> Watched:
    """Keep what the page requests and writes on its console."""
    watched = Watched(page)
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("console", lambda message: watched.console.append(message.text))
    page.on("pageerror", lambda error: watched.console.append(str(error)))
    return watched
