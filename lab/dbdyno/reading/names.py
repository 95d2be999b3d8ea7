"""What can name a variant: the headings of a document, and short lines above results; and the texts that do
not: words for loads and repetitions, and names of workloads.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dbdyno.reading.document import Document
from dbdyno.reading.limits import linear

_WORKLOAD_WORD = (
    r"oltp\w*|point|select|insert|update|delete|replace|lookup|range|scan|join|mixed|reads?|writes?|readonly|"
    r"readwrite|only|heavy|tpc[ _-]?[a-z]{0,2}|ycsb|tatp|smallbank|bulk|index|non|key|random|points|ranges|"
    r"simple|"
    r"like|workload[ _-]?[a-f]|workload|order|sum|distinct|full|table|primary|secondary|by|pk|and|selects|"
    r"inserts|updates|deletes|"
    r"읽기|쓰기|전용|혼합|조회|삽입|삭제|갱신|只读|只写|读写|点查|点选|查询|插入|更新|删除|混合|読み取り|"
    r"書き込み|読み書き|専用|参照|"
    r"чтение|запись|только"
)
_WORKLOAD = linear(
    rf"(?:(?:{_WORKLOAD_WORD})(?:(?<=[^\x00-\x7f])|(?![a-zA-Z]))[ _\-/+.,&()]{{0,3}}){{1,8}}", re.IGNORECASE
)


def is_workload(text: str) -> bool:
    """Whether a text is the name of a workload and nothing else."""
    return _WORKLOAD.fullmatch(text.strip("*_` ")) is not None


_LENGTH_MAX = 120
# Of a line that ends with a colon, or is marked as a heading.
_MARKED_LENGTH_MAX = 400
# What a heading says of a load or a repetition, in the languages in which outputs are published.
_LOAD_WORDS = (
    r"threads?|thds?|connections?|clients?|concurrency|users?|queries|runs?|test|bench(?:mark)?|"
    r"result\w{0,64}|for|with|and|of|the|using|in|"
    r"at|running|stats?|statistics|output|num(?:ber)?|스레드|쓰레드|개|회|차|회차|테스트|결과|해석|"
    r"클라이언트|线程|并发|并发数|个|测试|结果|"
    r"报告|输出|次|第|スレッド|並列|回目|結果|解釈|поток\w{0,64}|клиент\w{0,64}|соединени\w{0,64}|"
    r"результат\w{0,64}|"
    r"below|is|was|out|put|here|are|example|x|n|=|again|once|more|then|next|first|second|third|fourth|fifth|"
    r"sixth|same|it|"
    r"this|that|we|ran|rerun|repeat\w{0,64}|another|time|times|repetition|trial|round|iteration|command|"
    r"commands|data|"
    r"sysbench|pgbench|mysqlslap|다시|한번|더|첫|두|세|번째|반복|再|もう一度|снова|запуск"
)
_LOAD_WORD = re.compile(
    rf"(?:(?<![^\W\d_])(?=[\x00-\x7f])|(?=[^\x00-\x7f]))(?:{_LOAD_WORDS})(?![a-zA-Z])", re.IGNORECASE
)
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_SIZE = re.compile(r"\d[KMGT](?![a-zA-Z])")
_WORDS = re.compile(r"[^\W\d_]++")
# What tools and shells print, and lines of files.
_OUTPUT = linear(
    r"FATAL|ALERT|ERROR|Running the test with|Initializing|Threads started|sysbench \d|Number of "
    r"threads|Prewarming|Report intermediate|"
    r"^\W*\[ *\d+ ?s|rows? in set|^\s*mysql>|^\s*\+[-+]+\+|starting vacuum|pgbench \(|transaction "
    r"type:|scaling factor:|query mode:|"
    r"number of (?:clients|threads|transactions)|duration:|Running benchmark for "
    r"engine|^\W*progress|^WARNING|^\s*Benchmark\s*$|"
    r"^\s*[-=*_]{3,}\s*$|[Dd]one[. ]|^Query OK|^!\[|^\s*\||^\(\d+ rows?\)|[Pp]assword|\bVuser \d|last "
    r"message repeated|seed is|Time limit|"
    r"^\s*(?:creating|generating|vacuuming|dropping|Creating|Inserting)\b|queries:|^\s*(?:avg|min|max|sum|"
    r"total)\b.*:|"
    # A name and a value; prompts, programs and statements.
    r"^[\W_]*[\w ./()-]{1,40}(?::| =)\s*[\d.,:_\s-]+(?:ms|us|s|sec|%|kB|MB|GB|per "
    r"sec\.\)|/s(?:ec)?)?\W*$|Report checkpoint|Target transaction rate|^Scale option ignored|"
    r"^\W*\[(?:Summary|Current|OVERALL|READ|UPDATE|INSERT|SCAN|CLEANUP|TOTAL_)|\bTerm-\d\d|^\s*\d+, trx:|"
    r"^(?:RAMP-UP|MEASURING|STOPPING)\b|^\W*<[A-Z]\w+(?: \w+)?>|=[#>]|[\w~\])][#$]\s|^\s*\$\s|;\s*$|"
    r"\\q|"
    r"^\W*(?:sudo|systemctl|service|mysql|psql|cat|echo|cd|docker|export|apt|yum|vi|nano|time|ulimit|SET|"
    r"set)\s|^/\S+$|\(\)\s*$|^<\s"
)
_MARKDOWN = linear(r"(#{1,6})\s++(.{0,10000})")
# What headings in plain text begin with.
_MARKED = linear(r"(?<!\s)\s*+(?:[*+\-]\s++)?(?:#{1,6}\s|\(?\d{1,2}[.)]\s|\(?[a-zA-Z][.)]\s|[①-⑳]|\[|\*\*)")
# The number of a repetition at the end: "old, run 3".
_REPETITION = linear(
    r"(?<![\s,;:–-])[\s,;:–-]*+\(?(?:run|trial|round|iteration|repetition|회차?|次|"
    r"回目)\s{0,9}+#?\s{0,9}+\d{1,15}+\)?$|(?<![\s,;:–-])[\s,;:–-]++\(?#\s?\d{1,15}+\)?$",
    re.IGNORECASE,
)
# A load in a heading: "old, 16 threads".
_LOAD = linear(
    r"(?<![\w.])(?:at|with|using|for|on)?\s{0,9}+\(?(?:\d[\d,]{0,9}+\s{0,9}+(?:concurrent\s)?(?:threads?|"
    r"thds?|connections?|clients?|users?|vus?|"
    r"virtual users|스레드|쓰레드|线程|并发|スレッド|接続|поток\w{0,3}|клиент\w{0,3})|(?:threads?|thds?|"
    r"connections?|clients?|users?|"
    r"concurrency|스레드|쓰레드|线程|并发|スレッド)\s{0,9}+[=:]?\s{0,9}+\d[\d,]{0,9}+)(?![\w.])\)?",
    re.IGNORECASE,
)
_RUN = linear(
    r"(?:run|trial|round|iteration|repetition|회차?|次|回目)\s{0,3}#?\s{0,3}\d|\d\s{0,3}(?:회|次|回目)",
    re.IGNORECASE,
)
# Lines above a result that belong to it.
_NEAR = 10
_STRIPPED = " \t#*->=:·•`_"


# The ranks of a line of code, and of a sentence, above a result.
CODE = 2
SENTENCE = 3


@dataclass(frozen=True)
class Heading:
    """The line that names what follows; `section` is the heading above it, "" without one."""

    text: str
    index: int
    section: str
    # 0 for a line of the document, 1 for a comment in a block of code, 2 for another line of it, where most
    # lines name nothing, 3 for a sentence.
    rank: int = 0


NO_HEADING = Heading("", -1, "")


class Headings:
    """Finds the heading of each result of a document."""

    def __init__(self, document: Document, occupied: frozenset[int]) -> None:
        self._document, self._occupied = document, occupied

    @cached_property
    def _candidates(self) -> Sequence[Heading]:
        """All lines that may be a heading, in order. A document without results needs none."""
        document, candidates = self._document, []
        # The Markdown headings that are open, by level.
        levels: dict[int, str] = {}
        is_fenced = False
        for index, line in document.lines():
            if line.lstrip().startswith("```"):
                is_fenced = not is_fenced
                continue
            match = None if is_fenced else _MARKDOWN.match(line)
            if match:
                level = len(match[1])
                levels = {entry: text for entry, text in levels.items() if entry < level}
            text = line.strip(_STRIPPED)
            if index in self._occupied or len(text) < 2 or not _LETTER.search(text) or _OUTPUT.search(line):
                # Most lines of results have only numbers.
                continue
            if _DIGIT.search(text):
                text = _without_load(_REPETITION.sub("", text))
            if not says_more_than_load(text):
                continue
            rank = SENTENCE if _is_prose(line) or not 1 < len(text) <= _length_max(line) else 0
            if is_fenced and not rank:
                rank = 1 if line.lstrip().startswith(("#", "--", "/*")) else CODE
            if document.is_script and line.lstrip().startswith("#"):
                # A comment of a script says what the script does, not what a result is of.
                continue
            section = levels[max(levels)] if levels else ""
            candidates.append(Heading(text[:_MARKED_LENGTH_MAX], index, section, rank))
            if match:
                levels[len(match[1])] = text
        return candidates

    @cached_property
    def _comments(self) -> Counter[str]:
        """How often each comment in a block of code occurs."""
        return Counter(candidate.text for candidate in self._candidates if candidate.rank == 1)

    def between(self, start: int, end: int) -> tuple[Heading, str]:
        """The last heading in lines start to end - 1, and the workload that another one names. A comment in
        code counts if it occurs once; another line of code or a sentence if there is nothing else.
        """
        first, last = (
            bisect_left(self._candidates, at, key=lambda candidate: candidate.index) for at in (start, end)
        )
        ranked = sorted(
            self._candidates[first:last], key=lambda candidate: (candidate.rank, -candidate.index)
        )
        workloads = [
            entry for entry in ranked if entry.rank < CODE and is_workload(_without_general(entry.text))
        ]
        others = [entry for entry in ranked if entry not in workloads]
        best = next(iter(others), NO_HEADING)
        comments = (entry for entry in others if entry.rank == 1 and self._comments[entry.text] == 1)
        comment = next(comments, NO_HEADING)
        best = comment if comment.index > best.index else best
        if not workloads:
            return best, ""
        if best.rank == SENTENCE or best is NO_HEADING:
            best = replace(workloads[0], text=workloads[0].section, section="", rank=0)
        return best, workloads[0].text

    def has_run_number(self, start: int, end: int) -> bool:
        """Whether a line from start to end - 1 has the number of a repetition."""
        return any(_RUN.search(self._document.texts[index]) for index in range(max(start, end - _NEAR), end))


def _without_general(text: str) -> str:
    return " ".join(_LOAD_WORD.sub(" ", text).split()).strip(" :()")


def _length_max(line: str) -> int:
    return _MARKED_LENGTH_MAX if _MARKED.match(line) or _ends_with_colon(line) else _LENGTH_MAX


def _ends_with_colon(line: str) -> bool:
    return line.rstrip(" \t*_").endswith((":", "："))


def _without_load(text: str) -> str:
    """A heading without the load that it names, unless it says nothing else."""
    bare = _LOAD.sub(" ", text)
    if bare == text:
        return text
    bare = " ".join(bare.split()).strip(_STRIPPED + ",;()")
    return bare if says_more_than_load(bare) else text


def says_more_than_load(text: str) -> bool:
    """Whether a text has words besides those for loads and repetitions."""
    words: Sequence[str] = _WORDS.findall(_LOAD_WORD.sub(" ", text))
    return any(len(word) > 1 or not word.isascii() for word in words) or _SIZE.search(text) is not None


def _is_prose(line: str) -> bool:
    """Whether a line is a sentence: long, or with the end of a sentence and more than a few words."""
    words = line.split()
    is_ended = line.rstrip().endswith((".", "。", "다."))
    if (_MARKED.match(line) and not is_ended) or _ends_with_colon(line):
        return False
    return len(words) > 14 or (is_ended and len(words) > 5) or line.startswith("=>")
