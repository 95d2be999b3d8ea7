"""Simulates latency, errors and seconds of trials, and counts what the real judge says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dbdyno.decide.decision import compare_all
from dbdyno.decide.secondary_metrics import Line, contradictions, secondary_metrics
from dbdyno.experiment.model import Experiment
from dbdyno.store.measured import MeasuredTrial, Window

from .simulation import SECONDS, Random, World, simulate, with_values

# Percentile -> its ratio to the mean, and the standard deviation of its own noise, in log units. In a closed
# loop all of them also have the noise of the mean latency, which is that of the throughput.
SHAPE = {
    "latency_p50_us": (0.9, 0.02),
    "latency_p95_us": (2.0, 0.05),
    "latency_p99_us": (4.0, 0.15),
    "latency_p999_us": (8.0, 0.30),
}
# Mean number of errors of a trial, and the noise of a second.
ERRORS, SECOND_SD = 40.0, 0.09


def with_secondary_metrics(
    trials: Sequence[MeasuredTrial],
    random: Random,
    p99_of_b: float = 1.0,
    untied: Mapping[str, float] | None = None,
) -> list[MeasuredTrial]:
    """The trials with latencies, errors and seconds; p99 and p99.9 of variant b are so many times as high.

    `untied` has the losses of variants, in log units, that their percentiles and errors do not follow.
    """
    made = []
    for trial in trials:
        figures = trial.figures
        if figures is None:
            made.append(trial)
            continue
        share_left = math.exp(-(untied or {}).get(trial.variant, 0.0))
        mean_us = trial.point.value / figures.throughput * share_left * 1e6
        # What moves one percentile moves those above it too.
        tail = 0.0
        values: dict[str, Any] = {}
        for name, (ratio, sd) in SHAPE.items():
            tail += float(random.normal(0.0, sd))
            planted = (
                p99_of_b if trial.variant == "b" and name in ("latency_p99_us", "latency_p999_us") else 1.0
            )
            values[name] = mean_us * ratio * math.exp(tail) * planted
        counts = figures.throughput * np.exp(random.normal(0.0, SECOND_SD, SECONDS))
        errors = {"1213": int(random.poisson(ERRORS * share_left))}
        made.append(
            replace(
                trial,
                figures=with_values(figures, **values, errors=errors),
                window=Window(0, SECONDS * 1_000_000, None),
                seconds=[
                    (second * 1_000_000, (second + 1) * 1_000_000, round(count))
                    for second, count in enumerate(counts)
                ],
            )
        )
    return made


def named_lines(of: Experiment, trials: Sequence[MeasuredTrial]) -> list[Line]:
    """The secondary metrics that the sentences of a run name."""
    comparisons = compare_all(trials, of, [])
    return [
        line
        for one, lines in zip(comparisons, secondary_metrics(comparisons, of), strict=True)
        for line in contradictions(one, lines)
    ]


def false_share(of: Experiment, world: World, count: int, looks: Sequence[int], seed: int) -> float:
    """The share of runs with equal variants whose sentences name a secondary metric after any of these
    numbers of blocks.
    """
    random = np.random.default_rng(seed)
    wrong = 0
    for _ in range(count):
        trials = with_secondary_metrics(simulate(of, world, random), random)
        wrong += any(named_lines(of, [one for one in trials if one.block < blocks]) for blocks in looks)
    return wrong / count


def found_share(of: Experiment, world: World, count: int, seed: int) -> float:
    """The share of runs that name b's p99 latency as higher. It is twice that of a; nothing else differs."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(count):
        lines = named_lines(of, with_secondary_metrics(simulate(of, world, random), random, p99_of_b=2.0))
        found += any(line.metric == "latency_p99_us" and line.direction == "worse" for line in lines)
    return found / count
