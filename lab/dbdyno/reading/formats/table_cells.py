"""The cells of tables, and rows that are brought into one form: two rows of headings become one, and columns
with several numbers in a cell become several columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dbdyno.reading.patterns import decimal, linear

_NUMBER = linear(
    r"(?<![*_`~\d])[*_`~]*+([-+]?\d[\d, ]{0,40}+(?:\.\d{1,40}+)?(?:e[+-]?\d{1,5}+)?)"
    r"\s{0,9}+([kKM](?![a-zA-Z]))?(?:\s?(?P<unit>ms|msec|us|usec|µs|μs|s|sec|毫秒|ミリ秒|밀리초|微秒|秒|초|tps|qps|/s)(?![a-zA-Z]))?(?:\s?(?:±|\+/-|\+-)\s?[\d.,]{1,40}+\s?(?:%|ms|us|s)?)?[*_`]{0,9}+(?:\s{0,9}+\(.{0,200}\))?$"
)
_FACTORS = {"k": 1e3, "m": 1e6}
# Milliseconds of a unit of time.
_UNITS = {
    **dict.fromkeys(("ms", "msec", "毫秒", "ミリ秒", "밀리초"), 1.0),
    **dict.fromkeys(("us", "usec", "µs", "μs", "微秒"), 1e-3),
    **dict.fromkeys(("s", "sec", "秒", "초"), 1e3),
}


@dataclass(frozen=True)
class Cell:
    """A cell, and the index of its line."""

    text: str
    index: int

    @cached_property
    def value(self) -> float | None:
        """Its number; None if it has none, or more than one."""
        match = _NUMBER.match(self.text)
        if match is None:
            return None
        number = decimal(match[1].replace(" ", ""))
        return None if number is None else number * _FACTORS.get((match[2] or "").lower(), 1.0)

    def figure(self, name: str, scale: float) -> float | None:
        """Its number in the unit of a figure: by its own unit, or else by that of the heading."""
        match = _NUMBER.match(self.text)
        if self.value is None or match is None:
            return None
        own = _UNITS.get(match["unit"] or "") if name.endswith("_ms") else None
        return self.value * (scale if own is None else own)


_SLASH = re.compile(r"\s{0,9}+/\s{0,9}+")
# "latency(avg / .95)", "new/old (TPS)", "Latency p50/p95/p99".
_IN_PARENTHESES = linear(r"([^()（）]{0,100})[(（]([^()（）]{0,100}/[^()（）]{0,100})[)）]\s*")
_BEFORE_PARENTHESES = linear(r"([^()（）]{0,200}+)([(（][^()（）]{0,100}+[)）])\s*+")
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
    elif (match := _BEFORE_PARENTHESES.fullmatch(title)) and "/" in match[1]:
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
