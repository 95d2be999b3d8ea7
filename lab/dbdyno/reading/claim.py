"""The sentences of a document that say which variant is better, in English and Korean.

A claim has a direction, the figure that it is about, percentages, and what it compares. The words are few and
frequent ones: a sentence that is not understood yields no claim, because a wrong reading would accuse its
author.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dbdyno.reading.document import Document
from dbdyno.reading.limits import CLAIMS_MAX, linear, whole
from dbdyno.text import compose


class About(StrEnum):
    """What a claim is about."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    EITHER = "either"

    def fits(self, *, is_throughput: bool) -> bool:
        """Whether a sentence may be about a throughput, or about another figure."""
        return self is About.EITHER or (self is About.THROUGHPUT) == is_throughput


@dataclass(frozen=True)
class Claim:
    """One sentence that compares."""

    text: str
    index: int
    # Whether it says better (True) or worse.
    is_better: bool
    about: About
    # The percentages that it names, without signs; "twice" is 100.
    percents: tuple[float, ...]
    # Whether it says that the effect is certain, large or general.
    is_strong: bool
    # Numbers of connections that it names.
    connections: tuple[int, ...]
    # Whether it says how certain it is: an interval, a deviation.
    has_interval: bool
    # Whether it speaks of what was not measured here: other machines, customers, longer runs.
    is_beyond: bool


_LATENCY = linear(r"latenc|response time|delay|round.?trip|지연|응답|대기 ?시간", re.IGNORECASE)
_THROUGHPUT = linear(
    r"throughput|(?<![a-z])(?:tps|qps|tpm)(?![a-z])|nopm|transactions?|queries per|처리량|트랜잭션|초당|쿼리 "
    r"?수",
    re.IGNORECASE,
)
_PERFORMANCE = linear(
    r"perform|\bspeed|improve|성능|속도|개선|향상|fast|slow|빠르|빨라|느리|느려", re.IGNORECASE
)
# Better and worse, whatever the sentence is about.
_BETTER = linear(
    r"\b(?:faster|better|outperform\w*|improv\w+|speed-?up|gains?|boost\w*|wins?|superior|quicker)\b|"
    r"개선|향상|빨라|빠르|빠른|뛰어나|뛰어난|우수|좋아|좋은|좋다|좋습|좋게",
    re.IGNORECASE,
)
_WORSE = linear(
    r"\b(?:slower|worse|degrad\w+|regress\w*|inferior|overhead|penalty|loses?|lost)\b|저하|느려|느리|느린|나쁘|나빠|떨어",
    re.IGNORECASE,
)
# More and less, which are better or worse depending on the figure.
_MORE = linear(r"\b(?:higher|more|increas\w+|rises?|rose|grew|highest)\b|더 많|높|증가|상승", re.IGNORECASE)
_LESS = linear(
    r"\b(?:lower|less|fewer|decreas\w+|reduc\w+|drops?|dropped|fell|shorter|lowest)\b|더 적|낮|감소|줄어|짧",
    re.IGNORECASE,
)
# Most sentences have none of these words, and are no claims.
_COMPARES = linear("|".join(entry.pattern for entry in (_BETTER, _WORSE, _MORE, _LESS)), re.IGNORECASE)
# A negated sentence says that there is no difference, or less than something: no direction.
_NEGATION = linear(r"\b(?:not|no|hardly|neither|nor|barely)\b|n't\b|않|없[는다습]|못", re.IGNORECASE)
_STRONG = linear(
    r"\b(?:always|certainly|definitely|clearly|obviously|significant\w*|dramatic\w*|proves?|must|far "
    r"better|much (?:faster|better)|"
    r"guarante\w+|in all cases|undoubtedly)\b|반드시|항상|확실|훨씬|월등|분명|명확|결론|모든 경우",
    re.IGNORECASE,
)
_BEYOND = linear(
    r"\b(?:customers?|will (?:become|be|get|improve)|would be|even more|expect\w*|production|longer)\b|"
    r"고객|운영 ?환경|전달받|것 같|지속될수록|예상|기대",
    re.IGNORECASE,
)
_INTERVAL = linear(
    r"±|\+/-|\bCI\b|confidence|interval|신뢰 ?구간|표준 ?편차|stddev|standard deviation", re.IGNORECASE
)
# What an interval says in percent, and other percentages that are no change.
_NO_CHANGE = linear(
    r"\([^()]*(?:CI|confidence|interval|신뢰)[^()]*\)|\b9\d(?:\.\d)?\s*(?:%|th)\s*(?:CI|confidence|percentile|ile)",
    re.IGNORECASE,
)
_PERCENT = linear(r"(?<!\d)(\d{1,15}+(?:\.\d{1,15}+)?)\s{0,9}+(?:%|percent|퍼센트|프로\b)", re.IGNORECASE)
_TIMES = linear(
    r"(?<!\d)(\d{1,15}+(?:\.\d{1,15}+)?)\s{0,9}+(?:x\b|times\b|배)|\b(twice|double[ds]?|두 ?배)",
    re.IGNORECASE,
)
_CONNECTIONS = linear(
    r"(?<![\d~–-])(?<!\d,)(\d[\d,]{0,20}+)\s{0,9}+(?:개(?:의)?\s{0,9}+)?(?:concurrent\s{1,9}+)?(?:threads?|connections?|clients?|users|스레드|쓰레드|커넥션)|"
    r"(?:threads?|connections?|clients?|스레드|쓰레드)\s{0,9}+(?:수)?\s{0,9}+[:=]?\s{0,9}+(\d[\d,]{0,20}+)",
    re.IGNORECASE,
)
_END = linear(
    r"(?<=[.!?。])\s++|(?<=다\.)\s*+|(?<=지만),?\s++|(?<!\s),?\s++(?=but\b|however\b|although\b|whereas\b)|;\s++"
)
_QUESTION = linear(
    r"\?\s*$|\b(?:whether|if|compare[ds]?|test(?:ed|ing)? "
    r"(?:if|whether)|question|wants?|should|recommend\w*|would have|(?:would|to be|than|as) expect(?:ed)?|"
    r"expect(?:ed|ing)? (?:that|to|it|an?|the)|supposed to)\b|"
    r"알아보|비교|테스트(?:해|한|$)|어떤|권장|하십시오|세요|수 있|때문에|가능성",
    re.IGNORECASE,
)
_WORD = linear(r"[\w.\-]+")
# Characters of a Korean word without its particles.
_KOREAN_MAX = 30
_WORDS_MIN = 3


