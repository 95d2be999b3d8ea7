"""What the headings of tables and charts mean: a load, a figure, or the name of a variant."""

from __future__ import annotations

import re
from functools import lru_cache

from dbdyno.reading.patterns import linear, whole

_NAME = (
    r"thc|thds?|(?:#|no\.?|num(?:ber)?)?[ _]{0,9}(?:of[ _])?(?:concurrent[ "
    r"_])?(?:threads?|connections?|clients?|concurrency|users|vus?|"
    r"virtual users|sessions|conns?)|num[_ ]threads|스레드(?: 수)?|쓰레드(?: 수)?|동시\S*(?: "
    r"\S+)?|线程(?:数)?|并发(?:数|线程数|连接数)?|"
    r"スレッド数?|並列数?|クライアント数?|потоки|потоков|клиент\w*|число "
    r"(?:клиентов|потоков|соединений)|verbindungen|hilos|conexiones|clientes"
)
_LOAD = linear(rf"(?:{_NAME})(?:\s*+\(.{{0,200}}\))?", re.IGNORECASE)
# A load in a cell: "16", "16 threads", "threads=16", "c16".
_LOAD_VALUE = linear(
    rf"(?:(?:{_NAME})\s{{0,9}}+[=:]?\s{{0,9}}+)?(\d[\d,]{{0,20}}+)(?:\s{{0,9}}+(?:{_NAME}))?", re.IGNORECASE
)
_PER_S = r"\s{0,9}+(?:/|per|p)\s{0,9}+s(?:ec(?:ond)?)?\b"
_QUANTILE = r"(?:(?:p|lat\w*[ _.]*p?){0}(?:th)?|{0} ?(?:%|th)(?:ile| percentile)?(?: lat\w*)?)"
# The figures by their headings. A latency without a statistic is a mean.
_FIGURES = tuple(
    (name, linear(pattern, re.IGNORECASE))
    for name, pattern in (
        ("elapsed_s", r"elap\w*(?: time)?|total time|duration|test time"),
        ("reads", r"reads?"),
        ("writes", r"writes?"),
        ("others", r"others?"),
        ("nopm", r"nopm|tpm-?c"),
        ("tpm", r"tpm"),
        ("tps", rf"tps|eps|(?:transactions?|trx|txn?s?|events?){_PER_S}|초당 트랜잭션(?: 수)?|每秒事务数?"),
        (
            "qps",
            rf"qps|(?:quer(?:y|ies)|requests|reads|writes|selects|ops|operations){_PER_S}|"
            r"초당 쿼리(?: 수)?|每秒查询数?",
        ),
        ("p99_ms", rf"{_QUANTILE.format(99)}(?![.\d])|99분위"),
        ("p95_ms", rf"{_QUANTILE.format(95)}|95分位|95분위"),
        ("min_ms", r"(?:min(?:imum)?|最小)(?: ?(?:lat\w*+|time|response))*"),
        ("max_ms", r"(?:max(?:imum)?|最大)(?: ?(?:lat\w*+|time|response))*"),
        (
            "mean_ms",
            r"(?:avg|average|mean|平均|평균)(?:[ _.]?(?:lat\w*+|time|response|응답\S*+|延迟))*|"
            r"(?:lat\w*|응답 ?시간|延迟|レイテンシ) ?(?:평균|平均)|lat(?:ency)?(?:[ "
            r"_.]?(?:avg|average|mean))?|"
            r"response time|응답 ?시간|延迟|레이턴시|レイテンシ|задержка",
        ),
        ("errors", r"errs?|errors?"),
        ("transactions", r"(?:number of )?transactions(?: (?:actually )?processed)?"),
    )
)
# The same as a part of a longer heading.
_WITHIN = tuple(
    (name, linear(rf"(?<![\w.])(?:{one.pattern})(?![\w.])", re.IGNORECASE)) for name, one in _FIGURES
)
# Texts of which each figure in ASCII has one, in lower case.
_PARTS = (
    *(
        "elap",
        "time",
        "duration",
        "read",
        "write",
        "other",
        "nopm",
        "tpm",
        "tps",
        "eps",
        "transaction",
        "trx",
    ),
    *(
        "tx",
        "event",
        "qps",
        "quer",
        "requests",
        "selects",
        "ops",
        "operations",
        "99",
        "95",
        "min",
        "max",
        "avg",
    ),
    *("average", "mean", "lat", "response", "err"),
)
_UNIT = linear(
    r"(?<!\s)\s*+(?:[(\[,]\s*+(ms|msec|milliseconds?|us|µs|s|sec|seconds?|/s|tps|qps)\s*+[)\]]?|\b(ms|tps|qps))\s*+$",
    re.IGNORECASE,
)
# A unit in the middle, and what is between the words of a heading.
_INNER_UNIT = linear(r"\(\s*+(?:ms|msec|us|µs|s|sec)\s*+\)|(?<!\s)\s++[-–—:,]\s++", re.IGNORECASE)
# Headings that say no more than the figure.
_GENERAL = linear(r"(?:throughput|performance|result|value|score)s?", re.IGNORECASE)
# Words of cells come again and again.
_CACHED_MAX = 10_000
_MARKS = "*_` :\t"
_PARENTHESES = re.compile(r"\([^()]{0,500}+\)")
# Connections that tables and commands have; larger numbers are counts.
_LOAD_MAX = 20_000
# A load within a heading: "c8 SELECT", "SELECT 8 threads".
_LOAD_WITHIN = linear(
    r"\bc(\d{1,15}+)\b|\b(\d{1,15}+)\s{0,9}+(?:threads?|clients?|connections?|users|vus?|스레드|线程|并发|接続)(?!\w)",
    re.IGNORECASE,
)
# Statistics without a word for time are figures only without other words: "average" of what?
_BARE = linear(
    r"(?:avg|average|mean|平均|평균|min(?:imum)?|最小|max(?:imum)?|最大|errs?|errors?|reads?|writes?|others?|transactions)",
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
    if not _may_have_figure(text):
        return ""
    bare = _without_unit(text)
    return next((name for name, pattern in _FIGURES if pattern.fullmatch(bare)), "")


@lru_cache(_CACHED_MAX)
def figure_within(text: str) -> tuple[str, str]:
    """A figure that a heading mentions besides other words, and these words: "tps" and "MySQL 8.0" of "MySQL
    8.0 (TPS)"; twice "" if it mentions none.
    """
    if not _may_have_figure(text):
        return "", ""
    bare = _without_unit(text)
    unit = _UNIT.search(text.strip(_MARKS))
    if unit is not None and (name := (unit[1] or unit[2]).lower()) in ("tps", "qps"):
        return name, _label(text.strip(_MARKS)[: unit.start()])
    for name, pattern in _WITHIN:
        for match in pattern.finditer(bare):
            if _BARE.fullmatch(match[0].strip()):
                continue
            rest = f"{bare[: match.start()]} {bare[match.end() :]}"
            return name, _label(rest)
    return "", ""


def _may_have_figure(text: str) -> bool:
    """Whether a text has a part of a figure's name; quick, because most cells have none."""
    if not text.isascii():
        return True
    lower = text.lower()
    return any(part in lower for part in _PARTS)


def _label(text: str) -> str:
    """The words of a heading besides the figure; "" if they are as general as "throughput"."""
    bare = " ".join(text.replace("()", " ").split()).strip(" -–:,()[]")
    return "" if _GENERAL.fullmatch(bare) else bare


def scale(text: str, name: str) -> float:
    """What turns the numbers under this heading into the unit of the figure: 0.001 for "p95 (us)"."""
    match = _UNIT.search(text.strip(_MARKS))
    if match is None or not name.endswith("_ms"):
        return 1.0
    unit = (match[1] or match[2]).lower()
    return 1000.0 if unit.startswith("s") else 0.001 if unit in ("us", "µs") else 1.0


def _without_unit(text: str) -> str:
    """The heading without a unit at its end, unless it is nothing but a unit, such as "tps"."""
    text = " ".join(_INNER_UNIT.sub(" ", text.strip(_MARKS)).split())
    match = _UNIT.search(text)
    if match is None or not text[: match.start()].strip(" (["):
        return text
    # "TPS" is a figure and not a unit of what is before it, such as "MySQL 8.0 TPS".
    return text if (match[1] or match[2]).lower() in ("tps", "qps") else text[: match.start()].strip()
