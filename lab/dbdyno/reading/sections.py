"""The lines of a document that can name a variant: its headings, and short lines above results."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.reading.document import Document
from dbdyno.reading.patterns import linear

_LENGTH_MAX = 120
# What a heading says of a load or a repetition, in the languages in which outputs are published.
_LOAD_WORDS = (
    r"threads?|thds?|connections?|clients?|concurrency|users?|queries|runs?|test|bench(?:mark)?|result\w{0,64}|for|with|and|of|the|using|in|"
    r"at|running|stats?|statistics|output|num(?:ber)?|스레드|쓰레드|개|회|차|회차|테스트|결과|해석|클라이언트|线程|并发|并发数|个|测试|结果|"
    r"报告|输出|次|第|スレッド|並列|回目|結果|解釈|поток\w{0,64}|клиент\w{0,64}|соединени\w{0,64}|результат\w{0,64}|"
    r"below|is|out|put|here|are|example|x|n|="
)
_LOAD_WORD = re.compile(rf"(?<![^\W\d_])(?:{_LOAD_WORDS})(?![a-zA-Z])", re.IGNORECASE)
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
    r"^\s*(?:creating|generating|vacuuming|dropping|Creating|Inserting)\b|queries:|^\s*(?:avg|min|max|sum|total)\b.*:|"
    # A name and a value; prompts, programs and statements.
    r"^[\W_]*[\w ./()-]{1,40}(?::| =)\s*[\d.,:_\s-]+(?:ms|us|s|sec|%|kB|MB|GB|per "
    r"sec\.\))?\W*$|=[#>]|[\w~\])][#$]\s|^\s*\$\s|;\s*$|\\q|"
    r"^\W*(?:sudo|systemctl|service|mysql|psql|cat|echo|cd|docker|export|apt|yum|vi|nano|time|ulimit|SET|set)\s|^/\S+$|\(\)\s*$|^<\s"
)
_MARKDOWN = linear(r"(#{1,6})\s++(.{0,10000})")
# What headings in plain text begin with.
_MARKED = linear(r"(?<!\s)\s*+(?:#{1,6}\s|\(?\d{1,2}[.)]\s|\(?[a-zA-Z][.)]\s|[①-⑳]|\[|\*\*)")
# The number of a repetition at the end: "old, run 3".
_REPETITION = linear(
    r"(?<![\s,;:–-])[\s,;:–-]*+\(?(?:run|trial|round|iteration|repetition|회차?|次|回目)\s{0,9}+#?\s{0,9}+\d{1,15}+\)?$|(?<![\s,;:–-])[\s,;:–-]++\(?#\s?\d{1,15}+\)?$",
    re.IGNORECASE,
)
_STRIPPED = " \t#*->=:·•`_"


@dataclass(frozen=True)
class Heading:
    """The line that names what follows; `section` is the heading above it, "" without one."""

    text: str
    index: int
    section: str
    # Whether it is within a block of code, where most lines name nothing.
    is_code: bool = False


NO_HEADING = Heading("", -1, "")


class Headings:
    """Finds the heading of each result of a document."""

    def __init__(self, document: Document, occupied: frozenset[int]) -> None:
        self._texts = document.texts
        self._candidates: list[Heading] = []
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
                levels = {one: text for one, text in levels.items() if one < level}
            text = _REPETITION.sub("", line.strip(_STRIPPED))
            if index in occupied or not self._can_name(line, text):
                continue
            section = levels[max(levels)] if levels else ""
            is_code = is_fenced and not line.lstrip().startswith(("#", "--", "/*"))
            self._candidates.append(Heading(text, index, section, is_code))
            if match:
                levels[len(match[1])] = text

    def between(self, start: int, end: int) -> Heading:
        """The last heading in lines start to end - 1; one within code if there is no other."""
        first, last = (bisect_left(self._candidates, at, key=lambda one: one.index) for at in (start, end))
        candidates = self._candidates[first:last]
        outside = [one for one in candidates if not one.is_code]
        return (outside or candidates or [NO_HEADING])[-1]

    @staticmethod
    def _can_name(line: str, text: str) -> bool:
        return (
            1 < len(text) <= _LENGTH_MAX
            and not _OUTPUT.search(line)
            and says_more_than_load(text)
            and not _is_prose(line)
        )


def says_more_than_load(text: str) -> bool:
    """Whether a text has words besides those for loads and repetitions."""
    words: Sequence[str] = _WORDS.findall(_LOAD_WORD.sub(" ", text))
    return any(len(word) > 1 or not word.isascii() for word in words)


def _is_prose(line: str) -> bool:
    """Whether a line is a sentence: long, or with the end of a sentence and more than a few words."""
    words = line.split()
    is_ended = line.rstrip().endswith((".", "。", "다."))
    if _MARKED.match(line) and not is_ended:
        return False
    return len(words) > 14 or (is_ended and len(words) > 5) or line.startswith("=>")
