"""D01: whether the load generator was short of CPU time or late, so that it limits the result.

P13: whether the load generator could produce much more load than was measured.

D08: whether the engines of a fleet began together and were equally fast.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dbdyno.decide.comparison import Comparison
from dbdyno.experiment.metrics import PERCENTILES
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import trial_number
from dbdyno.experiment.slices import may_wait
from dbdyno.finding import Finding
from dbdyno.measure.evidence import Engines
from dbdyno.measure.figures import figures_of
from dbdyno.result_text import connections_count, trials_count
from dbdyno.rules.register import SHARE_OF_INTERVAL, rule
from dbdyno.store.measured import Figures, MeasuredTrial
from dbdyno.store.preparation import Ceiling
from dbdyno.store.records import GENERATOR_CPU, EngineWarning
from dbdyno.text import compose, mark

# Code of a warning about the load generator -> the beginning of the finding.
_GENERATOR_PROBLEMS = {
    "generator-late": compose("the load generator woke up late"),
    "client-delay": compose("replies waited for the load generator"),
}


def _caveat_of_generator(finding: Finding) -> str:
    """D01: the finding has the code of the engine's warning, or none if the load generator was
    short of CPU time.
    """
    code = finding.evidence.get("warning")
    if code in _GENERATOR_PROBLEMS:
        return compose("the load generator was late")
    if code in (None, "generator-saturated"):
        return compose("the load generator was near its limit")
    return compose("the engine warned ({code})", code=code)


@rule("D01", caveat=_caveat_of_generator)
def generator(by_variant: Mapping[str, Sequence[MeasuredTrial]]) -> Iterator[Finding]:
    """Variants for which the load generator was short of CPU time."""
    for variant, trials in by_variant.items():
        cpu = {index: f.generator_cpu for index, f in figures_of(trials) if f.generator_cpu > GENERATOR_CPU}
        if cpu:
            yield Finding(
                "D01",
                "warn",
                compose(
                    "in {count} of {variant} the load generator used up to {values:.0f} % of a CPU per "
                    "worker (limit {generator_cpu:.0f} %): the server may be faster than measured",
                    count=trials_count(len(cpu)),
                    variant=variant,
                    values=max(cpu.values()) * 100,
                    generator_cpu=GENERATOR_CPU * 100,
                ),
                {"cpu": {str(index): share for index, share in cpu.items()}},
                variant,
                fix=compose("Give the load generator more CPUs and workers ([client] cpus, workers)"),
            )


# The mean of delays that are distributed exponentially, as a share of their 99th percentile.
MEAN_OF_P99 = 1.0 / math.log(100.0)


@rule("D01")
def generator_warnings(
    warnings: Mapping[int, Sequence[EngineWarning]],
    trials: Sequence[MeasuredTrial],
    every_comparison: Sequence[Comparison],
    experiment: Experiment,
) -> Iterator[Finding]:
    """Warnings about the load generator, one finding per code: notes if no effect can contain much of the
    delay. `warnings` is by index of the trial.
    """
    is_small = bool(every_comparison) and all(
        _hardly_contains_delays(comparison, _has_timers(experiment, comparison))
        for comparison in every_comparison
    )
    lags = {index: figures.generator_lag_us for index, figures in figures_of(trials)}
    by_code: dict[str, list[tuple[int, EngineWarning]]] = defaultdict(list)
    for index, of_trial in warnings.items():
        for warning in of_trial:
            by_code[warning["code"]].append((index, warning))
    for code, entries in by_code.items():
        indices = sorted({index for index, _ in entries})
        index, first = entries[0]
        example = compose("trial {trial_number}", trial_number=trial_number(index))
        where = (
            compose("{count}, for example in {example}", count=trials_count(len(indices)), example=example)
            if len(indices) > 1
            else example
        )
        problem = _GENERATOR_PROBLEMS.get(code, compose("the load generator warned ({code})", code=code))
        yield Finding(
            "D01",
            "note" if is_small and code in _GENERATOR_PROBLEMS else "warn",
            compose("{problem} in {where}: {text}", problem=problem, where=where, text=first["text"]),
            {
                "warning": code,
                "trials": indices,
                "lag_us_p99": max((lags.get(index, 0.0) for index in indices), default=0.0),
            },
            fix=first["hint"],
        )


def _has_timers(experiment: Experiment, comparison: Comparison) -> bool:
    """Whether transactions of the comparison may begin when a timer fires. In a closed loop without pauses a
    reply begins the next one, so late timers delay none.
    """
    *variants, title = comparison.names
    return any(
        experiment.load_for(variant).has_timers or may_wait(experiment.workload_for(variant, title))
        for variant in experiment.variants
        if variant.name in variants
    )


def _hardly_contains_delays(comparison: Comparison, has_timers: bool) -> bool:
    """Whether the delays of the load generator, which differ between the variants, change the effects at all
    loads by less than `SHARE_OF_INTERVAL` of half of their intervals.
    """
    metric = comparison.scale.metric
    for pairs, effect in zip(comparison.pairs, comparison.judged.load_effects, strict=True):
        if effect is None or effect.interval_percent is None:
            return False
        low, high = effect.interval_percent
        shares = [
            [
                _share_of_delay(trial.figures, metric, has_timers)
                for trial in trials.values()
                if trial.figures is not None
            ]
            for trials in (pairs.baseline, pairs.variant)
        ]
        if not all(shares):
            return False
        change_percent = 100.0 * abs(median(shares[1]) - median(shares[0]))
        if change_percent > SHARE_OF_INTERVAL * (high - low) / 2.0:
            return False
    return True


def _share_of_delay(figures: Figures, metric: str, has_timers: bool) -> float:
    """How much of a figure may be a delay of the load generator: of a percentile the 99th percentile of the
    delays, of other metrics their mean.

    Without timers only replies are delayed. Where their delay is not known, as over unix sockets, that of the
    timers stands for it.
    """
    delay_us = figures.generator_delay_us or figures.generator_lag_us
    if has_timers:
        delay_us = max(delay_us, figures.generator_lag_us)
    if metric in PERCENTILES:
        return min(1.0, delay_us / max(figures.metric(metric), 1.0))
    return min(1.0, MEAN_OF_P99 * delay_us / max(figures.latency_mean_us, 1.0))


# The ceiling must be this many times the highest throughput.
CEILING_FACTOR = 2.0


@rule("P13", caveat=mark("the load generator is close to its own limit"))
def client_ceiling(trials: Sequence[MeasuredTrial], ceilings: Mapping[str, Ceiling]) -> Iterator[Finding]:
    """A warning for each workload whose highest throughput is close to the client ceiling."""
    for workload, ceiling in ceilings.items():
        most = ceiling["events_per_s"]
        throughputs = [
            (trial.figures.throughput, trial.variant)
            for trial in trials
            if trial.workload == workload and trial.figures is not None
        ]
        if most is None or not throughputs:
            continue
        peak, variant = max(throughputs)
        if most < CEILING_FACTOR * peak:
            yield Finding(
                "P13",
                "warn",
                compose(
                    "without a server the load generator reaches {most:,.0f} transactions/s of {workload} "
                    "with {connections}, only {factor:.1f} times the highest throughput ({peak:,.0f} of "
                    "{variant}): it may limit the result",
                    most=most,
                    workload=workload,
                    connections=connections_count(ceiling["connections"]),
                    factor=most / peak,
                    peak=peak,
                    variant=variant,
                ),
                {"workload": workload, "ceiling": most, "highest": peak},
                fix=compose("Give the load generator more CPUs and workers ([client] cpus, workers)"),
            )


# Loads that begin further apart do not overlap at the edges of the measurement.
SKEW_MS = 50.0
# A mean latency that is larger than the median of all engines by this factor, and by this time, is that of a
# slow host or a longer way to the server.
SLOW, SLOW_US = 1.25, 100.0


@dataclass(frozen=True)
class _Worst:
    """The engine that is furthest from the others in a trial, and how far it is."""

    value: float
    name: str
    # What a latency is compared with.
    others: str = ""


@rule("D08", caveat=mark("the load generators of the fleet differ"))
def fleet(trials: Sequence[MeasuredTrial], engines: Mapping[int, Engines]) -> Iterator[Finding]:
    """Warnings about the engines of each variant's trials; `engines` is by index of the trial."""
    for variant in dict.fromkeys(trial.variant for trial in trials):
        own_shares = {
            trial.index: engines[trial.index]
            for trial in trials
            if trial.variant == variant and trial.figures is not None and trial.index in engines
        }
        yield from _skew(variant, own_shares)
        yield from _slow(variant, own_shares)


