"""The figures of background loads within the windows of their trials, and R18: whether they were alike.

Both engines give the wall time of their start, so the window of a trial is known in the time of the
background load. It counts in the intervals within that window, of which a measurement has 20 or more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import median

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.figures import INCOMPLETE, figures
from dbdyno.judge.recording import Recording, read
from dbdyno.judge.wording import trials_count
from dbdyno.store import StoredTrial
from dbdyno.store.measured import BackgroundFigures, MeasuredTrial, Window
from dbdyno.text import compose

# R18 warns if a background load lacks more than this share of its rate, or if its throughput differs by more
# between two variants; and only if the lack exceeds so many standard deviations of random arrivals.
SHORTFALL = 0.05
DEVIATIONS = 3.0
# As D04.
MISMATCH_SHARE = 0.01


def background_figures(
    trial: StoredTrial, experiment: Experiment, recording: Recording, window: Window
) -> dict[str, BackgroundFigures]:
    """Title -> figures of each background load of a trial, which has this `recording` and `window`."""
    variant = experiment.variant(str(trial.meta["variant"]))
    by_title = {}
    for one in experiment.backgrounds(variant, str(trial.meta["workload"])):
        own = read(trial.background(one.title))
        shift_us = recording.start_unix_us - own.start_unix_us
        inside = [
            i
            for i in own.intervals
            if i["start_us"] >= window.start_us + shift_us and i["end_us"] <= window.end_us + shift_us
        ]
        counted_us = inside[-1]["end_us"] - inside[0]["start_us"] if inside else 0
        events = sum(i["events"] for i in inside)
        of_load = None
        if inside:
            with suppress(*INCOMPLETE):
                # What was unfinished when the load was stopped was due after the window.
                own.measure["censored_us"] = own.measure["drained_us"] = ()
                of_load = figures(own, Window(inside[0]["start_us"], inside[-1]["end_us"], None))
        by_title[one.title] = BackgroundFigures(
            rate=one.rate,
            connections=one.connections,
            counted_us=counted_us,
            throughput=events * 1e6 / counted_us if counted_us else 0.0,
            figures=of_load,
        )
    return by_title


def findings(by_variant: Mapping[str, Sequence[MeasuredTrial]], workload: str) -> Iterator[Finding]:
    """R18: background loads of a workload that did not keep their rate, differed between the variants, or
    found other rows than expected.
    """
    loads: dict[str, dict[str, dict[int, BackgroundFigures]]] = defaultdict(dict)
    for variant, trials in by_variant.items():
        for trial in trials:
            for title, one in trial.background.items():
                loads[title].setdefault(variant, {})[trial.index] = one
    for title, of_load in loads.items():
        for variant, of_trials in of_load.items():
            yield from _shortfall(title, workload, variant, of_trials)
            yield from _mismatches(title, workload, variant, of_trials)
        yield from _differences(title, workload, of_load)


def _shortfall(
    title: str, workload: str, variant: str, of_trials: Mapping[int, BackgroundFigures]
) -> Iterator[Finding]:
    short = {index: one for index, one in of_trials.items() if is_short(one)}
    if not short:
        return
    rate = next(iter(short.values())).rate
    throughput = median(one.throughput for one in short.values())
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
            "throughput": {str(index): one.throughput for index, one in short.items()},
        },
        variant,
        fix=compose("Lower its rate, or allow it more connections"),
    )


def is_short(one: BackgroundFigures) -> bool:
    """Whether a background load lacks a part of its rate that is more than random arrivals may lack."""
    if one.rate is None:
        return False
    expected = one.rate * one.counted_us / 1e6
    lack = expected - one.throughput * one.counted_us / 1e6
    return not one.counted_us or lack > max(SHORTFALL * expected, DEVIATIONS * math.sqrt(expected))


def _mismatches(
    title: str, workload: str, variant: str, of_trials: Mapping[int, BackgroundFigures]
) -> Iterator[Finding]:
    known = [one.figures for one in of_trials.values() if one.figures is not None]
    mismatches, statements = (
        sum(figures.row_count_mismatches for figures in known),
        sum(figures.statements for figures in known),
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
        variant: median(one.throughput for one in of_trials.values())
        for variant, of_trials in of_load.items()
        if of_trials
    }
    every = [one for of_trials in of_load.values() for one in of_trials.values()]
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
