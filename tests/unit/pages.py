"""Reads report.html as a browser would, strictly, for the tests of the report."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

from dbdyno.report import writing as report
from dbdyno.report.model import gather
from dbdyno.report.page import page
from dbdyno.report.rendering import RenderedCharts
from dbdyno.store import Run

# Elements without an end tag.
VOID = {"meta", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; raises on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self._open: list[str] = []
        # For each open element, whether only narrow screens show it.
        self._hidden: list[bool] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.text += " " if tag in ("td", "th") else ""
        if tag not in VOID:
            self._open.append(tag)
            self._hidden.append(("class", "narrow-only") in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._hidden.pop()

    def handle_data(self, data: str) -> None:
        if not any(self._hidden) and (not self._open or self._open[-1] not in ("style", "template")):
            self.text += data


def page_of(run: Run) -> Page:
    """The parsed report.html of a run."""
    return Page(report.write(run).read_text())


def joined(text: str) -> str:
    """Text with its blanks made one."""
    return " ".join(text.split())


def undrawn(run: Run) -> str:
    """The page of a run without its charts, which take two seconds to draw."""
    return page(gather(run), [], RenderedCharts())


def text_of(run: Run) -> str:
    """The text of that page."""
    return joined(Page(undrawn(run)).text)


def table_rows(lines: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """The rows of the table that `compare` prints, as words, by variant and load (or the first word)."""
    rows: dict[tuple[str, str], list[str]] = {}
    variant: str | None = None
    for line in lines:
        if line.startswith(" ") and line.rstrip().endswith("verdict"):
            variant = ""
        elif variant is None:
            continue
        elif not line.startswith(" "):
            variant = line.removesuffix(" (baseline)")
        else:
            first, *words = line.split()
            rows[variant, first] = words
    return rows