def _skew(variant: str, engines: Mapping[int, Engines]) -> Iterator[Finding]:
    late = {
        index: _Worst(_spread_ms(of_trial), str(max(of_trial, key=_start_of)["name"]))
        for index, of_trial in engines.items()
        if _spread_ms(of_trial) > SKEW_MS
    }
    if late:
        text = mark(
            "in {count} of {variant} the load generators did not begin together: {name} began {value:.0f} ms "
            "after the first one (limit {limit:.0f} ms)"
        )
        fix = compose("Give that host more CPU time, or a clock that a time service keeps")
        yield _fleet_finding(variant, late, "skew_ms", text, fix)


def _slow(variant: str, engines: Mapping[int, Engines]) -> Iterator[Finding]:
    slow: dict[int, _Worst] = {}
    for index, of_trial in engines.items():
        means = {
            str(entry["name"]): entry["latency_mean_us"] for entry in of_trial if entry["latency_mean_us"]
        }
        if len(means) < 2:
            continue
        name = max(means, key=lambda mean: means[mean])
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
        yield _fleet_finding(variant, slow, "latency_ratio", text, fix)


def _fleet_finding(variant: str, by_trial: Mapping[int, _Worst], what: str, text: str, fix: str) -> Finding:
    """The finding about the worst engine of the trials, with its pattern and the key of its evidence."""
    worst = max(by_trial.values(), key=lambda entry: entry.value)
    values = {"count": trials_count(len(by_trial)), "variant": variant, "limit": SKEW_MS, **vars(worst)}
    evidence = {what: {str(index): entry.value for index, entry in by_trial.items()}}
    return Finding("D08", "warn", compose(text, **values), evidence, variant, fix=fix)


def _start_of(engine: Mapping[str, Any]) -> float:
    return float(engine["start_skew_us"])


def _spread_ms(engines: Engines) -> float:
    starts = [_start_of(engine) for engine in engines]
    return (max(starts) - min(starts)) / 1000.0
