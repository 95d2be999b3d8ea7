"""Simulates percentiles over rates, and counts what the real judge says of the capacity under a latency
objective.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dbdyno.decide.decision import compare_all
from dbdyno.experiment.load import found_rates
from dbdyno.experiment.model import Experiment, LatencyObjective, Load
from dbdyno.experiment.schedule import schedule
from dbdyno.stats.paired import Effect
from dbdyno.store.measured import MeasuredTrial, ScheduleEntry

from . import neighbour, row
from .simulation import Random, experiment, figures_of

# The latency of an idle server, the latency objective, and the noise of a trial's percentile in log units.
IDLE_US, OBJECTIVE, SD = 5_000.0, LatencyObjective(p99_s=0.026), 0.15
# Transactions/s that the baseline sustains.
PEAK = 1_000.0
PLANTED = math.log(0.95)


def of_blocks(blocks: int, effect: float) -> Experiment:
    """A comparison of a and b, whose rates a probe has found; b sustains exp(effect) times as much."""
    of = experiment(blocks=blocks)
    load = Load(connections=(64,), duration_s=10.0, latency_objective=OBJECTIVE)
    load.set_found_rates(tuple(found_rates(PEAK * math.exp(min(effect, 0.0)))))
    return of.model_copy(update={"load": load})


def simulate(of: Experiment, effect: float, random: Random, near: str = "") -> list[MeasuredTrial]:
    """The trials of one run, next to the `neighbour` of this name. Beyond the peak of a server only a bound
    of the percentile is known.
    """
    of = of.with_order_seed(int(random.integers(0, 2**31)))
    measured = []
    planned = schedule(of)
    is_baseline = [trial.variant != "b" for trial in planned]
    shares, losses = neighbour.add(near, is_baseline, [0.0] * len(planned), random)
    for trial, share, loss in zip(planned, shares, losses, strict=True):
        entry = ScheduleEntry(trial.index, trial.block, trial.variant, trial.workload, trial.point.as_dict())
        peak = PEAK * math.exp((effect if trial.variant == "b" else 0.0) - loss)
        used = min(float(trial.point.rate or 0.0) / peak, 0.99)
        percentile_us = IDLE_US / (1.0 - used) * math.exp(random.normal(0.0, SD))
        figures = replace(figures_of(used * peak), latency_p99_us=percentile_us)
        if used == 0.99:
            figures = replace(figures, censored=("latency_p99_us",))
        measured.append(MeasuredTrial(entry, None, figures=figures, foreign=float(share) if near else None))
    return measured


def overall(of: Experiment, effect: float, random: Random, near: str = "") -> tuple[str, Effect | None]:
    """The verdict of one run, and its effect."""
    (comparison,) = compare_all(simulate(of, effect, random, near), of, [])
    return comparison.judged.verdict.value, comparison.judged.assessment.overall


def guarantees() -> list[row.Guarantee]:
    """What the verdicts about capacity guarantee."""
    return [row.Guarantee(_false, cost=2), row.Guarantee(_found, cost=2)]


def _results(effect: float, count: int, seed: int, near: str = "") -> list[tuple[str, Effect | None]]:
    of, random = of_blocks(8, effect), np.random.default_rng(seed)
    return [overall(of, effect, random, near) for _ in range(count)]


def _false(sample: row.Sample) -> list[row.Row]:
    return [false_words("", sample, 31)]


def false_words(near: str, sample: row.Sample, seed: int) -> row.Row:
    """The share of runs of two equal variants with a wrong verdict, next to the `neighbour` of this name."""
    words = [word for word, _ in _results(0.0, sample.count, sample.seed(seed), near)]
    wrong = sum(word in ("faster", "slower") for word in words) / len(words)
    where = f", with {near}" if near else ""
    return row.Row(
        f"2 equal variants, capacity under a latency objective{where}: any wrong verdict",
        len(words),
        wrong,
        0.05,
    )


def _found(sample: row.Sample) -> list[row.Row]:
    truth = math.expm1(PLANTED) * 100.0
    results = _results(PLANTED, sample.count, sample.seed(32))
    ends = [one.interval_percent for _, one in results if one]
    covered = sum(one is not None and one[0] <= truth <= one[1] for one in ends) / len(results)
    found = sum(word == "slower" for word, _ in results) / len(results)
    text = (
        f"capacity under a latency objective changed by {truth:.0f} %, 15 % noise of the percentile, 8 blocks"
    )
    return [
        row.Row(f"{text}: the interval contains it", len(results), covered, 0.93, at_most=False),
        row.Row(f"{text}: found", len(results), found, 0.70, at_most=False),
    ]
