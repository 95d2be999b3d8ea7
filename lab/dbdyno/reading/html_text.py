"""The text of a page, line by line, as a reader sees it; rows of tables become lines with bars."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from dbdyno.reading.limits import COLUMNS_MAX, SPAN_MAX, SPANNED_MAX, LeftOut
from dbdyno.text import compose

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
# Their content is no markup: it ends at their own end tag.
_RAW = {
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "template", "noscript", "svg")
}
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# A tag with its attributes. None of it has a `<`, so a search for the end of a tag never passes the next one.
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[a-zA-Z][^\s<>/]{0,30}+)(?P<attributes>(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>"
)
_ATTRIBUTE = re.compile(
    r"(?<![\w-])(rowspan|colspan|src)\s{0,9}=\s{0,9}(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"']++))", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});?")
_URL_MAX = 2_000


def lines_of_html(text: str, left_out: LeftOut) -> Iterator[tuple[int, str]]:
    """Line number in the source, from 1, and text of every line of the page that is not empty; in a time in
    proportion to its length: what has no end is not looked for again.
    """
    parser = _Parser(left_out)
    place = 0
    last_end = text.rfind(">")
    while (start := text.find("<", place)) >= 0:
        if start > place:
            parser.add_text(text, place, start)
        if start > last_end:
            place = start
            break
        tag = _TAG.match(text, start)
        if tag is not None:
            place = tag.end()
            name = tag["name"].lower()
            if tag["end"]:
                parser.end_tag(name)
            elif name in _RAW:
                end_tag = _RAW[name].search(text, place)
                place = len(text) if end_tag is None else end_tag.start()
            else:
                parser.start_tag(name, tag["attributes"], text, start)
        elif text.startswith("<!--", start):
            end = text.find("-->", start + 4)
            place = len(text) if end < 0 else end + 3
        elif text.startswith(("<!", "<?", "</"), start):
            place = text.find(">", start) + 1
        else:
            parser.add_text(text, start, start + 1)
            place = start + 1
    parser.add_text(text, place, len(text))
    parser.end_line()
    yield from parser.lines


class _Parser:
    """Collects the lines; the text of `pre` and `textarea` keeps its spaces and line ends."""

    def __init__(self, left_out: LeftOut) -> None:
        self.lines: list[tuple[int, str]] = []
        self._left_out = left_out
        self._parts: list[str] = []
        self._line = 1
        # The line of the source at a place in it.
        self._place, self._number = 0, 1
        self._verbatim = 0
        self._has_text = False
        self._prefix = ""
        # Cells of the rows above that extend into the next ones: column -> text and rows that are left.
        self._spans: dict[int, tuple[str, int]] = {}
        self._spanned = 0
        self._row: list[str] = []
        self._cell: tuple[int, int] | None = None

    def _move(self, text: str, place: int) -> None:
        self._number += text.count("\n", self._place, place)
        self._place = place

    def start_tag(self, tag: str, attributes: str, text: str, place: int) -> None:
        """Begins an element."""
        if tag in ("pre", "textarea"):
            self.end_line()
            self._verbatim += 1
        elif tag == "table":
            self.end_line()
            self._spans.clear()
        elif tag == "tr":
            self._end_row()
        elif tag in ("td", "th"):
            self._end_cell()
            self._clear()
            values = _attributes(attributes)
            self._cell = (_span(values, "rowspan"), _span(values, "colspan"))
        elif tag == "img":
            self._move(text, place)
            source = _attributes(attributes).get("src", "")[:_URL_MAX]
            self._add(f"![]({source})" if source else "")
        elif self._cell is not None and tag in _BREAKS:
            self._parts.append(" ")
        elif tag in _BREAKS:
            self.end_line()
            self._prefix = _HEADINGS.get(tag, "")

    def end_tag(self, tag: str) -> None:
        """Ends an element."""
        if tag in ("pre", "textarea"):
            self.end_line()
            self._verbatim = max(0, self._verbatim - 1)
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "table"):
            self._end_row()
        elif tag in _BREAKS and self._cell is None:
            self.end_line()

    def _end_row(self) -> None:
        self._end_cell()
        if not self._row:
            self.end_line()
            return
        self._fill()
        if len(self._row) > COLUMNS_MAX:
            text = compose(
                "the row has {columns:,} cells; the first {limit:,} are read",
                columns=len(self._row),
                limit=COLUMNS_MAX,
            )
            self._left_out.add("columns", self._line, text)
        self._parts = ["| ", " | ".join(self._row[:COLUMNS_MAX]), " |"]
        self._row = []
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
        self._clear()
        self._fill()
        self._spanned += columns * rows - 1
        if self._spanned > SPANNED_MAX and columns * rows > 1:
            rows = columns = 1
            note = compose(
                "cells that extend over rows and columns stand for more than {limit:,} cells; the others are "
                "read as one cell each",
                limit=SPANNED_MAX,
            )
            self._left_out.add("spans", self._line, note)
        for _ in range(columns):
            if rows > 1:
                self._spans[len(self._row)] = (text, rows - 1)
            self._row.append(text)

    def _fill(self) -> None:
        """Puts the cells of rows above that extend into this place."""
        while (span := self._spans.get(len(self._row))) is not None:
            text, left = span
            if left > 1:
                self._spans[len(self._row)] = (text, left - 1)
            else:
                del self._spans[len(self._row)]
            self._row.append(text)

    def add_text(self, source: str, start: int, end: int) -> None:
        """Adds the text between two places of the source."""
        self._move(source, start)
        data = source[start:end]
        if "&" in data:
            data = _ENTITY.sub(lambda entity: html.unescape(entity[0]), data)
        if not self._verbatim:
            self._add(data)
            return
        first, *others = data.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._add(first)
        for offset, line in enumerate(others, start=1):
            self.end_line()
            self._line = self._number + offset
            self._parts.append(line)
            self._has_text = bool(line.strip())

    def _add(self, text: str) -> None:
        if not self._has_text:
            self._line = self._number
            self._has_text = bool(text.strip())
        self._parts.append(text)

    def end_line(self) -> None:
        """Ends the line that has been collected."""
        text = "".join(self._parts)
        text = text if self._verbatim else " ".join(text.split())
        if text.strip():
            self.lines.append((self._line, self._prefix + text))
            self._prefix = ""
        self._clear()

    def _clear(self) -> None:
        self._parts = []
        self._has_text = False


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(text)}


def _span(attributes: Mapping[str, str], name: str) -> int:
    """How many rows or columns a cell extends over; pages may claim any number."""
    text = attributes.get(name, "1").strip()
    if not (text.isdecimal() and text.isascii()):
        return 1
    # The digits are limited before they are read as a number.
    return max(1, min(int(text[:6]), SPAN_MAX))
