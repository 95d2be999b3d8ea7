"""What the columns of a table are: loads, repetitions, figures, and what distinguishes its rows.

A column of words names the variant, the workload, or a condition such as the machine. Its heading says which,
or its values do; where neither does, the choice is a doubt, which the reader sees.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbdyno.reading import headings
from dbdyno.reading.patterns import linear
from dbdyno.reading.sections import says_more_than_load
from dbdyno.reading.workload_name import is_workload
from dbdyno.text import compose, join

MARKS = "*_` "
# A column that numbers the repetitions.
REPETITION = linear(
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
CHANGE = linear(
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


def repetition_number(text: str) -> int:
    """The number of the repetition that a text names and nothing else, such as "run 2" or "2회"; else 0."""
    match = _NUMBERED.fullmatch(text.strip(f"{MARKS}()"))
    return int(match[1] or match[2]) if match else 0


def is_name(text: str) -> bool:
    """Whether a text may be the name of a variant: it says more than a load."""
    return _SHORT_NAME.fullmatch(text) is not None or says_more_than_load(text)


@dataclass(frozen=True)
class Keys:
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
        names = [row[at].strip(MARKS) for at in self.variants]
        names = [name for name in names if is_name(name)] or [
            name for name in names if headings.load_value(name) is None and not repetition_number(name)
        ]
        names += [f"{heading[at].strip(MARKS)} = {row[at].strip(MARKS)}" for at in self.parameters]
        return ", ".join(names)

    def workload(self, heading: Sequence[str], row: Sequence[str]) -> str:
        """The name of the workload of a row, with its conditions; a number with its heading."""
        names = [(heading[at].strip(MARKS), row[at].strip(MARKS)) for at in self.workloads]
        return ", ".join(f"{title} = {name}" if _is_number(name) else name for title, name in names if name)


@dataclass
class _Words:
    """The columns of words, by what they name."""

    variants: list[int] = field(default_factory=list)
    workloads: list[int] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    conditions: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)


def find_times(heading: Sequence[str], body: Sequence[Sequence[str]]) -> list[int]:
    """The columns with the times of the rows, which are intervals of a run or samples."""
    return [
        at
        for at, text in enumerate(heading)
        if _TIME.fullmatch(text.strip(MARKS)) and _are_times([row[at].strip(MARKS) for row in body])
    ]


def _are_times(values: Sequence[str]) -> bool:
    """Whether values are times of day, of an epoch, or seconds with equal steps."""
    if len(set(values)) < _INTERVALS_MIN:
        return False
    if all(_CLOCK.search(value) for value in values):
        return True
    seconds = [float(match[1]) if (match := _SECONDS.fullmatch(value)) else None for value in values]
    known = [value for value in seconds if value is not None]
    if len(known) < len(values):
        return False
    steps = {round(after - before, 3) for before, after in itertools.pairwise(known) if after > before}
    return len(steps) == 1 or min(known) > _EPOCH_S


def find_keys(
    heading: Sequence[str],
    body: Sequence[Sequence[str]],
    figures: Sequence[int],
    *,
    has_labels: bool,
    times: Sequence[int] = (),
) -> Keys:
    """The columns that distinguish rows, of a table with these columns of figures; `has_labels` says that the
    headings of the figures name the variants, `times` are columns that distinguish no results.
    """
    load = _load_column(heading, body)
    words = _Words()
    parameters: list[int] = []
    for at, text in enumerate(heading):
        bare = text.strip(MARKS)
        if at in (*figures, *times) or at == load or REPETITION.fullmatch(bare) or headings.is_load(bare):
            continue
        values = [row[at].strip(MARKS) for row in body]
        if headings.figure(bare) or _is_result(bare, values, at, figures):
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
    words.others = [at for at in words.others if not any(_is_description(body, at, other) for other in named)]
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
) -> Keys:
    """Which columns of words name the variant, and which the workload."""
    variants, workloads = list(words.variants), [*words.workloads, *words.conditions]
    others = list(words.others)
    is_sure = True
    if has_labels:
        # The headings name the variants, so a row is a workload or a condition.
        is_sure = not (variants or others or words.cases)
        workloads += [*variants, *words.cases, *others]
        variants = []
    elif variants or parameters:
        is_sure = not others and not (variants and parameters and words.cases)
        workloads += [*words.cases, *others]
    elif others:
        # The last column of words is nearest to the figures.
        is_sure = len(others) == 1 and not words.cases
        variants = [others.pop()]
        workloads += [*words.cases, *others]
    elif words.cases:
        variants, workloads = [words.cases[-1]], [*workloads, *words.cases[:-1]]
    elif words.conditions:
        # Nothing else differs: the machines are compared.
        variants, workloads = list(words.conditions), list(words.workloads)
    doubt = "" if is_sure else _doubt(heading, variants, workloads, has_labels=has_labels)
    return Keys(load, variants, sorted(workloads), parameters, doubt)


def _doubt(
    heading: Sequence[str], variants: Sequence[int], workloads: Sequence[int], *, has_labels: bool
) -> str:
    def names(places: Sequence[int]) -> str:
        return join(", ", [heading[at].strip(MARKS) or compose("the first column") for at in places])

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
    named = next((at for at, text in enumerate(heading) if headings.is_load(text.strip(MARKS))), None)
    if named is not None:
        return named
    loads = [headings.load_value(row[0]) for row in body]
    known = [load for load in loads if load is not None]
    is_rising = len(known) == len(loads) > 1 and known == sorted(set(known))
    return 0 if is_rising and not heading[0].strip() else None


def _is_number(text: str) -> bool:
    return not text or _NUMBER.fullmatch(text) is not None
