"""D08: whether the engines of a fleet began together and were equally fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dbdyno.finding import Finding
from dbdyno.judge.wording import trials_count
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, mark

# Loads that begin further apart do not overlap at the edges of the measurement.
SKEW_MS = 50.0
# A mean latency that is larger than the median of all engines by this factor, and by this time, is that of a
# slow host or a longer way to the server.
SLOW, SLOW_US = 1.25, 100.0

# The facts of each engine of a trial, as in trial.json (`EngineFacts` in run/engine.py).
Engines = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Worst:
    """The engine that is furthest from the others in a trial, and how far it is."""

    value: float
    name: str
    # What a latency is compared with.
    others: str = ""


def fleet(trials: Sequence[MeasuredTrial], engines: Mapping[int, Engines]) -> Iterator[Finding]:
    """Warnings about the engines of each variant's trials; `engines` is by index of the trial."""
    for variant in dict.fromkeys(trial.variant for trial in trials):
        own = {
            trial.index: engines[trial.index]
            for trial in trials
            if trial.variant == variant and trial.figures is not None and trial.index in engines
        }
        yield from _skew(variant, own)
        yield from _slow(variant, own)


def _skew(variant: str, engines: Mapping[int, Engines]) -> Iterator[Finding]:
    late = {
        index: _Worst(_spread_ms(of_trial), str(max(of_trial, key=_start)["name"]))
        for index, of_trial in engines.items()
        if _spread_ms(of_trial) > SKEW_MS
    }
    if late:
        text = mark(
            "in {count} of {variant} the load generators did not begin together: {name} began {value:.0f} ms "
            "after the first one (limit {limit:.0f} ms)"
        )
        fix = compose("Give that host more CPU time, or a clock that a time service keeps")
        yield _finding(variant, late, "skew_ms", text, fix)


def _slow(variant: str, engines: Mapping[int, Engines]) -> Iterator[Finding]:
    slow: dict[int, _Worst] = {}
    for index, of_trial in engines.items():
        means = {str(one["name"]): one["latency_mean_us"] for one in of_trial if one["latency_mean_us"]}
        if len(means) < 2:
            continue
        name = max(means, key=lambda one: means[one])
        middle = median(means.values()) if len(means) > 2 else min(means.values())
        if means[name] > max(SLOW * middle, middle + SLOW_US):
            others = compose("the median of all") if len(means) > 2 else compose("that of the other")
            slow[index] = _Worst(means[name] / middle, name, others)
    # One trial may have been disturbed; a slow client is slow in most of them.
    if 2 * len(slow) > len(engines):
        text = mark(
            "in {count} of {variant} one load generator was slower than the others: the mean latency of "
            "{name} was {value:.2f} times {others}"
        )
        fix = compose("Look at that host's CPU time and its way to the server, or leave it out of the fleet")
        yield _finding(variant, slow, "latency_ratio", text, fix)


def _finding(variant: str, by_trial: Mapping[int, _Worst], what: str, text: str, fix: str) -> Finding:
    """The finding about the worst engine of the trials, with its pattern and the key of its evidence."""
    worst = max(by_trial.values(), key=lambda one: one.value)
    values = {"count": trials_count(len(by_trial)), "variant": variant, "limit": SKEW_MS, **vars(worst)}
    evidence = {what: {str(index): one.value for index, one in by_trial.items()}}
    return Finding("D08", "warn", compose(text, **values), evidence, variant, fix=fix)


def _start(engine: Mapping[str, Any]) -> float:
    return float(engine["start_skew_us"])


def _spread_ms(engines: Engines) -> float:
    starts = [_start(one) for one in engines]
    return (max(starts) - min(starts)) / 1000.0
