"""The layouts of tables: what its rows and columns are.

- a row is a load, a column a figure: `| threads | TPS | p95 |`
- a row is a load, a column a variant: `| threads | MySQL 5.7 | MySQL 8.0 |`, the figure in the caption or in
the heading `MySQL 8.0 (TPS)`
- a row is a variant, a workload or both, a column a figure: `| server | workload | TPS | p95 |`, or a load:
`| server | 1 | 16 | 64 |`
- a row is a figure, a column a load or a variant: `| | before | after |`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.reading import headings
from dbdyno.reading.formats.table_cell import Cell
from dbdyno.reading.formats.table_parts import is_datum, one_heading, single_values
from dbdyno.reading.formats.table_roles import (
    CHANGE,
    MARKS,
    REPETITION,
    find_keys,
    find_times,
    is_name,
    repetition_number,
)
from dbdyno.reading.patterns import linear
from dbdyno.reading.result import Figure, Result
from dbdyno.reading.workload_name import is_workload

_BARE = re.compile(r"[\d.,]{1,40}+\D{0,3}$")

# The columns of a table that has a row for each figure.
_METRIC = linear(r"metrics?|measures?|figure|statistic|indicator|항목|지표|指标|指標|метрика", re.IGNORECASE)
# Columns of a file of JMeter that has a row for each request.
_SAMPLES = {"timeStamp", "elapsed", "label"}
_METRIC_VALUE = linear(r"values?|result|값|수치|值|数値|数值|значение", re.IGNORECASE)


@dataclass(frozen=True)
class _Column:
    place: int
    figure: str
    label: str
    connections: int | None = None
    scale: float = 1.0
    # The number of a repetition that has a column of its own.
    repetition: int = 0


def results(rows: Sequence[Sequence[Cell]], captions: Sequence[str], *, has_bars: bool) -> Iterator[Result]:
    """The results in a table; none if it is no table of results. Without bars, lines of a name and a value
    are the output of some tool and no table.
    """
    if has_bars and len(rows[0]) == 2 and headings.figure(rows[0][0].text) and rows[0][1].value is not None:
        # Names and values without a heading.
        rows = [[Cell("", rows[0][0].index)] * 2, *rows]
    rows = _pivot(single_values(one_heading(rows)))
    heading, body = rows[0], rows[1:]
    if not any(cell.value is not None for cell in body[0][1:]):
        # A heading of several rows: the last one counts.
        return
    if heading[0].value is not None or any(map(is_datum, heading)):
        return
    if not has_bars and any(map(_is_bare, heading)):
        return
    is_keyed = REPETITION.fullmatch(heading[0].text.strip()) or headings.is_load(heading[0].text)
    has_figures = any(headings.figure(cell.text) for cell in heading[1:])
    if has_bars and not is_keyed and not has_figures and any(_figure_of(row[0].text) for row in body):
        yield from _transposed(heading, body)
        return
    titles = [cell.text for cell in heading]
    texts = [[cell.text for cell in row] for row in body]
    if set(titles) >= _SAMPLES:
        return
    times = find_times(titles, texts)
    columns = [one for one in _figure_columns(heading, body, captions) if one.place not in times]
    has_labels = any(is_name(column.label) and not is_workload(column.label) for column in columns)
    places = [column.place for column in columns]
    keys = find_keys(titles, texts, places, has_labels=has_labels, times=times)
    for row, words in zip(body, texts, strict=True):
        load = headings.load_value(words[keys.load]) if keys.load is not None else None
        if load is None and keys.load == 0 and all(column.connections is None for column in columns):
            # A row of means.
            continue
        workload = keys.workload(titles, words)
        if load is None and keys.load is not None and words[keys.load]:
            # A load that is no number, such as 64 * 4.
            workload = ", ".join(part for part in (workload, words[keys.load].strip(MARKS)) if part)
        row_keys = _RowKeys(load, keys.label(titles, words), workload, keys.doubt)
        yield from _row_results(row, columns, heading[0].index, row_keys)


def _pivot(rows: Sequence[Sequence[Cell]]) -> Sequence[Sequence[Cell]]:
    """A table with a row for each figure of a result, as one with a column for each figure."""
    heading, body = rows[0], rows[1:]
    names = [at for at, cell in enumerate(heading) if _METRIC.fullmatch(cell.text.strip(MARKS))]
    values = [at for at, cell in enumerate(heading) if _METRIC_VALUE.fullmatch(cell.text.strip(MARKS))]
    if len(names) != 1 or len(values) != 1 or not any(headings.figure(row[names[0]].text) for row in body):
        return rows
    (name,), (value,) = names, values
    kept = [at for at in range(len(heading)) if at not in (name, value)]
    figures = list(dict.fromkeys(row[name].text for row in body))
    results_of: dict[tuple[str, ...], dict[str, Cell]] = {}
    firsts: dict[tuple[str, ...], Sequence[Cell]] = {}
    for row in body:
        key = tuple(row[at].text for at in kept)
        while row[name].text in results_of.get(key, {}):
            # The same figure again: a repetition.
            key = (*key, "")
        results_of.setdefault(key, {})[row[name].text] = row[value]
        firsts.setdefault(key, [row[at] for at in kept])
    titles = [*(heading[at] for at in kept), *(Cell(one, heading[name].index) for one in figures)]
    lines = (
        [*first, *(results_of[key].get(one, Cell("", first[0].index)) for one in figures)]
        for key, first in firsts.items()
        if first
    )
    return [titles, *lines]


def _is_bare(cell: Cell) -> bool:
    """Whether a cell is a number and no figure, such as 95%."""
    return _BARE.match(cell.text) is not None and not headings.figure(cell.text)


@dataclass(frozen=True)
class _RowKeys:
    """What distinguishes a row."""

    connections: int | None
    label: str
    workload: str
    doubt: str


def _figure_of(text: str) -> str:
    """The figure that a text names or mentions."""
    return headings.figure(text) or headings.figure_within(text)[0]


def _figure_columns(
    heading: Sequence[Cell], body: Sequence[Sequence[Cell]], captions: Sequence[str]
) -> list[_Column]:
    """The columns with figures, each of one variant or load."""
    columns: list[_Column] = []
    unknown: list[int] = []
    for at, cell in enumerate(heading):
        text = cell.text.strip(MARKS)
        if not text or headings.is_load(text) or REPETITION.fullmatch(text):
            continue
        if name := headings.figure(text):
            columns.append(_Column(at, name, "", scale=headings.scale(text, name)))
        elif at == 0 or CHANGE.search(text):
            continue
        else:
            name, rest = headings.figure_within(text)
            if name:
                load, label = headings.load_within(rest)
                number = repetition_number(label)
                label = "" if number else label
                columns.append(_Column(at, name, label, load, headings.scale(text, name), number))
            elif any(row[at].value is not None for row in body):
                unknown.append(at)
    columns = [one for one in columns if any(row[one.place].value is not None for row in body)]
    if any(one.repetition for one in columns):
        # The mean of repetitions is none of them.
        columns = [one for one in columns if one.repetition or one.label]
    if columns or not unknown:
        return columns
    return list(_find_captions(heading, unknown, captions))


def _find_captions(
    heading: Sequence[Cell], places: Sequence[int], captions: Sequence[str]
) -> Iterator[_Column]:
    """The columns of loads, repetitions or variants, whose figure is in a caption."""
    loads = {at: load for at in places if (load := headings.load_value(heading[at].text)) is not None}
    known = list(loads.values())
    is_repeated = known == list(range(1, len(known) + 1)) and len(known) > 2
    if len(known) > 1 and (is_repeated or (len(known) == len(places) and known == sorted(set(known)))):
        figure = _caption_figure([heading[0].text, *captions])
        for number, (at, load) in enumerate(loads.items(), start=1):
            if figure:
                yield _Column(at, figure, "", None if is_repeated else load, repetition=number * is_repeated)
    elif figure := _caption_figure(captions):
        yield from (_Column(at, figure, heading[at].text.strip(MARKS)) for at in places)


def _row_results(
    row: Sequence[Cell], columns: Sequence[_Column], table: int, keys: _RowKeys
) -> Iterator[Result]:
    """The results of a row, one for each variant, workload, load and repetition in its columns."""
    groups: dict[tuple[str, str, int | None, int], dict[str, Figure]] = {}
    for column in columns:
        cell = row[column.place]
        value = cell.figure(column.figure, column.scale)
        if value is not None:
            load = column.connections if column.connections is not None else keys.connections
            label, workload = keys.label, keys.workload
            if column.label and is_workload(column.label):
                workload = ", ".join(part for part in (workload, column.label) if part)
            elif column.label and is_name(column.label):
                label = " ".join(part for part in (label, column.label) if part)
            groups.setdefault((label, workload, load, column.repetition), {}).setdefault(
                column.figure, Figure(value, cell.index)
            )
    for (label, workload, load, _), figures in groups.items():
        yield Result(
            "table",
            row[0].index,
            row[0].index,
            load,
            figures,
            workload,
            label=label,
            table=table,
            doubt=keys.doubt,
        )


def _transposed(heading: Sequence[Cell], body: Sequence[Sequence[Cell]]) -> Iterator[Result]:
    """The results of a table whose rows are figures: one for each column, and for each workload that the rows
    name.
    """
    names = [row[0].text.strip(MARKS) for row in body]
    loads = [row for text, row in zip(names, body, strict=True) if headings.is_load(text)]
    for at, cell in enumerate(heading[1:], start=1):
        if CHANGE.search(cell.text):
            continue
        figures: dict[str, dict[str, Figure]] = {}
        for text, row in zip(names, body, strict=True):
            exact = headings.figure(text)
            name, workload = (exact, "") if exact else headings.figure_within(text)
            value = row[at].figure(name, headings.scale(text, name))
            if name and value is not None:
                figures.setdefault(workload, {}).setdefault(name, Figure(value, row[at].index))
        load = headings.load_value(cell.text)
        label = "" if load is not None else cell.text.strip(MARKS)
        load = load if load is not None or not loads else headings.load_value(loads[-1][at].text)
        # Words that each figure has alone, such as "(excluding connections)", name no workload.
        workloads = {name: one for name, one in figures.items() if name} if _have_all(figures) else {}
        for workload, of_workload in (workloads or {"": _merged(figures)}).items():
            first, last = heading[0].index, body[-1][0].index
            if of_workload:
                yield Result("table", first, last, load, of_workload, workload, label=label, table=cell.index)


def _have_all(figures: Mapping[str, Mapping[str, Figure]]) -> bool:
    """Whether several workloads have the same figures."""
    names = [frozenset(one) for workload, one in figures.items() if workload]
    return len(names) > len(set(names))


def _merged(figures: Mapping[str, Mapping[str, Figure]]) -> dict[str, Figure]:
    """The first figure of each name."""
    merged: dict[str, Figure] = {}
    for one in figures.values():
        merged = {**one, **merged}
    return merged


def _caption_figure(texts: Sequence[str]) -> str:
    """The figure that the nearest of these texts mentions."""
    for text in texts:
        if name := _figure_of(text):
            return name
    return ""
