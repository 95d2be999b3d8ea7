"""The sentences of a document that say which variant is better, in English and Korean.

A claim has a direction, the figure that it is about, percentages, and what it compares. The words are few and
frequent ones: a sentence that is not understood yields no claim, because a wrong reading would accuse its
author.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dbdyno.reading.document import Document


class About(StrEnum):
    """What a claim is about."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    EITHER = "either"


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
    # Whether it says that the effect grows with a setting: "the more instances, the faster".
    grows: bool
    # Whether it says how certain it is: an interval, a deviation.
    has_interval: bool
    # Whether it speaks of what was not measured here: other machines, customers, longer runs.
    is_beyond: bool


_LATENCY = re.compile(r"latenc|response time|delay|round.?trip|지연|응답|대기 ?시간", re.IGNORECASE)
_THROUGHPUT = re.compile(
    r"throughput|(?<![a-z])(?:tps|qps|tpm)(?![a-z])|nopm|transactions?|queries per|처리량|트랜잭션|초당|쿼리 "
    r"?수",
    re.IGNORECASE,
)
_PERFORMANCE = re.compile(
    r"perform|\bspeed|improve|성능|속도|개선|향상|fast|slow|빠르|빨라|느리|느려", re.IGNORECASE
)
# Better and worse, whatever the sentence is about.
_BETTER = re.compile(
    r"\b(?:faster|better|outperform\w*|improv\w+|speed-?up|gains?|boost\w*|wins?|superior|quicker)\b|"
    r"개선|향상|빨라|빠르|빠른|뛰어나|뛰어난|우수|좋아|좋은|좋다|좋습|좋게",
    re.IGNORECASE,
)
_WORSE = re.compile(
    r"\b(?:slower|worse|degrad\w+|regress\w*|inferior|overhead|penalty|loses?|lost)\b|저하|느려|느리|느린|나쁘|나빠|떨어",
    re.IGNORECASE,
)
# More and less, which are better or worse depending on the figure.
_MORE = re.compile(
    r"\b(?:higher|more|increas\w+|rises?|rose|grew|highest)\b|더 많|높|증가|상승", re.IGNORECASE
)
_LESS = re.compile(
    r"\b(?:lower|less|fewer|decreas\w+|reduc\w+|drops?|dropped|fell|shorter|lowest)\b|더 적|낮|감소|줄어|짧",
    re.IGNORECASE,
)
# A negated sentence says that there is no difference, or less than something: no direction.
_NEGATION = re.compile(r"\b(?:not|no|hardly|neither|nor|barely)\b|n't\b|않|없[는다습]|못", re.IGNORECASE)
_STRONG = re.compile(
    r"\b(?:always|certainly|definitely|clearly|obviously|significant\w*|dramatic\w*|proves?|must|far "
    r"better|much (?:faster|better)|"
    r"guarante\w+|in all cases|undoubtedly)\b|반드시|항상|확실|훨씬|월등|분명|명확|결론|모든 경우",
    re.IGNORECASE,
)
_BEYOND = re.compile(
    r"\b(?:customers?|will (?:become|be|get|improve)|would be|even more|expect\w*|production|longer)\b|"
    r"고객|운영 ?환경|전달받|것 같|지속될수록|예상|기대",
    re.IGNORECASE,
)
_INTERVAL = re.compile(
    r"±|\+/-|\bCI\b|confidence|interval|신뢰 ?구간|표준 ?편차|stddev|standard deviation", re.IGNORECASE
)
# What an interval says in percent, and other percentages that are no change.
_NO_CHANGE = re.compile(
    r"\([^()]*(?:CI|confidence|interval|신뢰)[^()]*\)|\b9\d(?:\.\d)?\s*(?:%|th)\s*(?:CI|confidence|percentile|ile)",
    re.IGNORECASE,
)
_GROWS = re.compile(
    r"\bthe more\b|\bas the (?:number|count)\b|할수록|될수록|날수록|많을수록|클수록", re.IGNORECASE
)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent|퍼센트|프로\b)", re.IGNORECASE)
_TIMES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:x\b|times\b|배)|\b(twice|double[ds]?|두 ?배)", re.IGNORECASE)
_CONNECTIONS = re.compile(
    r"(?<![\d~–-])(\d[\d,]*)\s*(?:개(?:의)?\s*)?(?:concurrent\s+)?(?:threads?|connections?|clients?|users|스레드|쓰레드|커넥션)|"
    r"(?:threads?|connections?|clients?|스레드|쓰레드)\s*(?:수)?\s*[:=]?\s*(\d[\d,]*)",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?<=[.!?。])\s+|(?<=다\.)\s*|(?<=지만),?\s+|,?\s+(?=but\b|however\b|although\b|whereas\b)|;\s+"
)
_QUESTION = re.compile(
    r"\?\s*$|\b(?:whether|if|compare[ds]?|test(?:ed|ing)? "
    r"(?:if|whether)|question|wants?|should|recommend\w*)\b|"
    r"알아보|비교|테스트(?:해|한|$)|어떤|권장|하십시오|세요|수 있|때문에|가능성",
    re.IGNORECASE,
)
_WORDS_MIN = 3


def find_claims(document: Document, occupied: frozenset[int]) -> Iterator[Claim]:
    """The claims in the lines that are no output, command or setting."""
    for index, line in document.lines():
        if index in occupied or not line or line.lstrip().startswith(("#!", "$", "--")):
            continue
        for sentence in _END.split(line):
            claim = _claim(sentence.strip(" \t#*>-=|"), index)
            if claim is not None:
                yield claim


def _claim(text: str, index: int) -> Claim | None:
    if len(text.split()) < _WORDS_MIN or len(text) > 1000 or _QUESTION.search(text) or _NEGATION.search(text):
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
            int((match[1] or match[2]).replace(",", "")) for match in _CONNECTIONS.finditer(text)
        ),
        has_interval=_INTERVAL.search(text) is not None,
        grows=_GROWS.search(text) is not None,
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


def subject(claim: Claim, names: Sequence[str]) -> int | None:
    """Which of these names a claim is about; None if its words do not tell them apart.

    The words of a variant are those of its name and heading that no other variant has. A word of Korean may
    have particles after it.
    """
    words = re.findall(r"[\w.\-]+", claim.text.lower())
    known = [_words(name) for name in names]
    scores = []
    for at, own in enumerate(known):
        others = set().union(*(other for place, other in enumerate(known) if place != at))
        scores.append(sum(any(_is_word(word, one) for word in words) for one in own - others))
    best = max(scores, default=0)
    return scores.index(best) if best and scores.count(best) == 1 else None


def _words(name: str) -> set[str]:
    return {word for word in re.findall(r"[\w.\-]+", name.lower()) if not word.isdigit()}


def _is_word(word: str, known: str) -> bool:
    """Whether a word is a known one, with particles if it is Korean."""
    return word == known or (not known.isascii() and len(known) > 1 and word.startswith(known))
