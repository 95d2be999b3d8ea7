"""The text of a page, line by line, as a reader sees it; rows of tables become lines with bars."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

# Elements that begin a new line, and elements whose content nobody sees.
_BREAKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "title",
        "tr",
        "ul",
    ]
)
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
_SPAN_MAX = 100
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def lines_of_html(text: str) -> Iterator[tuple[int, str]]:
    """Line number in the source, from 1, and text of every line of the page that is not empty."""
    parser = _Parser()
    parser.feed(_without_open_ends(text))
    parser.close()
    parser.end_line()
    yield from parser.lines


def _without_open_ends(text: str) -> str:
    """The page without comments, and without the begin of a tag that never ends: the parser would look for
    the end of each of them in the whole rest of the page. The number of lines stays.
    """
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    last = text.rfind(">") + 1
    return text[:last] + text[last:].replace("<", "&lt;")


class _Parser(HTMLParser):
    """Collects the lines; the text of `pre` and `textarea` keeps its spaces and line ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[tuple[int, str]] = []
        self._parts: list[str] = []
        self._line = 1
        self._hidden = self._verbatim = 0
        self._prefix = ""
        # Cells of the rows above that extend into the next ones: column -> text and rows that are left.
        self._spans: dict[int, tuple[str, int]] = {}
        self._row: list[str] = []
        self._cell: tuple[int, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in ("pre", "textarea"):
            self.end_line()
            self._verbatim += 1
        elif tag == "table":
            self.end_line()
            self._spans.clear()
        elif tag == "tr":
            self.end_line()
            self._row = []
        elif tag in ("td", "th"):
            self._end_cell()
            self._parts.clear()
            self._cell = (_span(attrs, "rowspan"), _span(attrs, "colspan"))
        elif tag == "img":
            source = dict(attrs).get("src")
            self._add(f"![]({source})" if source else "")
        elif self._cell is not None and tag in _BREAKS:
            self._parts.append(" ")
        elif tag in _BREAKS:
            self.end_line()
            self._prefix = _HEADINGS.get(tag, "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in ("pre", "textarea"):
            self.end_line()
            self._verbatim = max(0, self._verbatim - 1)
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr":
            self._end_cell()
            self._fill()
            self._parts = ["| ", " | ".join(self._row), " |"] if self._row else []
            self._row = []
            self.end_line()
        elif tag in _BREAKS and self._cell is None:
            self.end_line()

    def _end_cell(self) -> None:
        """Ends the open cell: it is in each of its columns, and in the rows below that it extends
        over.
        """
        if self._cell is None:
            return
        rows, columns = self._cell
        self._cell = None
        text = " ".join("".join(self._parts).split()).replace("|", "/")
        self._parts.clear()
        self._fill()
        for _ in range(columns):
            if rows > 1:
                self._spans[len(self._row)] = (text, rows - 1)
            self._row.append(text)

    def _fill(self) -> None:
        """Puts the cells of rows above that extend into this place."""
        while (found := self._spans.get(len(self._row))) is not None:
            text, left = found
            if left > 1:
                self._spans[len(self._row)] = (text, left - 1)
            else:
                del self._spans[len(self._row)]
            self._row.append(text)

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if not self._verbatim:
            self._add(data)
            return
        first, *others = data.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._add(first)
        start, _ = self.getpos()
        for offset, line in enumerate(others, start=1):
            self.end_line()
            self._line = start + offset
            self._parts.append(line)

    def _add(self, text: str) -> None:
        if not any(part.strip() for part in self._parts):
            self._line, _ = self.getpos()
        self._parts.append(text)

    def end_line(self) -> None:
        """Ends the line that has been collected."""
        text = "".join(self._parts)
        text = text if self._verbatim else " ".join(text.split())
        if text.strip():
            self.lines.append((self._line, self._prefix + text))
            self._prefix = ""
        self._parts.clear()


def _span(attributes: list[tuple[str, str | None]], name: str) -> int:
    """How many rows or columns a cell extends over; pages may claim any number."""
    text = dict(attributes).get(name) or "1"
    return min(int(text), _SPAN_MAX) if text.isdigit() and int(text) > 0 else 1
