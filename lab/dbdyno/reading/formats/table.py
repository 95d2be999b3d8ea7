"""Tables of results: aligned text, Markdown, HTML (which the document has as lines with bars), or CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dbdyno.reading.document import Document
from dbdyno.reading.formats import table_headings
from dbdyno.reading.formats.table_headings import Cell
from dbdyno.reading.formats.table_layout import results
from dbdyno.reading.limits import COLUMNS_MAX, ROWS_MAX, linear
from dbdyno.reading.result import Result
from dbdyno.text import compose

_RULE = re.compile(r"(?<![\s|+:=\-─┼│])[\s|+:=\-─┼│]++$")
# Lines that tools print during a run look like rows.
_PROGRESS = linear(r"\[ *\d+ ?s ?\]|progress:")
_GAP = re.compile(r"\t++|\s{2,}+")
# The marks of a difference between two versions of a text, before the bar of a row.
_ADDED = re.compile(r"\+\s{0,20}+(?=\|)")
# A row of MediaWiki. That of Jira has two bars in its headings only.
_WIKI_ROW = linear(r"\|[^|]{1,1000}(?:\|\|[^|]{1,1000}){1,100}")
_REMOVED = re.compile(r"-\s{0,20}+\|\s{0,20}+[^-\s|:]")
_NAMES = re.compile(r"[^\W\d]\S{0,100}+(?:\s{1,20}+v?\d[\w.]{0,20}+){0,9}")
_FRACTION = re.compile(r"\d{1,15}+,\d{1,15}+|\d{1,3}(?:\.\d{3}){1,4}(?:,\d{1,15})?")
# Characters of the heading of a column of CSV: longer ones are prose.
_TITLE_MAX = 60
_NUMBER = re.compile(r"[-+]?[\d.,]{1,40}+(?:m?s|%)?")
# Above a table, the lines that may say which figure it has.
_CAPTION_LINES = 6
# How many of a table's first lines may be its heading.
_HEADINGS_MAX = 4
_ROWS_NOTE = compose("only the first {limit:,} rows of the table are read", limit=ROWS_MAX)


@dataclass(frozen=True)
class _Row:
    index: int
    cells: tuple[str, ...]


def find(document: Document) -> Iterator[Result]:
    """The results in all tables of a document."""
    index = 0
    while index < len(document.texts):
        text = document.texts[index]
        if separator := _csv_separator(document, index):
            rows, index = _csv_rows(document, index, separator)
            yield from results(_grid(rows), _captions(document, rows[0].index), has_bars=True)
            index += 1
            continue
        if " " not in text and "|" not in text and "!!" not in text and "\t" not in text and "│" not in text:
            index += 1
            continue
        rows, last = _rows(document, index)
        grid = _grid(rows)
        # A line that is no heading of a table may be above one that is.
        for start in range(min(len(rows) - 1, _HEADINGS_MAX)):
            has_bars = "|" in document.texts[rows[start].index]
            captions = _captions(document, rows[start].index)
            table_results = list(results(grid[start:], captions, has_bars=has_bars))
            if table_results:
                yield from table_results
                break
        index = (last if len(rows) > 1 else index) + 1


def _grid(rows: Sequence[_Row]) -> list[list[Cell]]:
    return [[Cell(text, row.index) for text in row.cells] for row in rows]


def _rows(document: Document, start: int) -> tuple[list[_Row], int]:
    """The lines from an index on that have as many cells as the first, and the index of the last of them."""
    first = _cells(document.texts[start])
    second = _cells(document.texts[start + 1]) if start + 1 < len(document.texts) else ()
    if len(second) > 1 and len(first) != len(second) and "|" not in document.texts[start]:
        first = _named_columns(document.texts[start], len(second)) or first
    if len(first) < 2 or _RULE.match(document.texts[start]):
        return [], start
    if len(first) > COLUMNS_MAX:
        note = compose(
            "the line has {columns:,} cells; tables have at most {limit:,}",
            columns=len(first),
            limit=COLUMNS_MAX,
        )
        document.left_out.add("columns", document.numbers[start], note)
        return [], start
    rows, last = [_Row(start, first)], start
    for index, text in document.lines(start + 1):
        bare = text.strip()
        if (bare and _RULE.match(text)) or _REMOVED.match(bare):
            continue
        if not bare and len(rows) == 1 and index == start + 1:
            continue
        cells = _cells(text)
        if len(cells) != len(first):
            break
        if len(rows) >= ROWS_MAX:
            document.left_out.add("rows", document.numbers[index], _ROWS_NOTE)
        else:
            rows.append(_Row(index, cells))
        last = index
    return rows, last


# A line is looked at as a heading and as the row after one.
@lru_cache(maxsize=1024)
def _cells(text: str) -> tuple[str, ...]:
    """The cells of a line: between bars, or separated by tabs or several spaces; words, if all are numbers or
    known headings.
    """
    bare = text.strip()
    if _PROGRESS.match(bare):
        return ()
    bare = _ADDED.sub("", bare, count=1)
    if bare.startswith("!") and "!!" in bare:
        bare = bare[1:].replace("!!", "|")
    elif bare.startswith("||") or _WIKI_ROW.fullmatch(bare):
        bare = bare.replace("||", "|")
    if "|" in bare or "│" in bare:
        return tuple(cell.strip() for cell in bare.replace("│", "|").strip("|").split("|"))
    cells = tuple(_GAP.split(bare))
    words = tuple(bare.split())
    if len(cells) > 1 and all(_stands_alone(cell) for cell in cells):
        return cells
    return words if len(words) > 1 and all(word.isdigit() or _stands_alone(word) for word in words) else cells


def _csv_separator(document: Document, index: int) -> str:
    """The separator of the CSV file whose headings a line has; "" if it has none."""
    text = document.texts[index]
    if index + 1 >= len(document.texts) or "|" in text:
        return ""
    for separator in (",", ";"):
        if separator not in text:
            continue
        titles, row = (_csv_cells(entry, separator) for entry in document.texts[index : index + 2])
        is_row = 1 < len(titles) == len(row) <= COLUMNS_MAX
        if is_row and all(_is_title(title) for title in titles[1:]) and _is_known((*titles, *row)):
            return separator if any(_NUMBER.fullmatch(entry) for entry in row) else ""
    return ""


def _is_known(cells: Sequence[str]) -> bool:
    """Whether one of the cells names a figure."""
    return any(table_headings.figure(cell) or table_headings.figure_within(cell)[0] for cell in cells)


def _is_title(text: str) -> bool:
    """Whether a cell may be the heading of a column of CSV."""
    return 0 < len(text) <= _TITLE_MAX and (bool(table_headings.figure(text)) or not _NUMBER.fullmatch(text))


def _csv_rows(document: Document, start: int, separator: str) -> tuple[list[_Row], int]:
    """The lines of a CSV file from its headings on, and the index of the last of them."""
    rows: list[_Row] = []
    for index, text in document.lines(start):
        cells = _csv_cells(text, separator)
        if rows and len(cells) != len(rows[0].cells):
            break
        if len(rows) > ROWS_MAX:
            document.left_out.add("rows", document.numbers[index], _ROWS_NOTE)
            break
        rows.append(_Row(index, cells))
    return rows, rows[-1].index


def _csv_cells(text: str, separator: str) -> tuple[str, ...]:
    """The cells of a line of CSV; with semicolons a comma is that of a fraction."""
    try:
        cells = next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return ()
    stripped = (cell.strip() for cell in cells)
    if separator == ";":
        return tuple(
            cell.replace(".", "").replace(",", ".") if _FRACTION.fullmatch(cell) else cell
            for cell in stripped
        )
    return tuple(stripped)


def _named_columns(text: str, number: int) -> tuple[str, ...]:
    """The headings of a line with single spaces, in which a version belongs to the word before it: "clients
    MySQL 5.6 MySQL 5.7"; none if their number is another one.
    """
    names = tuple(_NAMES.findall(text.strip()))
    return names if len(names) == number and table_headings.is_load(names[0]) else ()


@lru_cache(maxsize=1024)
def _stands_alone(word: str) -> bool:
    return (
        _NUMBER.fullmatch(word) is not None
        or table_headings.is_load(word)
        or bool(table_headings.figure(word))
    )


def _captions(document: Document, first: int) -> list[str]:
    """The lines above a table that are not empty, the nearest first."""
    above = [document.texts[index] for index in range(first - 1, max(-1, first - 1 - _CAPTION_LINES), -1)]
    return [text for text in above if text.strip()]
