"""The highest throughput of each variant over the loads of a closed loop, as a line next to the verdict.

It is an estimate with an interval, not a verdict: it has no direction, and its interval is outside the error
rate of the verdicts and second lines. Those of all comparisons of a run hold together.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from dbdyno.decide.comparison import Comparison, change, log_ratios
from dbdyno.decide.decision import stopping
from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.say.wording import connections_count, effect_text, size_text
from dbdyno.stats.highest import highest_effect
from dbdyno.stats.paired import ALPHA, Effect
from dbdyno.stats.repeated import Looks
from dbdyno.stats.verdict_rule import RESULTS
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import HighestMedian, HighestThroughput
from dbdyno.text import compose

# Throughputs below this have three digits in the sentence.
SMALL = 100.0


def highest_throughput(comparison: Comparison, experiment: Experiment) -> HighestThroughput | None:
    """The entry in verdict.json; None in open loops and factorial runs, with one load, without a result, and
    if a server failed in most trials of every load.
    """
    loads = comparison.pairs
    has_result = comparison.judged.verdict in RESULTS and not comparison.is_factorial
    if not has_result or experiment.load.has_set_rate or len(loads) < 2:
        return None
    medians = [[_median(of_load) for of_load in (one.baseline, one.variant)] for one in loads]
    baseline, variant = (max(range(len(loads)), key=lambda load: medians[load][role]) for role in (0, 1))
    highest = [
        HighestMedian(connections=loads[load].at["connections"], throughput=medians[load][role])
        for role, load in enumerate((baseline, variant))
    ]
    stop = stopping(experiment)
    effect = highest_effect(
        [[log_ratios(base.baseline, other.variant, THROUGHPUT) for other in loads] for base in loads],
        (baseline, variant),
        ALPHA if comparison.is_identical else comparison.scale.alpha_of_test,
        Looks(stop.last, planned=stop.planned) if stop else None,
    )
    if effect is None or not all(one.throughput for one in highest):
        return None
    return HighestThroughput(
        baseline=highest[0],
        variant=highest[1],
        **change(effect),
        confidence=1.0 - effect.alpha,
        blocks=effect.blocks,
        sentence=_sentence(comparison, highest[0], highest[1], effect),
    )


def _median(by_block: Mapping[int, MeasuredTrial]) -> float:
    return median(trial.value(THROUGHPUT) for trial in by_block.values())


def _sentence(comparison: Comparison, baseline: HighestMedian, variant: HighestMedian, effect: Effect) -> str:
    """Highest throughput, WORKLOAD: b 5,210 /s at 64 connections, a 4,980 /s at 32: +4.6 % (…)."""
    shown = size_text(effect) or effect_text(THROUGHPUT, effect)
    return compose(
        "Highest throughput, {workload}: {variant} {rate} at {count}, {baseline} {rate_2} at "
        "{connections:g}: {shown}",
        workload=comparison.workload,
        variant=comparison.variant,
        rate=_rate(variant),
        count=connections_count(round(variant.connections)),
        baseline=comparison.baseline,
        rate_2=_rate(baseline),
        connections=baseline.connections,
        shown=shown,
    )


def _rate(one: HighestMedian) -> str:
    return f"{one.throughput:,.0f} /s" if one.throughput >= SMALL else f"{one.throughput:.3g} /s"
