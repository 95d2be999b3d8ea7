"""R18: whether the background loads of the variants were alike and as demanded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

from dbdyno.finding import Finding
from dbdyno.result_text import trials_count
from dbdyno.rules.register import rule
from dbdyno.rules.trials import MISMATCH_SHARE, ByVariant
from dbdyno.store.measured import BackgroundFigures
from dbdyno.text import compose, mark

# R18 warns if a background load lacks more than this share of its rate, or if its throughput differs by more
# between two variants; and only if the lack exceeds so many standard deviations of random arrivals.
SHORTFALL = 0.05
DEVIATIONS = 3.0


@rule("R18", caveat=mark("a background load did not run as demanded"))
def background_loads(by_workload: Mapping[str, ByVariant]) -> Iterator[Finding]:
    """Background loads that did not keep their rate, differed between the variants, or found other rows than
    expected.
    """
    for workload, by_variant in by_workload.items():
        yield from _background_loads(by_variant, workload)


def _background_loads(by_variant: ByVariant, workload: str) -> Iterator[Finding]:
    loads: dict[str, dict[str, dict[int, BackgroundFigures]]] = defaultdict(dict)
    for variant, trials in by_variant.items():
        for trial in trials:
            for title, entry in trial.background.items():
                loads[title].setdefault(variant, {})[trial.index] = entry
    for title, of_load in loads.items():
        for variant, of_trials in of_load.items():
            yield from _shortfall(title, workload, variant, of_trials)
            yield from _mismatches(title, workload, variant, of_trials)
        yield from _differences(title, workload, of_load)


def _shortfall(
    title: str, workload: str, variant: str, of_trials: Mapping[int, BackgroundFigures]
) -> Iterator[Finding]:
    short = {index: trial for index, trial in of_trials.items() if is_short(trial)}
    if not short:
        return
    rate = next(iter(short.values())).rate
    throughput = median(entry.throughput for entry in short.values())
    yield Finding(
        "R18",
        "warn",
        compose(
            "in {count} of {variant} on {workload} the background load {title} reached {throughput:,.1f} "
            "of {rate:,g} transactions/s",
            count=trials_count(len(short)),
            variant=variant,
            workload=workload,
            title=title,
            throughput=throughput,
            rate=rate,
        ),
        {
            "workload": workload,
            "background": title,
            "rate": rate,
            "throughput": {str(index): entry.throughput for index, entry in short.items()},
        },
        variant,
        fix=compose("Lower its rate, or allow it more connections"),
    )


def is_short(figures: BackgroundFigures) -> bool:
    """Whether a background load lacks a part of its rate that is more than random arrivals may lack."""
    if figures.rate is None:
        return False
    expected = figures.rate * figures.counted_us / 1e6
    lack = expected - figures.throughput * figures.counted_us / 1e6
    return not figures.counted_us or lack > max(SHORTFALL * expected, DEVIATIONS * math.sqrt(expected))


def _mismatches(
    title: str, workload: str, variant: str, of_trials: Mapping[int, BackgroundFigures]
) -> Iterator[Finding]:
    with_figures = [trial.figures for trial in of_trials.values() if trial.figures is not None]
    mismatches, statements = (
        sum(figures.row_count_mismatches for figures in with_figures),
        sum(figures.statements for figures in with_figures),
    )
    if mismatches > MISMATCH_SHARE * statements:
        yield Finding(
            "R18",
            "warn",
            compose(
                "{mismatches} of {statements} statements of the background load {title} of {workload} on "
                "{variant} returned or changed an unexpected number of rows",
                mismatches=mismatches,
                statements=statements,
                title=title,
                workload=workload,
                variant=variant,
            ),
            {"workload": workload, "background": title, "row_count_mismatches": mismatches},
            variant,
            fix=compose("Correct its statements, or rows of its statements"),
        )


def _differences(
    title: str, workload: str, of_load: Mapping[str, Mapping[int, BackgroundFigures]]
) -> Iterator[Finding]:
    """A difference of the medians that is more than that of a rate that all of them keep."""
    by_variant = {
        variant: median(trial.throughput for trial in of_trials.values())
        for variant, of_trials in of_load.items()
        if of_trials
    }
    every = [trial for of_trials in of_load.values() for trial in of_trials.values()]
    if len(by_variant) < 2 or (every[0].rate is not None and not any(map(is_short, every))):
        return
    slow, fast = min(by_variant, key=by_variant.__getitem__), max(by_variant, key=by_variant.__getitem__)
    if by_variant[slow] < (1.0 - SHORTFALL) * by_variant[fast]:
        yield Finding(
            "R18",
            "warn",
            compose(
                "the background load {title} of {workload} ran at {slow_rate:,.1f} transactions/s on {slow} "
                "and at {fast_rate:,.1f} on {fast}: a difference between these variants may come from it",
                title=title,
                workload=workload,
                slow=slow,
                fast=fast,
                slow_rate=by_variant[slow],
                fast_rate=by_variant[fast],
            ),
            {"workload": workload, "background": title, "throughput": by_variant},
            fix=compose("Set a rate that all variants can keep"),
        )
