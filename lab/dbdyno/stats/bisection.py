"""Bisection with noise: which of several ordered versions is the first that differs.

A step measures three versions in the same blocks: the last one that is known as good, the first one that is
known as bad, and a candidate in the middle. It tests two null hypotheses by repeated signed-rank intervals
(`repeated`), which may be looked at after every block:

::

    the candidate equals the good one    rejected towards the bad one  -> like the bad one
    the candidate equals the bad one     rejected towards the good one -> like the good one
    both rejected                                                      -> between the two

If there is one change, one of the two hypotheses is true, and only its rejection is a mistake. The candidate
then takes the place of the end that it is like. So two neighbours that are the answer were compared directly,
in the same blocks, and after a mistake the two ends of the next steps are equal, so that these find nothing.

A noisy search that repeats questions instead (Burnashev & Zigangirov 1974, Problems Inform. Transmission
10:223; Karp & Kleinberg 2007, SODA) needs the chance that one answer is wrong, which nobody knows of a
measurement. Here the tests of a bisection share the error rate equally (Bonferroni): `tests_at_most` is known
before the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dbdyno.stats.paired import ALPHA, Effect


class Outcome(StrEnum):
    """What a step found out about its candidate."""

    LIKE_GOOD = "like-good"
    LIKE_BAD = "like-bad"
    BETWEEN = "between"
    CANNOT_TELL = "cannot-tell"
    # It could not be measured.
    SKIPPED = "skipped"


def steps_at_most(candidates: int) -> int:
    """The maximum number of steps for so many candidates between the ends: log2(candidates + 1), rounded
    up.
    """
    return candidates.bit_length()


def level_of_tests(candidates: int) -> float:
    """The significance level of each test: those of all steps, and of the two ends before."""
    return ALPHA / (steps_at_most(candidates) + 1)


def direction(effect: Effect | None) -> int:
    """1 or -1 if the effect is significantly positive or negative, else 0."""
    if effect is None or effect.interval_percent is None:
        return 0
    low, high = effect.interval_percent
    return (low > 0.0) - (high < 0.0)


def classify(against_good: Effect | None, against_bad: Effect | None, towards_bad: int) -> Outcome:
    """The outcome of a step, from the effects of the candidate against the two ends. `towards_bad` is the
    sign of the effect of the bad end against the good one.
    """
    is_not_good = direction(against_good) == towards_bad
    is_not_bad = direction(against_bad) == -towards_bad
    if is_not_good and is_not_bad:
        return Outcome.BETWEEN
    if is_not_good:
        return Outcome.LIKE_BAD
    return Outcome.LIKE_GOOD if is_not_bad else Outcome.CANNOT_TELL


@dataclass
class Search:
    """The state of a bisection. Versions are numbered: 0 is good, 1 to `candidates` are candidates, and
    `candidates` + 1 is bad.
    """

    candidates: int
    good: int = 0
    bad: int = field(init=False)
    skipped: set[int] = field(default_factory=set)
    # Whether a step could not tell, which ends the search.
    is_stuck: bool = False

    def __post_init__(self) -> None:
        self.bad = self.candidates + 1

    def next(self) -> int | None:
        """The middle one of the candidates that are left; None at the end."""
        left = [entry for entry in range(self.good + 1, self.bad) if entry not in self.skipped]
        return None if self.is_stuck or not left else left[(len(left) - 1) // 2]

    def apply(self, candidate: int, outcome: Outcome, *, is_nearer_bad: bool = False) -> None:
        """Continue after a step. If the candidate is between the ends, the search goes on in the part with
        the larger change; `is_nearer_bad` says whether that is the one up to the candidate.
        """
        match outcome:
            case Outcome.LIKE_GOOD:
                self.good = candidate
            case Outcome.LIKE_BAD:
                self.bad = candidate
            case Outcome.BETWEEN if is_nearer_bad:
                self.bad = candidate
            case Outcome.BETWEEN:
                self.good = candidate
            case Outcome.SKIPPED:
                self.skipped.add(candidate)
            case Outcome.CANNOT_TELL:
                self.is_stuck = True

    def possible(self) -> range:
        """The versions of which one is the first that is like the bad end; at the end of a complete search
        one.
        """
        return range(self.good + 1, self.bad + 1)
