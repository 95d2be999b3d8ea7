"""Q02: a sentence must agree with the numbers, in sign and size, and say how certain it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.reading.attribution import Series
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.claim import About, Claim, Subjects
from dbdyno.reading.judgement import Contrast
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import THROUGHPUTS
from dbdyno.text import compose

# How far a sentence may round.
_ROUNDED_POINTS = 0.6
_ROUNDED_SHARE = 0.1


def find(reading: Reading) -> Iterator[Finding]:
    """Compares every claim with the results it is about.

    Catches conclusions that contradict the document's own numbers. A published benchmark says that the thread
    pool did more transactions; its outputs have 7 to 11 % fewer.
    """
    all_names = _subjects(reading.series)
    for claim in reading.claims:
        contrast = _contrast(reading, claim, all_names)
        if contrast is None:
            continue
        says_better = claim.is_better
        shows_better = contrast.is_better
        if shows_better is not None and contrast.variant is not _of(claim, contrast):
            shows_better = not shows_better
        if shows_better is None:
            yield finding(
                reading,
                "Q02",
                "warn",
                compose(
                    "the sentence gives one direction; the numbers do not: {sentence}",
                    sentence=contrast.sentence,
                ),
                (claim.index, *_lines(contrast)),
            )
        elif shows_better != says_better:
            yield finding(
                reading,
                "Q02",
                "stop",
                compose("the sentence contradicts the numbers: {sentence}", sentence=contrast.sentence),
                (claim.index, *_lines(contrast)),
            )
        elif _is_other_size(claim, contrast):
            yield finding(
                reading,
                "Q02",
                "stop",
                compose(
                    "the sentence says {percent:g} %; the numbers say {sentence}",
                    percent=claim.percents[0],
                    sentence=contrast.sentence,
                ),
                (claim.index, *_lines(contrast)),
            )
        elif claim.is_strong and not claim.has_interval:
            yield finding(
                reading,
                "Q02",
                "warn",
                compose(
                    "the sentence is certain; the numbers have no interval: {sentence}",
                    sentence=contrast.sentence,
                ),
                (claim.index, *_lines(contrast)),
            )


def _is_other_size(claim: Claim, contrast: Contrast) -> bool:
    """Whether the only percentage of a claim is none of the changes, at the load that it names or at any."""
    if len(claim.percents) != 1 or len(claim.connections) > 1:
        return False
    changes = [
        pair.change_percent
        for pair in contrast.pairs
        if not claim.connections or pair.connections in (None, *claim.connections)
    ]
    # Of the other variant: 25 % more is 20 % less.
    sizes = [size for one in changes for size in (abs(one), abs(100 * (100 / (100 + one) - 1)))]
    claimed = claim.percents[0]
    room = _ROUNDED_POINTS + _ROUNDED_SHARE * claimed
    return bool(sizes) and not min(sizes) - room <= claimed <= max(sizes) + room


def _contrast(reading: Reading, claim: Claim, names: Subjects) -> Contrast | None:
    """The contrast that a claim is about."""
    suitable = [one for one in reading.contrasts if _fits(one, claim.about)]
    if not suitable:
        return None
    if len(reading.series) == 2:
        return suitable[0]
    place = names.of(claim)
    of = None if place is None else reading.series[place]
    return next((one for one in suitable if one.variant is of), None)


def _of(claim: Claim, contrast: Contrast) -> Series:
    """The series that the claim calls better or worse: the one it names, or the variant if it names none."""
    return _subject(claim, (contrast.baseline, contrast.variant)) or contrast.variant


def _subject(claim: Claim, series: Sequence[Series]) -> Series | None:
    """The series that the words of a claim name."""
    place = _subjects(series).of(claim)
    return None if place is None else series[place]


def _subjects(series: Sequence[Series]) -> Subjects:
    """Tells series apart by their names and the headings above them."""
    return Subjects([f"{one.label} {one.heading.text}" for one in series])


def _fits(contrast: Contrast, about: About) -> bool:
    is_throughput = contrast.figure in THROUGHPUTS
    return about is About.EITHER or (about is About.THROUGHPUT) == is_throughput


def _lines(contrast: Contrast) -> Sequence[int]:
    pair = contrast.pairs[0]
    return (pair.baseline.figures[contrast.figure].index, pair.variant.figures[contrast.figure].index)


CHECK = DocumentCheck("Q02", find)
