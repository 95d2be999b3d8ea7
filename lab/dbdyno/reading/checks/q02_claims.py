"""Q02: a sentence must agree with the numbers, in sign and size, and say how certain it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding, Level
from dbdyno.reading.attribution import Series
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.claim import About, Claim, Subjects
from dbdyno.reading.judgement import Contrast
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import THROUGHPUTS
from dbdyno.text import Text, compose

# Products that a sentence may be about, which the document did not measure.
_PRODUCT = linear(
    r"(?<![a-z])(?:mysql|mariadb|percona|postgres\w*|oracle|tidb|sql server|db2|mongodb|redis|aurora|"
    r"cockroach\w*|sqlite|yugabyte\w*|oceanbase|polardb|clickhouse|cassandra|alloydb|neon|spanner)",
    re.IGNORECASE,
)
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
        both = (contrast.baseline, contrast.variant)
        subjects = _subjects(both)
        is_named = subjects.are_named(claim)
        if not is_named and _is_foreign(claim, both):
            continue
        shows_better = contrast.is_better
        if shows_better is not None and subjects.of(claim) == 0:
            shows_better = not shows_better
        level, text = _problem(claim, contrast, shows_better)
        if text is not None:
            # Of a sentence that names neither variant it is not certain what it is about.
            level = level if is_named else "warn"
            yield finding(reading, "Q02", level, text, (claim.index, *_lines(contrast)))


def _problem(claim: Claim, contrast: Contrast, shows_better: bool | None) -> tuple[Level, Text | None]:
    """What is wrong with a claim; None if nothing is."""
    sentence = contrast.sentence
    if shows_better is None:
        text = compose("the sentence gives one direction; the numbers do not: {sentence}", sentence=sentence)
        return "warn", text
    if shows_better != claim.is_better:
        return "stop", compose("the sentence contradicts the numbers: {sentence}", sentence=sentence)
    if _is_other_size(claim, contrast):
        return "stop", compose(
            "the sentence says {percent:g} %; the numbers say {sentence}",
            percent=claim.percents[0],
            sentence=sentence,
        )
    if claim.is_strong and not claim.has_interval:
        text = compose("the sentence is certain; the numbers have no interval: {sentence}", sentence=sentence)
        return "warn", text
    return "note", None


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


def _is_foreign(claim: Claim, series: Sequence[Series]) -> bool:
    """Whether a claim names a product that none of the variants is."""
    names = " ".join(f"{one.label} {one.heading.text} {one.heading.section}" for one in series).lower()
    return any(match[0].lower() not in names for match in _PRODUCT.finditer(claim.text))


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
