"""Simulates the further metrics of design.metrics, and counts what the real judge says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dbdyno.decide.decision import compare_further
from dbdyno.experiment.model import Experiment
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.store.measured import MeasuredTrial

from .row import Guarantee, Row, Sample
from .secondary_metrics import with_secondary_metrics
from .simulation import Random, World, experiment, simulate, with_values
from .stopping import stopping

METRICS = ("throughput", "p99", "mean", "cpu_per_transaction")
# CPU time per transaction, and the standard deviation of its noise in log units.
CPU_US, CPU_SD = 500.0, 0.02
_WRONG = (Verdict.FASTER, Verdict.SLOWER, Verdict.MIXED)


def with_metrics(of: Experiment) -> Experiment:
    """The experiment with four metrics."""
    return of.model_copy(update={"design": of.design.model_copy(update={"metrics": METRICS})})


def with_figures(
    trials: Sequence[MeasuredTrial],
    random: Random,
    p99_of_b: float = 1.0,
    untied: Mapping[str, float] | None = None,
) -> list[MeasuredTrial]:
    """The trials with figures of every metric; the p99 latency of variant b is so many times as high.

    `untied` as in `with_secondary_metrics`; mean latency and CPU time do follow these losses.
    """
    made = []
    for trial in with_secondary_metrics(trials, random, p99_of_b, untied):
        if trial.figures is None:
            made.append(trial)
            continue
        mean_us = trial.point.value / trial.figures.throughput * 1e6
        loss = (untied or {}).get(trial.variant, 0.0)
        cpu_us = CPU_US * math.exp(loss + random.normal(0.0, CPU_SD))
        figures = with_values(trial.figures, latency_mean_us=mean_us, cpu_us_per_transaction=cpu_us)
        made.append(replace(trial, figures=figures))
    return made


def false_share(of: Experiment, world: World, count: int, looks: Sequence[int], seed: int) -> float:
    """The share of runs with equal variants in which a further metric has a wrong verdict, over all loads or
    at one, after any of these numbers of blocks.
    """
    random = np.random.default_rng(seed)
    wrong = 0
    for _ in range(count):
        trials = with_figures(simulate(of, world, random), random)
        wrong += any(_is_wrong(of, [one for one in trials if one.block < blocks]) for blocks in looks)
    return wrong / count


def _is_wrong(of: Experiment, trials: Sequence[MeasuredTrial]) -> bool:
    judged = [one.judged for further in compare_further(trials, of, []) for one in further]
    return any(word in _WRONG for one in judged for word in (one.verdict, *one.load_verdicts))


def guarantees(noise: World) -> list[Guarantee]:
    """The guarantees about the further metrics; `noise` is the noisiest world."""
    one, four = experiment(), experiment(variants=4, loads=3, blocks=10)
    stopped = stopping(experiment(), max_blocks=16)
    looks = "2 equal variants, judged up to 16 blocks whatever ends the run"
    return [
        _false_words("2 equal variants, normal noise", one, World(), (8,)),
        _false_words("4 equal variants, 3 loads, noise of every kind", four, noise, (10,), cost=8),
        _false_words(looks, stopped, World(), (9, 12, 16), cost=4),
    ]


def _false_words(
    guarantee: str, of: Experiment, world: World, looks: Sequence[int], *, cost: int = 1
) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        wrong = false_share(with_metrics(of), world, sample.count, looks, seed=sample.seed(18))
        text = f"{guarantee}: any wrong verdict on 3 further metrics"
        return [Row(text, sample.count, wrong, 0.05)]

    return Guarantee(measure, cost)
