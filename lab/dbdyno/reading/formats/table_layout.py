"""The layouts of tables: what their rows and columns are.

- a row is a load, a column a figure: `| threads | TPS | p95 |`
- a row is a load, a column a variant: `| threads | MySQL 5.7 | MySQL 8.0 |`, the figure in the caption or in
the heading `MySQL 8.0 (TPS)`
- a row is a variant, a workload or both, a column a figure: `| server | workload | TPS | p95 |`, or a load:
`| server | 1 | 16 | 64 |`
- a row is a figure, a column a load or a variant: `| | before | after |`

A column of words names the variant, the workload, or a condition such as the machine. Its heading says which,
or its values do; where neither does, the choice is a doubt, which the reader sees.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.reading.formats import table_headings
from dbdyno.reading.formats.table_headings import Cell, is_datum, one_heading, single_values
from dbdyno.reading.limits import linear
from dbdyno.reading.names import is_workload, says_more_than_load
from dbdyno.reading.result import Figure, Result
from dbdyno.text import compose, join

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
    if (
        has_bars
        and len(rows[0]) == 2
        and table_headings.figure(rows[0][0].text)
        and rows[0][1].value is not None
    ):
        # Names and values without a heading.
        rows = [[Cell("", rows[0][0].index)] * 2, *rows]
    rows = _pivot(single_values(one_heading(rows)))
    heading, body = rows[0], rows[1:]
    if not any(cell.value is not None for cell in body[0][1:]):
        # A heading of several rows: the last one counts.
        return
    if heading[0].value is not None or any(map(is_datum, heading)):
        return
    if not has_bars and any(
        _BARE.match(cell.text) and not table_headings.figure(cell.text) for cell in heading
    ):
        return
    is_keyed = _REPETITION.fullmatch(heading[0].text.strip()) or table_headings.is_load(heading[0].text)
    has_figures = any(table_headings.figure(cell.text) for cell in heading[1:])
    if has_bars and not is_keyed and not has_figures and any(_figure_of(row[0].text) for row in body):
        yield from _transposed(heading, body)
        return
    titles = [cell.text for cell in heading]
    texts = [[cell.text for cell in row] for row in body]
    if set(titles) >= _SAMPLES:
        return
    times = _find_times(titles, texts)
    columns = [column for column in _figure_columns(heading, body, captions) if column.place not in times]
    has_labels = any(_is_name(column.label) and not is_workload(column.label) for column in columns)
    places = [column.place for column in columns]
    keys = _find_keys(titles, texts, places, has_labels=has_labels, times=times)
    for row, words in zip(body, texts, strict=True):
        load = table_headings.load_value(words[keys.load]) if keys.load is not None else None
        if load is None and keys.load == 0 and all(column.connections is None for column in columns):
            # A row of means.
            continue
        workload = keys.workload(titles, words)
        if load is None and keys.load is not None and words[keys.load]:
            # A load that is no number, such as 64 * 4.
            workload = ", ".join(part for part in (workload, words[keys.load].strip(_MARKS)) if part)
        row_keys = _RowKeys(load, keys.label(titles, words), workload, keys.doubt)
        yield from _row_results(row, columns, heading[0].index, row_keys)


def _pivot(rows: Sequence[Sequence[Cell]]) -> Sequence[Sequence[Cell]]:
    """A table with a row for each figure of a result, as one with a column for each figure."""
    heading, body = rows[0], rows[1:]
    names = [at for at, cell in enumerate(heading) if _METRIC.fullmatch(cell.text.strip(_MARKS))]
    values = [at for at, cell in enumerate(heading) if _METRIC_VALUE.fullmatch(cell.text.strip(_MARKS))]
    if (
        len(names) != 1
        or len(values) != 1
        or not any(table_headings.figure(row[names[0]].text) for row in body)
    ):
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
    titles = [*(heading[at] for at in kept), *(Cell(figure, heading[name].index) for figure in figures)]
    lines = (
        [*first, *(results_of[key].get(figure, Cell("", first[0].index)) for figure in figures)]
        for key, first in firsts.items()
        if first
    )
    return [titles, *lines]


@dataclass(frozen=True)
class _RowKeys:
    """What distinguishes a row."""

    connections: int | None
    label: str
    workload: str
    doubt: str


def _figure_of(text: str) -> str:
    """The figure that a text names or mentions."""
    return table_headings.figure(text) or table_headings.figure_within(text)[0]


def _figure_columns(
    heading: Sequence[Cell], body: Sequence[Sequence[Cell]], captions: Sequence[str]
) -> list[_Column]:
    """The columns with figures, each of one variant or load."""
    columns: list[_Column] = []
    unknown: list[int] = []
    for at, cell in enumerate(heading):
        text = cell.text.strip(_MARKS)
        if not text or table_headings.is_load(text) or _REPETITION.fullmatch(text):
            continue
        if name := table_headings.figure(text):
            columns.append(_Column(at, name, "", scale=table_headings.scale(text, name)))
        elif at == 0 or _CHANGE.search(text):
            continue
        else:
            name, rest = table_headings.figure_within(text)
            if name:
                load, label = table_headings.load_within(rest)
                number = _repetition_number(label)
                label = "" if number else label
                columns.append(_Column(at, name, label, load, table_headings.scale(text, name), number))
            elif any(row[at].value is not None for row in body):
                unknown.append(at)
    columns = [column for column in columns if any(row[column.place].value is not None for row in body)]
    if any(column.repetition for column in columns):
        # The mean of repetitions is none of them.
        columns = [column for column in columns if column.repetition or column.label]
    if columns or not unknown:
        return columns
    return list(_find_captions(heading, unknown, captions))


def _find_captions(
    heading: Sequence[Cell], places: Sequence[int], captions: Sequence[str]
) -> Iterator[_Column]:
    """The columns of loads, repetitions or variants, whose figure is in a caption."""
    loads = {at: load for at in places if (load := table_headings.load_value(heading[at].text)) is not None}
    known_loads = list(loads.values())
    is_repeated = known_loads == list(range(1, len(known_loads) + 1)) and len(known_loads) > 2
    if len(known_loads) > 1 and (
        is_repeated or (len(known_loads) == len(places) and known_loads == sorted(set(known_loads)))
    ):
        figure = _caption_figure([heading[0].text, *captions])
        for number, (at, load) in enumerate(loads.items(), start=1):
            if figure:
                yield _Column(at, figure, "", None if is_repeated else load, repetition=number * is_repeated)
    elif figure := _caption_figure(captions):
        yield from (_Column(at, figure, heading[at].text.strip(_MARKS)) for at in places)


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
            elif column.label and _is_name(column.label):
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
    names = [row[0].text.strip(_MARKS) for row in body]
    loads = [row for text, row in zip(names, body, strict=True) if table_headings.is_load(text)]
    for at, cell in enumerate(heading[1:], start=1):
        if _CHANGE.search(cell.text):
            continue
        figures: dict[str, dict[str, Figure]] = {}
        for text, row in zip(names, body, strict=True):
            exact = table_headings.figure(text)
            name, workload = (exact, "") if exact else table_headings.figure_within(text)
            value = row[at].figure(name, table_headings.scale(text, name))
            if name and value is not None:
                figures.setdefault(workload, {}).setdefault(name, Figure(value, row[at].index))
        load = table_headings.load_value(cell.text)
        label = "" if load is not None else cell.text.strip(_MARKS)
        load = load if load is not None or not loads else table_headings.load_value(loads[-1][at].text)
        # Words that each figure has alone, such as "(excluding connections)", name no workload.
        workloads = {name: figure for name, figure in figures.items() if name} if _have_all(figures) else {}
        for workload, of_workload in (workloads or {"": _merged(figures)}).items():
            first, last = heading[0].index, body[-1][0].index
            if of_workload:
                yield Result("table", first, last, load, of_workload, workload, label=label, table=cell.index)


def _have_all(figures: Mapping[str, Mapping[str, Figure]]) -> bool:
    """Whether several workloads have the same figures."""
    names = [frozenset(figure) for workload, figure in figures.items() if workload]
    return len(names) > len(set(names))


def _merged(figures: Mapping[str, Mapping[str, Figure]]) -> dict[str, Figure]:
    """The first figure of each name."""
    merged: dict[str, Figure] = {}
    for figure in figures.values():
        merged = {**figure, **merged}
    return merged


def _caption_figure(texts: Sequence[str]) -> str:
    """The figure that the nearest of these texts mentions."""
    for text in texts:
        if name := _figure_of(text):
            return name
    return ""


_MARKS = "*_` "
# A column that numbers the repetitions.
_REPETITION = linear(
    r"(?:runs?|trial|iteration|round|rep(?:eat|etition|licate)?|block|attempt|sample|no\.?|#|회차|횟수|반복|"
    r"次数?|轮次|回数?|試行|"
    r"прогон|повтор|durchlauf|essai)[\s_]*(?:#|no\.?|id|"
    r"number|num)?",
    re.IGNORECASE,
)
_NUMBERED = linear(
    r"(?:(?:run|trial|iteration|round|test|第|#|no\.?)[ _#]?(\d{1,3})(?:[回次])?|"
    r"(\d{1,3})(?:st|nd|rd|th)? ?(?:회차?|차|次|回目?|run|round))",
    re.IGNORECASE,
)
# A column of changes is no figure of a variant.
_CHANGE = linear(
    r"(?<!\d)\s?%|diff|change|gain|improvement|ratio|speed-?up|delta|증가|향상|차이|提升|增加|差",
    re.IGNORECASE,
)
_WORKLOAD = linear(
    r"workload(?: type| name)?|benchmark|script|quer(?:y|ies)(?: type)?|operations?|statements?|"
    r"transaction type|"
    r"워크로드|쿼리|작업|부하|负载|查询|ワークロード|クエリ|нагрузка|запрос|lastprofil|charge|carga",
    re.IGNORECASE,
)
# These name a workload only if the values do, or if another column names the variant.
_CASE = linear(
    r"(?:test|case|scenario|step|phase|mode|profile)(?: ?(?:name|case|type))?|테스트|시나리오|测试(?:场景|"
    r"类型|项目?)?|场景|"
    r"テスト|シナリオ|тест|сценарий",
    re.IGNORECASE,
)
_VARIANT = linear(
    r"(?:variant|server|versions?|config(?:uration)?|settings?|(?:storage )?engine|database|db|dbms|product|"
    r"system|"
    r"build|branch|name|setup|label|parameter|instance)(?: (?:name|version|type|class))?|"
    r"버전|서버|설정|구성|版本|配置|服务器|数据库|バージョン|設定|構成|サーバー?|версия|сервер|конфигурация|"
    r"variante|versión",
    re.IGNORECASE,
)
_CONDITION = linear(
    r"(?:environment|env|machine|host|hardware|region|cloud|provider|platform|os|data ?set|location|site|"
    r"(?:table|data(?:base|set)?)[ _]?size|(?:table|row|record)s?[ _]?count|rows|records|warehouses|"
    r"scale(?:[ _]factor)?)"
    r"(?: (?:name|type))?|数据量|表大小|데이터 ?크기|환경|장비|环境|机器|環境|マシン|среда|umgebung|entorno|"
    r"environnement",
    re.IGNORECASE,
)
_REMARK = linear(
    r"notes?|comments?|remarks?|dates?|time(?:stamp)?|when|started?|ended?|비고|날짜|备注|日期|備考|日付|"
    r"дата|commit|sha|url|link",
    re.IGNORECASE,
)
# The time of a row, and what it looks like.
_TIME = linear(
    r"(?:elapsed[ _]?)?times?(?:[ _-]?stamp)?|elapsed|sec(?:ond)?s?|minutes?|t|ts|interval|"
    r"(?:time|elapsed|interval)?[ _]?[(\[]\s*(?:s|sec|seconds|min|minutes)\s*[)\]]|"
    r"(?:time|elapsed)[ _](?:s|sec|secs|seconds|ms)|시간|경과(?: ?시간)?|시각|[時时][间間刻]|"
    r"経過(?:時間)?|秒|время",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_SECONDS = re.compile(r"[tT]?=?(\d{1,15}(?:\.\d{1,9})?)\s?(?:s|sec|seconds|min|m)?")
_EPOCH_S = 1e9
# Rows that are intervals are more than two.
_INTERVALS_MIN = 3
_UTILISATION = linear(r"cpu|util|disk|iops|mem(?:ory)?|network|load avg|%|사용률|使用率", re.IGNORECASE)
_CHANGES = re.compile(r"[~≈]?[-+−–]?\s?\d[\d.,]{0,20}+\s?%\W{0,3}")
_NUMBER = re.compile(r"[-+]?[\d., ]{1,40}+(?:[kKMGT]i?B?|ms|s|%)?")
# A variant that is called A, or v1.0.8.
_SHORT_NAME = re.compile(r"[A-Za-z]|[vV]?\d{1,4}(?:\.\d{1,4}){1,3}")


def _repetition_number(text: str) -> int:
    """The number of the repetition that a text names and nothing else, such as "run 2" or "2회"; else 0."""
    match = _NUMBERED.fullmatch(text.strip(f"{_MARKS}()"))
    return int(match[1] or match[2]) if match else 0


def _is_name(text: str) -> bool:
    """Whether a text may be the name of a variant: it says more than a load."""
    return _SHORT_NAME.fullmatch(text) is not None or says_more_than_load(text)


@dataclass(frozen=True)
class _Keys:
    """The columns that distinguish the rows of a table, by their places."""

    load: int | None = None
    variants: Sequence[int] = ()
    workloads: Sequence[int] = ()
    # Columns of numbers, such as the size of the pool: the variant is "size = 8".
    parameters: Sequence[int] = ()
    # What was taken for what, if the table does not say it.
    doubt: str = ""

    def label(self, heading: Sequence[str], row: Sequence[str]) -> str:
        """The name of the variant of a row."""
        names = [row[at].strip(_MARKS) for at in self.variants]
        names = [name for name in names if _is_name(name)] or [
            name for name in names if table_headings.load_value(name) is None and not _repetition_number(name)
        ]
        names += [f"{heading[at].strip(_MARKS)} = {row[at].strip(_MARKS)}" for at in self.parameters]
        return ", ".join(names)

    def workload(self, heading: Sequence[str], row: Sequence[str]) -> str:
        """The name of the workload of a row, with its conditions; a number with its heading."""
        names = [(heading[at].strip(_MARKS), row[at].strip(_MARKS)) for at in self.workloads]
        return ", ".join(f"{title} = {name}" if _is_number(name) else name for title, name in names if name)


@dataclass
class _Words:
    """The columns of words, by what they name."""

    variants: list[int] = field(default_factory=list)
    workloads: list[int] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    conditions: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)


def _find_times(heading: Sequence[str], body: Sequence[Sequence[str]]) -> list[int]:
    """The columns with the times of the rows, which are intervals of a run or samples."""
    return [
        at
        for at, text in enumerate(heading)
        if _TIME.fullmatch(text.strip(_MARKS)) and _are_times([row[at].strip(_MARKS) for row in body])
    ]


def _are_times(values: Sequence[str]) -> bool:
    """Whether values are times of day, of an epoch, or seconds with equal steps."""
    if len(set(values)) < _INTERVALS_MIN:
        return False
    if all(_CLOCK.search(value) for value in values):
        return True
    seconds = [float(match[1]) if (match := _SECONDS.fullmatch(value)) else None for value in values]
    known_seconds = [value for value in seconds if value is not None]
    if len(known_seconds) < len(values):
        return False
    steps = {
        round(after - before, 3) for before, after in itertools.pairwise(known_seconds) if after > before
    }
    return len(steps) == 1 or min(known_seconds) > _EPOCH_S


def _find_keys(
    heading: Sequence[str],
    body: Sequence[Sequence[str]],
    figures: Sequence[int],
    *,
    has_labels: bool,
    times: Sequence[int] = (),
) -> _Keys:
    """The columns that distinguish rows, of a table with these columns of figures; `has_labels` says that the
    headings of the figures name the variants, `times` are columns that distinguish no results.
    """
    load = _load_column(heading, body)
    words = _Words()
    parameters: list[int] = []
    for at, text in enumerate(heading):
        bare = text.strip(_MARKS)
        if (
            at in (*figures, *times)
            or at == load
            or _REPETITION.fullmatch(bare)
            or table_headings.is_load(bare)
        ):
            continue
        values = [row[at].strip(_MARKS) for row in body]
        if table_headings.figure(bare) or _is_result(bare, values, at, figures):
            continue
        if len(set(values)) == 1 and len(values) > 1 and at:
            # The same in all rows: it distinguishes none.
            continue
        if all(_is_number(value) for value in values):
            is_condition = _CONDITION.fullmatch(bare) is not None
            is_named = at == 0 or _VARIANT.fullmatch(bare) is not None or len(set(values)) < len(values)
            is_before = at < min(figures, default=0) and not _UTILISATION.search(bare)
            if bare and (is_named or is_condition) and is_before:
                (words.conditions if is_condition else parameters).append(at)
        elif not _REMARK.fullmatch(bare):
            _place(words, at, bare, values)
    named = [*words.workloads, *words.variants, *words.conditions, *words.cases]
    words.others = [at for at in words.others if not any(_is_description(body, at, place) for place in named)]
    keys = _keys(heading, words, load, parameters, has_labels=has_labels)
    doubt = compose("the rows are taken for intervals or samples of one run each") if times else keys.doubt
    return replace(keys, doubt=doubt)


def _is_result(heading: str, values: Sequence[str], at: int, figures: Sequence[int]) -> bool:
    """Whether a column has changes, or follows the figures without a heading."""
    has_changes = any(values) and all(_CHANGES.fullmatch(value) for value in values if value)
    return has_changes or (not heading and at > max(figures, default=at))


def _is_description(body: Sequence[Sequence[str]], at: int, of: int) -> bool:
    """Whether a column says in other words what another column names."""
    pairs = {(row[at], row[of]) for row in body}
    return len(pairs) == len({row[at] for row in body}) == len({row[of] for row in body})


def _place(words: _Words, at: int, heading: str, values: Sequence[str]) -> None:
    """Adds a column of words to those that name the same."""
    if _WORKLOAD.fullmatch(heading) or all(is_workload(value) for value in values if value):
        words.workloads.append(at)
    elif _CASE.fullmatch(heading):
        words.cases.append(at)
    elif _CONDITION.fullmatch(heading):
        words.conditions.append(at)
    elif _VARIANT.fullmatch(heading):
        words.variants.append(at)
    else:
        words.others.append(at)


def _keys(
    heading: Sequence[str], words: _Words, load: int | None, parameters: Sequence[int], *, has_labels: bool
) -> _Keys:
    """Which columns of words name the variant, and which the workload."""
    variants, workloads = list(words.variants), [*words.workloads, *words.conditions]
    others = list(words.others)
    is_clear = True
    if has_labels:
        # The headings name the variants, so a row is a workload or a condition.
        is_clear = not (variants or others or words.cases)
        workloads += [*variants, *words.cases, *others]
        variants = []
    elif variants or parameters:
        is_clear = not others and not (variants and parameters and words.cases)
        workloads += [*words.cases, *others]
    elif others:
        # The last column of words is nearest to the figures.
        is_clear = len(others) == 1 and not words.cases
        variants = [others.pop()]
        workloads += [*words.cases, *others]
    elif words.cases:
        variants, workloads = [words.cases[-1]], [*workloads, *words.cases[:-1]]
    elif words.conditions:
        # Nothing else differs: the machines are compared.
        variants, workloads = list(words.conditions), list(words.workloads)
    doubt = "" if is_clear else _doubt(heading, variants, workloads, has_labels=has_labels)
    return _Keys(load, variants, sorted(workloads), parameters, doubt)


def _doubt(
    heading: Sequence[str], variants: Sequence[int], workloads: Sequence[int], *, has_labels: bool
) -> str:
    def names(places: Sequence[int]) -> str:
        return join(", ", [heading[at].strip(_MARKS) or compose("the first column") for at in places])

    if has_labels:
        return compose(
            "the headings of the table's figures are taken for variants, and {columns} for workloads",
            columns=names(workloads),
        )
    return compose(
        "{variants} is taken for the variant, and {columns} for the workload",
        variants=names(variants) or compose("the heading above the table"),
        columns=names(workloads),
    )


def _load_column(heading: Sequence[str], body: Sequence[Sequence[str]]) -> int | None:
    named = next((at for at, text in enumerate(heading) if table_headings.is_load(text.strip(_MARKS))), None)
    if named is not None:
        return named
    loads = [table_headings.load_value(row[0]) for row in body]
    known_loads = [load for load in loads if load is not None]
    is_rising = len(known_loads) == len(loads) > 1 and known_loads == sorted(set(known_loads))
    return 0 if is_rising and not heading[0].strip() else None


def _is_number(text: str) -> bool:
    return not text or _NUMBER.fullmatch(text) is not None
