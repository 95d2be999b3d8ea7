"""The layouts of tables: what its rows and columns are.

- a row is a load, a column a figure: `| threads | TPS | p95 |`
- a row is a load, a column a variant: `| threads | MySQL 5.7 | MySQL 8.0 |`, the figure in the caption or in
the heading `MySQL 8.0 (TPS)`
- a row is a variant, a column a figure: `| server | TPS | p95 |`, or a load: `| server | 1 | 16 | 64 |`
- a row is a figure, a column a load or a variant: `| | before | after |`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dbdyno.reading import headings
from dbdyno.reading.patterns import decimal, linear
from dbdyno.reading.result import Figure, Result
from dbdyno.reading.sections import says_more_than_load

_NUMBER = linear(
    r"(?<![*_`~\d])[*_`~]*+([-+]?\d[\d, ]{0,40}+(?:\.\d{1,40}+)?(?:e[+-]?\d{1,5}+)?)"
    r"\s{0,9}+([kKM](?![a-zA-Z]))?(?:\s?(?:ms|us|s|tps|qps|/s|sec))?[*_`]{0,9}+(?:\s{0,9}+\(.{0,200}\))?$"
)
_BARE = re.compile(r"[\d.,]{1,40}+\D{0,3}$")
_FACTORS = {"k": 1e3, "m": 1e6}
# A first column that numbers the repetitions.
_REPETITION = linear(
    r"(?:run|trial|iteration|round|no\.?|#|회차|횟수|次数?|轮次|回)\s*(?:#|no\.?)?", re.IGNORECASE
)
# A column of changes is no figure of a variant.
_CHANGE = linear(
    r"%|diff|change|gain|improvement|ratio|speed-?up|delta|증가|향상|차이|提升|增加|差", re.IGNORECASE
)


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


@dataclass(frozen=True)
class _Column:
    place: int
    figure: str
    label: str
    connections: int | None = None
    scale: float = 1.0


def results(rows: Sequence[Sequence[Cell]], captions: Sequence[str], *, has_bars: bool) -> Iterator[Result]:
    """The results in a table; none if it is no table of results. Without bars, lines of a name and a value
    are the output of some tool and no table.
    """
    heading, body = rows[0], rows[1:]
    if not any(cell.value is not None for cell in body[0][1:]):
        # A heading of several rows: the last one counts.
        return
    if heading[0].value is not None or (not has_bars and any(_BARE.match(cell.text) for cell in heading)):
        return
    if _REPETITION.fullmatch(heading[0].text.strip()):
        columns = _figure_columns(heading, captions)
        for row in body:
            yield from _row_results(row, columns, heading[0].index, None, "")
        return
    if headings.is_load(heading[0].text) or _is_load_column(heading[0].text, body):
        columns = _figure_columns(heading, captions)
        first = heading[0].index
        for row in body:
            if (connections := headings.load_value(row[0].text)) is not None:
                yield from _row_results(row, columns, first, connections, "")
        return
    if has_bars and any(
        headings.figure(row[0].text) or headings.figure_within(row[0].text)[0] for row in body
    ):
        yield from _transposed(heading, body)
        return
    columns = _figure_columns(heading, captions)
    loads = [headings.load_value(cell.text) for cell in heading[1:]]
    known = [load for load in loads if load is not None]
    repetitions = known == list(range(1, len(known) + 1)) and len(known) > 2
    if len(known) > 1 and (repetitions or (len(known) == len(loads) and known == sorted(set(known)))):
        figure = _caption_figure([heading[0].text, *captions])
        columns = [
            _Column(at, figure, "", None if repetitions else load)
            for at, load in enumerate(loads, start=1)
            if figure and load is not None
        ]
        if repetitions:
            for row, column in ((row, column) for row in body for column in columns):
                yield from _row_results(row, [column], heading[0].index, None, row[0].text.strip("*_` "))
            return
    elif not any(column.figure for column in columns):
        columns = []
    load_at = next((at for at, cell in enumerate(heading) if at and headings.is_load(cell.text)), None)
    for row in body:
        load = headings.load_value(row[load_at].text) if load_at is not None else None
        yield from _row_results(row, columns, heading[0].index, load, row[0].text.strip("*_` "))


def _is_load_column(heading: str, body: Sequence[Sequence[Cell]]) -> bool:
    """Whether the first column has loads although its heading says nothing."""
    loads = [headings.load_value(row[0].text) for row in body]
    known = [load for load in loads if load is not None]
    return not heading.strip() and len(known) == len(loads) > 1 and known == sorted(set(known))


def _figure_columns(heading: Sequence[Cell], captions: Sequence[str]) -> list[_Column]:
    """The columns with figures, each of one variant."""
    columns: list[_Column] = []
    unknown: list[int] = []
    for at, cell in enumerate(heading[1:], start=1):
        text = cell.text.strip("*_` ")
        if headings.is_load(text) or not text:
            continue
        if name := headings.figure(text):
            columns.append(_Column(at, name, "", scale=headings.scale(text, name)))
        elif _CHANGE.search(text):
            continue
        else:
            name, rest = headings.figure_within(text)
            if name:
                load, label = headings.load_within(rest)
                columns.append(_Column(at, name, label, load, headings.scale(text, name)))
            else:
                unknown.append(at)
    figure = _caption_figure(captions) if unknown and not columns else ""
    if figure:
        columns = [_Column(at, figure, heading[at].text.strip("*_` ")) for at in unknown]
    return columns


def _row_results(
    row: Sequence[Cell], columns: Sequence[_Column], table: int, connections: int | None, label: str
) -> Iterator[Result]:
    """The results of a row, one for each variant and load in its columns."""
    groups: dict[tuple[str, int | None], dict[str, Figure]] = {}
    for column in columns:
        cell = row[column.place]
        if cell.value is not None:
            load = column.connections if column.connections is not None else connections
            name = " ".join(part for part in (label, column.label) if part and says_more_than_load(part))
            groups.setdefault((name, load), {}).setdefault(
                column.figure, Figure(cell.value * column.scale, cell.index)
            )
    for (name, load), figures in groups.items():
        yield Result("table", row[0].index, row[0].index, load, figures, label=name, table=table)


def _transposed(heading: Sequence[Cell], body: Sequence[Sequence[Cell]]) -> Iterator[Result]:
    """The results of a table whose rows are figures: one for each column."""
    names = [row[0].text.strip("*_` ") for row in body]
    rows = [
        (text, headings.is_load(text), headings.figure(text) or headings.figure_within(text)[0], row)
        for text, row in zip(names, body, strict=True)
    ]
    for at, cell in enumerate(heading[1:], start=1):
        if _CHANGE.search(cell.text):
            continue
        figures: dict[str, Figure] = {}
        connections = None
        for text, is_load, name, row in rows:
            if is_load:
                connections = headings.load_value(row[at].text)
                continue
            value = row[at].value
            if name and value is not None:
                figures.setdefault(name, Figure(value * headings.scale(text, name), row[at].index))
        if figures:
            load = headings.load_value(cell.text)
            label = "" if load is not None else cell.text.strip("*_` ")
            load = load if load is not None else connections
            yield Result(
                "table", heading[0].index, body[-1][0].index, load, figures, label=label, table=cell.index
            )


def _caption_figure(texts: Sequence[str]) -> str:
    """The figure that the nearest of these texts mentions."""
    for text in texts:
        name = headings.figure(text) or headings.figure_within(text)[0]
        if name:
            return name
    return ""