def find_claims(document: Document, occupied: frozenset[int]) -> Iterator[Claim]:
    """The claims in the lines that are no output, command, setting or row of a table."""
    number = 0
    for index, line in document.lines():
        if (
            index in occupied
            or (" " not in line and "\t" not in line)
            or line.lstrip().startswith(("#!", "$", "--"))
            or line.count("|") > 1
        ):
            continue
        for sentence in _END.split(line):
            claim = _claim(sentence.strip(" \t#*>-=|"), index)
            if claim is None:
                continue
            number += 1
            if number > CLAIMS_MAX:
                text = compose("only the first {limit:,} sentences that compare are read", limit=CLAIMS_MAX)
                document.left_out.add("claims", document.numbers[index], text)
                return
            yield claim


def _claim(text: str, index: int) -> Claim | None:
    if not _COMPARES.search(text) or len(text.split()) < _WORDS_MIN or len(text) > 1000:
        return None
    if _QUESTION.search(text) or _NEGATION.search(text):
        return None
    about = (
        About.LATENCY
        if _LATENCY.search(text)
        else About.THROUGHPUT
        if _THROUGHPUT.search(text)
        else About.EITHER
    )
    is_better = _direction(text, about)
    if is_better is None or (about is About.EITHER and not _PERFORMANCE.search(text)):
        return None
    return Claim(
        text=text,
        index=index,
        is_better=is_better,
        about=about,
        percents=tuple(_percents(text)),
        is_strong=_STRONG.search(text) is not None,
        connections=tuple(
            number
            for match in _CONNECTIONS.finditer(text)
            if (number := whole(match[1] or match[2])) is not None
        ),
        has_interval=_INTERVAL.search(text) is not None,
        is_beyond=_BEYOND.search(text) is not None,
    )


def _direction(text: str, about: About) -> bool | None:
    """Whether the sentence says better; None if it says neither, or both."""
    better, worse = bool(_BETTER.search(text)), bool(_WORSE.search(text))
    if better == worse:
        more, less = bool(_MORE.search(text)), bool(_LESS.search(text))
        if better or more == less:
            return None
        better = less if about is About.LATENCY else more
    return better


def _percents(text: str) -> Iterator[float]:
    text = _NO_CHANGE.sub(" ", text)
    yield from (float(match[1]) for match in _PERCENT.finditer(text))
    for match in _TIMES.finditer(text):
        factor = 2.0 if match[2] else float(match[1])
        if 1 < factor <= 1000:
            yield 100 * (factor - 1)


class Subjects:
    """Tells which of some names a claim is about.

    The words of a variant are those of its name and heading that no other variant has. A word of Korean may
    have particles after it.
    """

    def __init__(self, names: Sequence[str]) -> None:
        # The name that has a word; -1 if several have it.
        self._names: dict[str, int] = {}
        for place, name in enumerate(names):
            words = {word for word in _WORD.findall(name.lower()) if not word.isdigit()}
            for word in words:
                self._names[word] = place if word not in self._names else -1

    def of(self, claim: Claim) -> int | None:
        """The place of the name that a claim is about; None if its words do not tell the names apart."""
        name = {name for word in _WORD.findall(claim.text.lower()) for name in self._known(word)}
        scores = Counter(place for word in name if (place := self._names[word]) >= 0)
        best = scores.most_common(2)
        is_clear = len(best) == 1 or (len(best) == 2 and best[0][1] > best[1][1])
        return best[0][0] if is_clear else None

    def are_named(self, claim: Claim) -> bool:
        """Whether a claim has a word of one of the names, also if several are named."""
        return any(
            self._names[name] >= 0 for word in _WORD.findall(claim.text.lower()) for name in self._known(word)
        )

    def _known(self, word: str) -> Iterator[str]:
        """The words of names that a word is, with particles if it is Korean."""
        if word in self._names:
            yield word
        if not word.isascii():
            starts = (word[:length] for length in range(2, min(len(word), _KOREAN_MAX)))
            yield from (start for start in starts if start in self._names and not start.isascii())
