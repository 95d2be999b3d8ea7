"""Q05: what is compared must be measured in the same way, and be what the claim is about."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.claim import About
from dbdyno.reading.judgement import Contrast
from dbdyno.reading.reading import Reading
from dbdyno.reading.result import THROUGHPUTS, TIMES
from dbdyno.text import compose

# Options that change what a transaction or its protocol is.
_OPTIONS = ("skip-trx", "db-ps-mode", "range-size", "point-selects", "protocol")
# tps without the time for connecting, as a share of tps: more than this is another quantity.
_CONNECTING = 1.2


def find(reading: Reading) -> Iterator[Finding]:
    """Compares claims with the figures that are shown, and the options of the runs.

    Catches claims about latency that rest on throughput, and scenarios with different transactions side by
    side.
    """
    has_latency = any(one.value(name) for one in reading.results for name in TIMES)
    claims = [claim for claim in reading.claims if claim.about is About.LATENCY]
    if claims and not has_latency:
        yield finding(
            reading,
            "Q05",
            "warn",
            compose("the claim is about latency, and no latency is shown"),
            [claim.index for claim in claims],
        )
    yield from _opposite(reading)
    for result in reading.results:
        whole, part = result.value("tps"), result.value("tps_without_connecting")
        if whole and part and part / whole > _CONNECTING:
            figures = (result.figures["tps"], result.figures["tps_without_connecting"])
            text = compose(
                "{part:g} and {whole:g} tps for one run: with a connection per transaction only the second "
                "one is a rate",
                part=part,
                whole=whole,
            )
            yield finding(reading, "Q05", "note", text, (figure.index for figure in figures))
    measured = [call for call in reading.calls if call.phase == "run" and "percentile" in call.options]
    if measured and not has_latency:
        yield finding(
            reading,
            "Q05",
            "note",
            compose("a percentile of latency is measured and not shown"),
            [measured[0].first],
        )
    runs = [call for call in reading.calls if call.phase == "run"]
    for name in _OPTIONS:
        values = {call.options.get(name) for call in runs}
        if len(values) > 1:
            having = [call.first for call in runs if name in call.options]
            yield finding(
                reading,
                "Q05",
                "note",
                compose(
                    "--{name} is not the same in all runs, so their figures are not comparable", name=name
                ),
                having[:1],
            )
        elif name == "db-ps-mode" and values == {"disable"}:
            yield finding(
                reading,
                "Q05",
                "note",
                compose("--db-ps-mode=disable: the server parses every statement, which most clients avoid"),
                [runs[0].first],
            )


def _opposite(reading: Reading) -> Iterator[Finding]:
    """Two measures of throughput that disagree: one variant does more new orders and fewer transactions."""
    by_variant: dict[int, list[Contrast]] = {}
    for contrast in reading.contrasts:
        if contrast.figure in THROUGHPUTS and contrast.is_better is not None:
            by_variant.setdefault(id(contrast.variant), []).append(contrast)
    for same_variant in by_variant.values():
        other = next((one for one in same_variant if one.is_better != same_variant[0].is_better), None)
        if other is not None:
            yield finding(
                reading,
                "Q05",
                "warn",
                compose(
                    "the direction depends on the figure: {first}; {second}",
                    first=same_variant[0].sentence,
                    second=other.sentence,
                ),
                (one.pairs[0].variant.figures[one.figure].index for one in (same_variant[0], other)),
            )


CHECK = DocumentCheck("Q05", find)
