"""What the headings of tables and charts mean: a load, a figure, or the name of a variant. The cells of
tables, and rows that are brought into one form: two rows of headings become one, and columns with several
numbers in a cell become several columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from dbdyno.reading.limits import decimal, linear, whole

_NAME = (
    r"thc|thds?|(?:sysbench|pgbench|client)[ _](?:threads?|connections?|clients?)|"
    r"(?:#|no\.?|n|num(?:ber)?)?[ _]{0,9}(?:of[ _])?(?:concurrent[ "
    r"_])?(?:threads?|connections?|clients?|concurrency|users|vus?|"
    r"virtual[ _]users|sessions|conns?)(?:[ _](?:count|number|num|level))?|스레드(?: 수)?|쓰레드(?: 수)?|"
    r"동시\S*(?: \S+)?|(?:연결|접속자?|세션|클라이언트|커넥션) ?수?|线程数?|多重度|[并並][发發](?:数|线程数|"
    r"连接数)?|(?:连接|客户端)数?|"
    r"スレッド数?|[並并]列数?|クライアント数?|(?:同時)?接続数?|потоки|потоков|клиент\w*|соединени\w*|число "
    r"(?:клиентов|потоков|соединений)|verbindungen|threads?anzahl|hilos|conexiones|clientes|connexions"
)
_LOAD = linear(rf"(?:{_NAME})(?:\s*+\(.{{0,200}}\))?", re.IGNORECASE)
# A load in a cell: "16", "16 threads", "threads=16", "c16".
_LOAD_VALUE = linear(
    rf"(?:(?:{_NAME})\s{{0,9}}+[=:]?\s{{0,9}}+)?(\d[\d,]{{0,20}}+)(?:\s{{0,9}}+(?:{_NAME}))?", re.IGNORECASE
)
# The words of headings, in the languages in which results are published, by what they mean. The first that
# matches counts, so phrases are before their words.
_SEPARATOR = r"[ _.\-]{0,3}"
_PERCENTILE = (
    r"(?:% ?line|퍼센타일|퍼센트|"
    r"percentil\w{0,3}|perzentil\w{0,3}|percent|pctile|pctl|pct|perc|centile|quantile|"
    r"tile|ile|%|p(?![a-z0-9])|"
    r"분위수?|백분위수?|分位[数值數點点]?|百分位[数值數]?|パーセンタイル值?|パーセント|перцентил\w{0,3}|"
    r"процентил\w{0,3})"
)
_SHARE = r"(?:\d{1,2}(?:\.\d{1,4})?|999)"
_LATENCY = (
    r"latenc(?:y|ies|ia)|latência|latence|latenz(?:zeit)?|lat|response[ _]?times?|resp(?:onse)?[ _.]?times?|"
    r"response|antwortzeit|tiempo de respuesta|temps de réponse|tempo di risposta|rt|"
    r"지연 ?시간|지연|응답 ?(?:시간|속도)|대기 ?시간|레이턴시|延[迟遲](?:时间|時間)?|响应时间|回應時間|耗时|"
    r"[时時]延|"
    r"レイテンシー?|応答時間|遅延(?:時間)?|задержк\w{0,3}|время (?:отклика|ответа)|время отклик"
)
_TRANSACTIONS = (
    r"transactions?|transaktionen|transacciones|trx|txn?s?|events?|транзакци\w{0,3}|트랜잭션|"
    r"事务|トランザクション"
)
_QUERIES = (
    r"quer(?:y|ies)|requests?|reqs?|reads|writes|selects|inserts|updates|deletes|statements?|stmts?|ops|operations|abfragen|consultas|"
    r"requêtes|"
    r"запрос\w{0,3}|쿼리|查询|クエリ"
)
_PER_S = (
    rf"(?:{_SEPARATOR}(?:/|per|pro|por|par|в){_SEPARATOR}s(?:ec(?:ond)?|egundo|econde|ek(?:unde)?)?(?![a-z])|"
    r" ?(?:/|в) ?(?:с|сек\w{0,5})(?![а-я])|数?/秒)"
)
# Words that say no more than the figure.
_GENERAL_WORDS = (
    r"throughput|performance|results?|values?|scores?|처리량|성능|吞吐量?|性能|スループット|durchsatz|"
    r"пропускн\w{0,3} способност\w{0,3}"
)
_VOCABULARY = (
    (
        "deviation",
        r"std(?:[ _.]?dev(?:iation)?)?|stdev|standard deviation|deviation|variance|jitter|표준 ?편차|标准差|"
        r"標準偏差",
    ),
    (
        "quantile",
        rf"第(?P<q1>{_SHARE}){_PERCENTILE}|"
        rf"(?:lat(?:ency)?[ _.]{{0,3}})?p[ _.\-]?(?P<q2>{_SHARE})(?:th)?(?![\d.])|"
        rf"lat(?:ency)?[ _.]{{0,3}}(?P<q3>{_SHARE})(?:th)?(?:{_SEPARATOR}{_PERCENTILE}|(?![\d.%]))|"
        rf"(?P<q4>{_SHARE})[ _\-]{{0,2}}(?:th|st|nd|rd|er|-?[йя])?{_SEPARATOR}{_PERCENTILE}"
        rf"{_SEPARATOR}(?:ile|tile)?|"
        rf"(?P<q5>{_SHARE})(?:th|st|nd|rd)(?![a-z])|"
        rf"{_PERCENTILE}[ _.(\-]{{0,3}}(?P<q6>{_SHARE})(?![\d.%])",
    ),
    ("median", r"median\w{0,2}|médiane|mediana|中央値|中位[数數]|중앙값|медиан\w{0,2}"),
    ("nopm", r"nopm|tpm-?c"),
    ("tpm", r"tpm"),
    (
        "tps",
        rf"tps|eps|초당 ?트랜잭션(?: ?수)?|每秒(?:事务|交易)数?|毎秒トランザクション数?|"
        rf"秒間トランザクション数?|(?:{_TRANSACTIONS}){_PER_S}",
    ),
    (
        "qps",
        rf"qps|rps|초당 ?쿼리(?: ?수)?|每秒(?:查询|请求)数?|毎秒クエリ数?|秒間クエリ数?|"
        rf"(?:{_QUERIES}){_PER_S}",
    ),
    ("latency", _LATENCY),
    (
        "mean",
        r"avg|average|mean|平均[值値]?|평균|durchschnitt\w{0,8}|mittelwert|mittlere?|moyenn?e?|promedio|"
        r"media|средн\w{0,3}",
    ),
    ("min", r"min(?:imum|imal\w{0,2})?|最小[值値]?|최소값?|мин\w{0,9}"),
    ("max", r"max(?:imum|imal\w{0,2})?|最大[值値]?|최대값?|макс\w{0,9}"),
    ("elapsed_s", r"elap\w{0,9}(?: time)?|total time|duration|test time"),
    ("transactions", rf"(?:number of )?(?:{_TRANSACTIONS})(?: (?:actually )?processed)?"),
    ("reads", r"reads?"),
    ("writes", r"writes?"),
    ("others", r"others?"),
    ("errors", r"err(?:or)?s?"),
    ("time", r"times?|시간|[时時][间間]|zeit|время"),
    ("query", r"quer(?:y|ies)|requests?|statements?|sql|쿼리|查询|クエリ|запрос\w{0,3}"),
    ("general", _GENERAL_WORDS),
)

_GENERAL = linear(_GENERAL_WORDS, re.IGNORECASE)
_TOKEN = linear(
    r"(?:(?<![A-Za-z0-9.])(?=[A-Za-z0-9])|(?=[^\x00-\x7f]))(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _VOCABULARY)
    + r")(?:(?<=[^\x00-\x7f])|(?<=%)|(?![A-Za-z0-9]))",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"[^\x00-\x7f]|\d|tps|qps|rps|eps|tpm|nopm|lat|resp|time|rt|avg|ave|mean|med|min|max|std|dev|jit|var|"
    r"elap|dura|trans|trx|"
    r"tx|event|read|write|other|err|quer|req|sel|st|op|per|ab|cons|mit|moy|prom|zeit|tiempo|temps|quan",
    re.IGNORECASE,
)
_QUANTILES = {50.0: "p50_ms", 95.0: "p95_ms", 99.0: "p99_ms"}
_RATES = ("nopm", "tpm", "tps", "qps")
# Figures only if the heading says nothing else: "average" of what?
_WEAK = ("elapsed_s", "errors", "reads", "writes", "others", "transactions")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIME_UNIT = (
    r"ms|msec|millis|milliseconds?|us|usec|µs|μs|microseconds?|s|sec|seconds?|毫秒|微秒|秒|밀리초|"
    r"초|ミリ秒|мс|мкс"
)
_UNIT = linear(
    rf"(?<!\s)\s*+(?:[(\[,（]\s*+({_TIME_UNIT}|/s|tps|qps)\s*+[)\]）]?|"
    r"(?:(?<![a-zA-Z0-9])|(?<=_))(ms|msec|us|usec|µs|tps|qps)|(?<=_)(s|sec))\s*+$",
    re.IGNORECASE,
)
_SECONDS = ("s", "sec", "second", "seconds", "秒", "초")
_MICROSECONDS = ("us", "usec", "µs", "μs", "microsecond", "microseconds", "微秒", "мкс")
# A unit in the middle, and what is between the words of a heading.
_INNER_UNIT = linear(rf"[(（]\s*+(?:{_TIME_UNIT})\s*+[)）]|(?<!\s)\s++[-–—:,]\s++", re.IGNORECASE)
# Words of cells come again and again.
_CACHED_MAX = 10_000
_MARKS = "*_` :\t"
_PARENTHESES = re.compile(r"\([^()]{0,500}+\)")
# Connections that tables and commands have; larger numbers are counts.
_LOAD_MAX = 20_000
# A load within a heading: "c8 SELECT", "SELECT 8 threads".
_LOAD_WITHIN = linear(
    r"\bc(\d{1,15}+)\b|\b(\d{1,15}+)\s{0,9}+(?:threads?|clients?|connections?|users|vus?|스레드|线程|并发|"
    r"接続)(?!\w)",
    re.IGNORECASE,
)


@lru_cache(_CACHED_MAX)
def is_load(text: str) -> bool:
    """Whether a heading is that of a column of loads."""
    return _LOAD.fullmatch(text.strip(_MARKS)) is not None


@lru_cache(_CACHED_MAX)
def load_value(text: str) -> int | None:
    """The number of connections in a cell; None if it has something else."""
    match = _LOAD_VALUE.fullmatch(text.strip(_MARKS))
    value = whole(match[1]) if match else None
    return value if value is not None and 0 < value <= _LOAD_MAX else None


def load_within(text: str) -> tuple[int | None, str]:
    """A load that a heading names besides other words, and these words."""
    match = _LOAD_WITHIN.search(text)
    if match is None:
        return None, text
    # What is in parentheses explains the load.
    bare = _PARENTHESES.sub(" ", text)
    inside = _LOAD_WITHIN.search(bare)
    if inside is not None:
        text, match = bare, inside
    return whole(match[1] or match[2]), " ".join(f"{text[: match.start()]} {text[match.end() :]}".split())


@lru_cache(_CACHED_MAX)
def figure(text: str) -> str:
    """The figure that a heading names and nothing else; "" if it names none."""
    if not _HINT.search(text):
        return ""
    bare = _without_unit(text)
    name, rest = _parse(bare)
    if not name and bare.isascii() and bare.isalnum():
        # "avgLatency" is one word.
        name, rest = _parse(_without_unit(_CAMEL.sub("_", bare)))
    return name if not rest else ""


@lru_cache(_CACHED_MAX)
def figure_within(text: str) -> tuple[str, str]:
    """A figure that a heading mentions besides other words, and these words: "tps" and "MySQL 8.0" of "MySQL
    8.0 (TPS)"; twice "" if it mentions none.
    """
    if not _HINT.search(text):
        return "", ""
    unit = _UNIT.search(text.strip(_MARKS))
    if unit is not None and (name := _unit_of(unit)) in ("tps", "qps"):
        before = text.strip(_MARKS)[: unit.start()]
        kinds = {match.lastgroup for match in _TOKEN.finditer(before)}
        return ("", "") if kinds & {"min", "max", "deviation"} else (name, _label(before))
    name, rest = _parse(_without_unit(text))
    return (name, rest) if name and rest else ("", "")


def _parse(text: str) -> tuple[str, str]:
    """The figure of a heading without its unit, and its words besides those for the figure."""
    tokens = [(str(match.lastgroup), match) for match in _TOKEN.finditer(text)]
    kinds = {kind for kind, _ in tokens}
    name = _name(kinds, tokens)
    used = _used(name, kinds)
    parts: list[str] = []
    end = 0
    for kind, match in tokens:
        parts.append(text[end : match.start()] if kind in used else text[end : match.end()])
        end = match.end()
    rest = _label(" ".join([*parts, text[end:]]))
    if rest and (
        name in _WEAK or (name in ("mean_ms", "min_ms", "max_ms") and not kinds & {"latency", "time"})
    ):
        return "", ""
    # "95 % reads" is a mixture of statements.
    if rest and name in _QUANTILES.values() and kinds & set(_WEAK) and "latency" not in kinds:
        return "", ""
    return (name, rest) if name else ("", "")


def _name(kinds: set[str], tokens: Sequence[tuple[str, re.Match[str]]]) -> str:
    """The figure that these kinds of words are together; "" if they are none."""
    shares = {
        float(share)
        for kind, match in tokens
        if kind == "quantile"
        for share in match.group("q1", "q2", "q3", "q4", "q5", "q6")
        if share
    }
    if "median" in kinds:
        shares.add(50.0)
    extremes = kinds & {"min", "max"}
    if "deviation" in kinds or len(shares) > 1 or len(extremes) > 1:
        return ""
    for rate in _RATES:
        if rate in kinds:
            # The highest of the intervals is no throughput of the run.
            return "" if extremes or shares else rate
    if shares:
        return _QUANTILES.get(shares.pop(), "")
    if extremes:
        return f"{extremes.pop()}_ms"
    if kinds & {"mean", "latency"}:
        return "mean_ms"
    counts = [name for name in _WEAK if name in kinds]
    return counts[0] if len(counts) == 1 else ""


def _used(name: str, kinds: set[str]) -> set[str]:
    """The kinds of words that belong to a figure; the others name what was measured."""
    used = {
        "general",
        "quantile",
        "median",
        "latency",
        "mean",
        "min",
        "max",
        "nopm",
        "tpm",
        "tps",
        "qps",
        name,
    }
    if name.endswith("_ms"):
        used |= {"time", "transactions", "query"}
    if {"reads", "writes"} <= kinds:
        used |= {"reads", "writes"}
    return used | ({"transactions"} if kinds & set(_RATES) else set())


def _label(text: str) -> str:
    """The words of a heading besides the figure; "" if they are as general as "throughput"."""
    bare = " ".join(
        text.replace("（", "(").replace("）", ")").replace("( )", " ").replace("()", " ").split()
    ).strip(" -–:,()[]（）_./")
    return "" if _GENERAL.fullmatch(bare) else bare


def scale(text: str, name: str) -> float:
    """What turns the numbers under this heading into the unit of the figure: 0.001 for "p95 (us)"."""
    match = _UNIT.search(text.strip(_MARKS))
    if match is None or not name.endswith("_ms"):
        return 1.0
    unit = _unit_of(match)
    return 1000.0 if unit in _SECONDS else 0.001 if unit in _MICROSECONDS else 1.0


def _unit_of(match: re.Match[str]) -> str:
    """The unit that was matched, in lower case."""
    return next(group for group in match.groups() if group).lower()


def _without_unit(text: str) -> str:
    """The heading without a unit at its end, unless it is nothing but a unit, such as "tps"."""
    text = " ".join(_INNER_UNIT.sub(" ", text.strip(_MARKS)).split())
    match = _UNIT.search(text)
    if match is None or not text[: match.start()].strip(" (["):
        return text
    # "TPS" is a figure and not a unit of what is before it, such as "MySQL 8.0 TPS".
    return text if _unit_of(match) in ("tps", "qps") else text[: match.start()].strip(" _")


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
        heading_unit = _UNITS.get(match["unit"] or "") if name.endswith("_ms") else None
        return self.value * (scale if heading_unit is None else heading_unit)


_SLASH = re.compile(r"\s{0,9}+/\s{0,9}+")
# "latency(avg / .95)", "new/old (TPS)", "Latency p50/p95/p99".
_IN_PARENTHESES = linear(r"([^()（）]{0,100})[(（]([^()（）]{0,100}/[^()（）]{0,100})[)）]\s*")
_BEFORE_PARENTHESES = linear(r"([^()（）]{0,200}+)([(（][^()（）]{0,100}+[)）])\s*+")
# A number that is no heading: a large one, a change, one with a deviation or with others in parentheses.
_CHANGE = re.compile(r"[+-]\d[\d.,]{0,20}+\s?%$")
_VERSION_MAX = 100
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
    if len(parts) < 2 or any(part != next(iter(parts.values())) for part in parts.values()):
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
    if all(len(title) == 1 for title in titles):
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
