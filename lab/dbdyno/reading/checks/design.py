"""Whether the design of a comparison supports a difference: repetitions, order, names, cause and noise."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from dbdyno.reading.attribution import Series
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.claim import Claim
from dbdyno.reading.document import Document
from dbdyno.reading.judgement import Contrast
from dbdyno.reading.limits import linear
from dbdyno.reading.result import Result
from dbdyno.text import compose

# Fewer repetitions than this give no verdict, as in dbdyno's own experiments.
_BLOCKS_MIN = 6


@check("P15", compares_documents=True)
def repetitions(
    results: Sequence[Result],
    series: Sequence[Series],
    contrasts: Sequence[Contrast],
    claims: Sequence[Claim],
) -> Iterator[Mistake]:
    """Counts the results of each variant and load, and looks at the order of the variants.

    Catches comparisons of one run with one run, which cannot tell a difference from the noise.

    Rule: a difference needs repetitions, in an order in which time cannot favour one variant.
    """
    if not contrasts:
        yield from _without_comparison(results, series, claims)
        return
    compared = list(
        {
            id(entry): entry for contrast in contrasts for entry in (contrast.baseline, contrast.variant)
        }.values()
    )
    if any(entry.doubt for entry in compared):
        text = compose(
            "which results repeat the same variant and load is not certain: no interval is computed"
        )
        yield Mistake("warn", text, (entry.results[0].first for entry in compared if entry.doubt))
        return
    fewest = min(min(Counter(result.connections for result in entry.results).values()) for entry in compared)
    # mysqlslap repeats by itself: the shortest and the longest time differ.
    repeats = all(
        result.value("min_s") != result.value("max_s") for entry in compared for result in entry.results
    )
    if repeats or (fewest >= _BLOCKS_MIN and not _is_sequential(series)):
        return
    runs = compose("one run") if fewest == 1 else compose("{fewest} runs", fewest=fewest)
    order = compose(", all of one variant before all of the next") if _is_sequential(series) else ""
    if fewest == 1:
        consequence = compose(
            "how much two runs of one variant differ is not known, so a difference proves nothing"
        )
    elif fewest < _BLOCKS_MIN:
        consequence = compose("too few for an interval")
    else:
        consequence = compose("what changed on the machine meanwhile counts for one variant")
    yield Mistake(
        "warn",
        compose(
            "{runs} of each variant and load{order}: {consequence}",
            runs=runs,
            order=order,
            consequence=consequence,
        ),
        (entry.results[0].first for entry in compared),
        fix=compose(
            "Repeat every run at least {blocks} times, the variants in alternating order", blocks=_BLOCKS_MIN
        ),
    )


def _without_comparison(
    results: Sequence[Result], series: Sequence[Series], claims: Sequence[Claim]
) -> Iterator[Mistake]:
    if not results and claims:
        yield Mistake(
            "warn",
            compose("no result of a run was recognized, so the difference cannot be judged"),
            (claim.index for claim in claims),
            fix=compose("Show every run's output, at least {blocks} of each variant", blocks=_BLOCKS_MIN),
        )
    for entry in series:
        if len(entry.results) == len({result.connections for result in entry.results}):
            text = compose("each load was run once, so how much its result varies is not known")
            yield Mistake("note", text, (result.first for result in entry.results))


def _is_sequential(series: Sequence[Series]) -> bool:
    """Whether every variant's results stand together."""
    places = sorted((result.first, number) for number, entry in enumerate(series) for result in entry.results)
    turns = sum(before != after for (_, before), (_, after) in itertools.pairwise(places))
    return turns == len(series) - 1


_COUNTERS = linear(
    r"(?:SHOW|show) (?:GLOBAL |global |ENGINE |engine "
    r")?(?:STATUS|status|INNODB|innodb)|Innodb_\w+|Handler_\w+|performance_schema|pg_stat_\w+|events_waits|"
    r"EXPLAIN|iostat|vmstat|pidstat|\bperf (?:stat|record|top)",
)


@check("P17")
def effect(document: Document, series: Sequence[Series]) -> Iterator[Mistake]:
    """Looks for a counter of the server or the system besides the results of a setting.

    Catches effects without a cause. A published benchmark explains a difference by fewer waits for mutexes;
    its queries scan a table, and no wait was counted.

    Rule: a setting must change what it is meant to change.
    """
    named = [entry for entry in series if " = " in entry.label]
    if len(named) < 2 or any(_COUNTERS.search(text) for text in document.texts):
        return
    yield Mistake(
        "note",
        compose(
            "no counter shows that {name} changed what the server does", name=named[0].label.split(" = ")[0]
        ),
        (entry.results[0].first for entry in named),
        fix=compose("Show the waits, reads or writes that the setting is about, for every variant"),
    )


@check("Q08")
def labels(series: Sequence[Series]) -> Iterator[Mistake]:
    """Says on what the names of the variants rest.

    Catches swapped results: a heading and a setting are typed above an output that says nothing of
    the server.

    Rule: the name of a variant should come from the server, in the output itself.
    """
    pasted = [entry for entry in series if all(result.table < 0 for result in entry.results)]
    if len(pasted) > 1:
        yield Mistake(
            "note",
            compose(
                "nothing in the outputs says from which variant they are: their order in the document decides"
            ),
            (entry.results[0].first for entry in pasted),
            fix=compose("Store the server's settings with each output"),
        )


# Settings that divide what several connections would wait for.
_CONCURRENT = linear(r"instances|thread_pool|thread_handling|concurrency|partitions|spin|_parts\b|parallel")
_NOISE_PERCENT = 0.5


@check("R05")
def control(contrasts: Sequence[Contrast]) -> Iterator[Mistake]:
    """Looks at the difference with one connection, if the variants differ in a setting against waiting of
    connections for each other.

    Catches noise that is taken for an effect. In a published benchmark eight buffer pool instances are 2 %
    faster with one connection, which never waits for another one; the effect of 8 % with ten connections
    rests on one run each.

    Rule: where a setting cannot have an effect, the difference shows the noise.
    """
    for contrast in contrasts:
        if not _CONCURRENT.search(contrast.variant.label) or len(contrast.pairs) < 2:
            continue
        alone = next((pair for pair in contrast.pairs if pair.connections == 1), None)
        if alone is not None and abs(alone.change_percent) > _NOISE_PERCENT:
            figure = contrast.figure
            yield Mistake(
                "warn",
                compose(
                    "with one connection {label} can have no effect, and the difference is {change:+.1f} %: "
                    "that much is noise",
                    label=contrast.variant.label,
                    change=alone.change_percent,
                ),
                (alone.baseline.figures[figure].index, alone.variant.figures[figure].index),
                fix=compose("Repeat all runs, and compare the baseline with itself"),
            )
            return


@check("R06")
def directions(contrasts: Sequence[Contrast]) -> Iterator[Mistake]:
    """Looks whether the variant with more throughput is the same at all loads.

    Catches one sentence about two answers. In a published benchmark one instance class is 4 % slower up to 64
    connections and 5 to 13 % faster from 256 on.

    Rule: a direction that depends on the load is no single verdict.
    """
    seen: set[int] = set()
    for contrast in contrasts:
        if (
            contrast.is_better is None
            and len(contrast.pairs) > 1
            and any(contrast.changes)
            and id(contrast.variant) not in seen
        ):
            seen.add(id(contrast.variant))
            yield Mistake(
                "warn",
                compose("the direction depends on the load: {sentence}", sentence=contrast.sentence),
                (pair.variant.figures[contrast.figure].index for pair in contrast.pairs),
                fix=compose("Give a verdict for each load, with an interval that holds for all of them"),
            )
