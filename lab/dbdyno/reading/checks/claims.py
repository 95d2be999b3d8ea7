"""Whether the sentences and pictures of a document agree with its numbers, and with what was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from dbdyno.finding import Level
from dbdyno.reading.attribution import Series
from dbdyno.reading.call import Call
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.claim import About, Claim, Subjects
from dbdyno.reading.document import Document
from dbdyno.reading.judgement import Contrast
from dbdyno.reading.limits import linear
from dbdyno.reading.result import THROUGHPUTS, TIMES, Result
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


@check("Q02")
def sizes_and_signs(
    series: Sequence[Series], contrasts: Sequence[Contrast], claims: Sequence[Claim]
) -> Iterator[Mistake]:
    """Compares every claim with the results it is about.

    Catches conclusions that contradict the document's own numbers. A published benchmark says that the thread
    pool did more transactions; its outputs have 7 to 11 % fewer.

    Rule: a sentence must agree with the numbers, in sign and size, and say how certain it is.
    """
    all_names = _subjects(series)
    for claim in claims:
        contrast = _contrast(series, contrasts, claim, all_names)
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
            yield Mistake(level, text, (claim.index, *_lines(contrast)))


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
    sizes = [size for change in changes for size in (abs(change), abs(100 * (100 / (100 + change) - 1)))]
    claimed = claim.percents[0]
    room = _ROUNDED_POINTS + _ROUNDED_SHARE * claimed
    return bool(sizes) and not min(sizes) - room <= claimed <= max(sizes) + room


def _contrast(
    series: Sequence[Series], contrasts: Sequence[Contrast], claim: Claim, names: Subjects
) -> Contrast | None:
    """The contrast that a claim is about."""
    suitable = [
        contrast for contrast in contrasts if claim.about.fits(is_throughput=contrast.figure in THROUGHPUTS)
    ]
    if not suitable:
        return None
    if len(series) == 2:
        return suitable[0]
    place = names.of(claim)
    of = None if place is None else series[place]
    return next((entry for entry in suitable if entry.variant is of), None)


def _is_foreign(claim: Claim, series: Sequence[Series]) -> bool:
    """Whether a claim names a product that none of the variants is."""
    names = " ".join(
        f"{entry.label} {entry.heading.text} {entry.heading.section}" for entry in series
    ).lower()
    return any(match[0].lower() not in names for match in _PRODUCT.finditer(claim.text))


def _subjects(series: Sequence[Series]) -> Subjects:
    """Distinguishes series by their names and the headings above them."""
    return Subjects([f"{entry.label} {entry.heading.text}" for entry in series])


def _lines(contrast: Contrast) -> Sequence[int]:
    pair = contrast.pairs[0]
    return (pair.baseline.figures[contrast.figure].index, pair.variant.figures[contrast.figure].index)


_IMAGE = re.compile(
    r"!\[[^\]\[]{0,300}+\]\(([^)\s]{1,2000}+)|<img\b[^<>]{0,500}?\bsrc=[\"']?([^\"'\s<>]{1,2000}+)",
    re.IGNORECASE,
)


@check("Q04")
def pictures(document: Document, results: Sequence[Result], claims: Sequence[Claim]) -> Iterator[Mistake]:
    """Looks for pictures that are shown twice, and for results that only a picture has.

    Catches one chart as the result of several tests. A published benchmark shows the same picture for three
    workloads.

    Rule: every number must come from a run that can be looked at.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for index, text in document.lines():
        for match in _IMAGE.finditer(text):
            places[match[1] or match[2]].append(index)
    for indexes in places.values():
        if len(indexes) > 1 and claims:
            yield Mistake(
                "stop",
                compose("the same picture is shown as {number} results", number=len(indexes)),
                indexes,
            )
    if places and not results and claims:
        yield Mistake(
            "warn",
            compose("the results are in pictures only: no number can be checked"),
            [indexes[0] for indexes in places.values()],
            fix=compose("Publish the output of every run"),
        )


# Options that change what a transaction or its protocol is.
_OPTIONS = ("skip-trx", "db-ps-mode", "range-size", "point-selects", "protocol")
# tps without the time for connecting, as a share of tps: more than this is another quantity.
_CONNECTING = 1.2


@check("Q05")
def definitions(
    results: Sequence[Result], calls: Sequence[Call], contrasts: Sequence[Contrast], claims: Sequence[Claim]
) -> Iterator[Mistake]:
    """Compares claims with the figures that are shown, and the options of the runs.

    Catches claims about latency that rest on throughput, and scenarios with different transactions side by
    side.

    Rule: what is compared must be measured in the same way, and be what the claim is about.
    """
    has_latency = any(entry.value(name) for entry in results for name in TIMES)
    of_latency = [claim for claim in claims if claim.about is About.LATENCY]
    if of_latency and not has_latency:
        yield Mistake(
            "warn",
            compose("the claim is about latency, and no latency is shown"),
            [claim.index for claim in of_latency],
        )
    yield from _opposite(contrasts)
    for result in results:
        whole, part = result.value("tps"), result.value("tps_without_connecting")
        if whole and part and part / whole > _CONNECTING:
            figures = (result.figures["tps"], result.figures["tps_without_connecting"])
            text = compose(
                "{part:g} and {whole:g} tps for one run: with a connection per transaction only the second "
                "one is a rate",
                part=part,
                whole=whole,
            )
            yield Mistake("note", text, (figure.index for figure in figures))
    measured = [call for call in calls if call.phase == "run" and "percentile" in call.options]
    if measured and not has_latency:
        yield Mistake(
            "note",
            compose("a percentile of latency is measured and not shown"),
            [measured[0].first],
        )
    runs = [call for call in calls if call.phase == "run"]
    for name in _OPTIONS:
        values = {call.options.get(name) for call in runs}
        if len(values) > 1:
            having = [call.first for call in runs if name in call.options]
            yield Mistake(
                "note",
                compose(
                    "--{name} is not the same in all runs, so their figures are not comparable", name=name
                ),
                having[:1],
            )
        elif name == "db-ps-mode" and values == {"disable"}:
            yield Mistake(
                "note",
                compose("--db-ps-mode=disable: the server parses every statement, which most clients avoid"),
                [runs[0].first],
            )


def _opposite(contrasts: Sequence[Contrast]) -> Iterator[Mistake]:
    """Two measures of throughput that disagree: one variant does more new orders and fewer transactions."""
    by_variant: dict[int, list[Contrast]] = {}
    for contrast in contrasts:
        if contrast.figure in THROUGHPUTS and contrast.is_better is not None:
            by_variant.setdefault(id(contrast.variant), []).append(contrast)
    for same_variant in by_variant.values():
        opposite = next(
            (entry for entry in same_variant if entry.is_better != same_variant[0].is_better), None
        )
        if opposite is not None:
            yield Mistake(
                "warn",
                compose(
                    "the direction depends on the figure: {first}; {second}",
                    first=same_variant[0].sentence,
                    second=opposite.sentence,
                ),
                (entry.pairs[0].variant.figures[entry.figure].index for entry in (same_variant[0], opposite)),
            )


@check("Q07")
def beyond(claims: Sequence[Claim]) -> Iterator[Mistake]:
    """Looks for claims about other machines, longer runs and hearsay.

    Rule: a claim must not go beyond what was measured.
    """
    indexes = [claim.index for claim in claims if claim.is_beyond]
    if indexes:
        yield Mistake("note", compose("the sentence speaks of what was not measured here"), indexes)
