"""Rows of tables that are brought into one form: two rows of headings become one, and columns with several
numbers in a cell become several columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbdyno.reading.formats.table_cell import Cell
from dbdyno.reading.patterns import linear

_SLASH = re.compile(r"\s{0,9}+/\s{0,9}+")
# "latency(avg / .95)", "new/old (TPS)", "Latency p50/p95/p99".
_IN_PARENTHESES = linear(r"([^()（）]{0,100})[(（]([^()（）]{0,100}/[^()（）]{0,100})[)）]\s*")
_BEFORE_PARENTHESES = linear(r"([^()（）]{0,100}/[^()（）]{0,100})([(（][^()（）]{0,100}[)）])\s*")
# A number that is no heading: a large one, a change, one with a deviation or with others in parentheses.
_CHANGE = re.compile(r"[+-]\d[\d.,]{0,20}+\s?%$")
_VERSION_MAX = 100
_LOAD_MAX = 20_000
_PARTS_MAX = 5


def is_datum(cell: Cell) -> bool:
    """Whether a cell is a measured number, and so its row no heading."""
    text = cell.text.strip("*_` ")
    if _CHANGE.match(text) or "±" in text or "+/-" in text:
        return True
    value = cell.value
    if value is None or not text[:1].isdigit():
        return False
    is_large = value > _LOAD_MAX or (value > _VERSION_MAX and "." in text)
    return is_large or any(part[:1].isdigit() for part in text.split("(")[1:])


def one_heading(rows: Sequence[Sequence[Cell]]) -> Sequence[Sequence[Cell]]:
    """The rows with the group's name before each heading, if the first row has names of groups of columns."""
    if len(rows) < 3 or any(cell.value is not None for cell in rows[1][1:]):
        return rows
    groups, names, body = rows[0], rows[1], rows[2:]
    if not any(cell.value is not None for row in body[:1] for cell in row[1:]):
        return rows
    texts: list[str] = []
    for at, cell in enumerate(groups):
        # A group is named in the first of its columns, or in all.
        is_continued = not cell.text and at > 1 and bool(texts[-1]) and bool(names[at].text)
        texts.append(texts[-1] if is_continued else cell.text)
    parts: dict[str, list[str]] = {}
    for text, name in zip(texts, names, strict=True):
        if text and name.text and text != name.text:
            parts.setdefault(text, []).append(name.text)
    if len(parts) < 2 or any(one != next(iter(parts.values())) for one in parts.values()):
        # Not the same figures of several variants.
        return rows
    return [
        [
            Cell(" ".join(dict.fromkeys(part for part in (text, name.text) if part)), name.index)
            for text, name in zip(texts, names, strict=True)
        ],
        *body,
    ]


def single_values(rows: Sequence[Sequence[Cell]]) -> Sequence[Sequence[Cell]]:
    """The rows with a column for each of the numbers that all cells of a column have, such as "1.2 / 3.4"."""
    heading, body = rows[0], rows[1:]
    titles = [_titles(cell.text, [row[at].text for row in body]) for at, cell in enumerate(heading)]
    if all(len(one) == 1 for one in titles):
        return rows
    return [
        [Cell(title, cell.index) for cell, parts in zip(heading, titles, strict=True) for title in parts],
        *(
            [
                Cell(part, cell.index)
                for cell, parts in zip(row, titles, strict=True)
                for part in _values(cell.text, len(parts))
            ]
            for row in body
        ),
    ]


def _values(text: str, number: int) -> Sequence[str]:
    parts = _SLASH.split(text) if number > 1 else [text]
    return parts if len(parts) == number else [""] * number


def _titles(title: str, texts: Sequence[str]) -> Sequence[str]:
    """The headings of the parts of a column's cells; the heading alone if they have none."""
    if "/" not in title:
        return [title]
    counts = {
        len(parts) if all(Cell(part, 0).value is not None for part in parts) else 0
        for parts in (_SLASH.split(text) for text in texts if text.strip("- "))
    }
    number = counts.pop() if len(counts) == 1 else 0
    before, after, listed = "", "", title
    if match := _IN_PARENTHESES.fullmatch(title):
        before, listed = f"{match[1].strip()} ", match[2]
    elif match := _BEFORE_PARENTHESES.fullmatch(title):
        listed, after = match[1], f" {match[2]}"
    parts = _SLASH.split(listed.strip())
    if not 1 < number <= _PARTS_MAX or len(parts) != number:
        return [title]
    if not before and not after:
        # "Latency p50/p95": the words before the first part are those of all.
        before = parts[0].rpartition(" ")[0]
        before = f"{before} " if before else ""
        parts = [parts[0].removeprefix(before), *parts[1:]]
    return [f"{before}{part}{after}" for part in parts]
