"""What a comparison says next to its verdict: secondary metrics (latency percentiles, errors and stability at
every load), and the highest throughput.

::

    figure of each trial -> log ratio of each block -> joint sign-flip test of all figures at all loads

A variant with equal throughput may have ten times the p99 latency. The secondary metrics share the 5 % of the
verdicts (`stats/family.py`): they have a fifth, or all of it if every verdict of the run is certain. The
sentence of a verdict names those that are significant and contradict it, and all that are significant if the
verdict has no direction.

Which figures are compared at a load never depends on the variant of a trial, so the test stays valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median, stdev
from typing import Literal, get_args

from dbdyno.decide.comparison import Comparison, Pairs, change, log_ratios
from dbdyno.decide.decision import share_of_verdicts, stopping
from dbdyno.experiment.metrics import PERCENTILES, THROUGHPUT, metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.measure.foreign_load import shares_of_pairs, without_foreign_load
from dbdyno.result_text import connections_count, decimals_for, is_ratio, times
from dbdyno.say.wording import confidence, effect_text, interval, loads, size_text, times_interval
from dbdyno.stats.capacity import highest_effect
from dbdyno.stats.family import is_within, line_levels
from dbdyno.stats.paired import ALPHA, Effect, Ratios, joint_effects
from dbdyno.stats.repeated import Looks
from dbdyno.stats.verdict_rule import DIRECTIONS, RESULTS, Verdict
from dbdyno.store.document import PointDict, SecondaryMetricKey
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import HighestMedian, HighestThroughput, SecondaryMetric
from dbdyno.text import compose, join

# A percentile is compared if at least this many transactions of every trial are beyond it.
BEYOND_MIN = 30
# Errors are compared if one of the two trials of every block has at least this many.
ERRORS_MIN = 5
# The stability is compared if every trial has at least this many intervals.
INTERVALS_MIN = 5
# An interval that is shorter than this share of the longest one does not count.
LENGTH_SHARE = 0.9
# Maximum number of secondary metrics in a sentence.
CLAUSES = 3
METRICS: tuple[SecondaryMetricKey, ...] = get_args(SecondaryMetricKey)
# Those that are no metrics of verdicts -> their names in sentences.
_NAMES = {
    "errors_per_1000": compose("the error rate"),
    "variation_percent": compose("the variation of throughput between seconds"),
}

# Baseline's and variant's trials of each block, which all have figures.
_Blocks = Sequence[tuple[MeasuredTrial, MeasuredTrial]]


@dataclass(frozen=True)
class Line:
    """One metric at one load."""

    # Index of the load.
    load: int
    at: PointDict
    metric: SecondaryMetricKey
    effect: Effect
    # Medians over the blocks.
    baseline: float
    variant: float
    # None if the direction is not significant.
    direction: Literal["better", "worse"] | None = None

    def entry(self) -> SecondaryMetric:
        """The entry in verdict.json."""
        return SecondaryMetric(
            at=self.at,
            metric=self.metric,
            baseline=self.baseline,
            variant=self.variant,
            **change(self.effect),
            direction=self.direction,
        )


def secondary_metrics(comparisons: Sequence[Comparison], experiment: Experiment) -> list[list[Line]]:
    """The secondary metrics of each comparison, in the same order; [] without a result, and in factorial
    runs.
    """
    stop = stopping(experiment)
    looks = Looks(stop.last, line_levels(), stop.planned) if stop else None
    family = [comparison for comparison in comparisons if not comparison.is_identical]
    is_complete = bool(family) and all(entry.judged.is_complete for entry in family)
    share = 1.0 if is_complete else 1.0 - share_of_verdicts(experiment)
    of_each = [_lines(comparison, looks, experiment.metrics) for comparison in comparisons]
    floors: dict[tuple[str, int, SecondaryMetricKey], float] = {}
    for other_comparison, lines in zip(comparisons, of_each, strict=True):
        if other_comparison.is_identical:
            # What the identical variants do not tell is unknown noise.
            missing = {
                (other_comparison.workload, load, metric)
                for load in range(len(other_comparison.pairs))
                for metric in METRICS
            }
            missing -= {(other_comparison.workload, line.load, line.metric) for line in lines}
            floors |= dict.fromkeys(missing, math.inf)
            for line in lines:
                key = (other_comparison.workload, line.load, line.metric)
                ends = line.effect.interval_percent or (-math.inf, math.inf)
                floors[key] = max(floors.get(key, 0.0), *map(abs, ends))
    return [
        [_with_direction(line, comparison, floors, share) for line in lines]
        for comparison, lines in zip(comparisons, of_each, strict=True)
    ]


def _with_direction(
    line: Line,
    comparison: Comparison,
    floors: Mapping[tuple[str, int, SecondaryMetricKey], float],
    share: float,
) -> Line:
    """The line with its direction if it is decided, that is, beyond chance and beyond the noise floor.

    `share` is that of the secondary metrics in the error rate. The interval of a line contains zero unless
    the line is beyond chance.
    """
    effect = line.effect
    if comparison.is_identical:
        return line
    if not is_within(effect.p_value, share * comparison.scale.alpha_of_test):
        return replace(line, effect=effect.with_zero())
    floor = floors.get((comparison.workload, line.load, line.metric), 0.0)
    is_significant = effect.is_significant and abs(effect.effect_percent) > floor
    if not is_significant:
        return line
    direction: Literal["better", "worse"] = "better" if effect.effect_percent < 0.0 else "worse"
    return replace(line, direction=direction)


def _lines(comparison: Comparison, looks: Looks | None, declared: Sequence[str]) -> list[Line]:
    """The secondary metrics of one comparison, without their directions and the `declared` metrics."""
    if comparison.is_factorial or comparison.judged.verdict not in RESULTS:
        return []
    rows: list[tuple[int, SecondaryMetricKey, Ratios, float, float]] = []
    for load, pairs in enumerate(comparison.pairs):
        blocks = [(base, pairs.variant[block]) for block, base in pairs.baseline.items()]
        if not all(trial.figures and trial.figures.keeps_up for pair in blocks for trial in pair):
            continue
        for metric, value in _values(blocks):
            if metric not in declared:
                shown = _errors_per_1000 if metric == "errors_per_1000" else value
                medians = [median(map(shown, trials.values())) for trials in (pairs.baseline, pairs.variant)]
                rows.append((load, metric, _log_ratios(pairs, metric, value), medians[0], medians[1]))
    alpha = ALPHA if comparison.is_identical else comparison.scale.alpha_of_test
    effects = joint_effects([ratios for _, _, ratios, _, _ in rows], alpha, looks)
    return [
        Line(load, comparison.pairs[load].at, metric, effect, baseline, variant)
        for (load, metric, _, baseline, variant), effect in zip(rows, effects, strict=True)
        if effect is not None
    ]


def _log_ratios(pairs: Pairs, metric: str, value: Callable[[MeasuredTrial], float]) -> Ratios:
    """The log ratio of each block, without the load of other processes."""
    ratios = {
        block: math.log(value(pairs.variant[block]) / value(base)) for block, base in pairs.baseline.items()
    }
    shares = shares_of_pairs(pairs.baseline, pairs.variant)
    return without_foreign_load(Ratios(ratios, ratios), shares, metric)


def _values(blocks: _Blocks) -> Iterator[tuple[SecondaryMetricKey, Callable[[MeasuredTrial], float]]]:
    """The metrics that can be compared at one load, each with its positive value of a trial."""
    trials = [trial for pair in blocks for trial in pair]
    if not trials:
        return
    fewest = min(_events(trial) for trial in trials)
    for metric in METRICS:
        percent = PERCENTILES.get(metric)
        if percent is None or round(fewest * (100.0 - percent) / 100.0, 6) < BEYOND_MIN:
            continue
        if not any(trial.figures and metric in trial.figures.censored for trial in trials):
            yield metric, partial(MeasuredTrial.value, metric=metric)
    if all(max(map(_errors, pair)) >= ERRORS_MIN for pair in blocks):
        yield "errors_per_1000", partial(_errors_per_1000, added=0.5)
    variations = {id(trial): _variation_percent(trial) for trial in trials}
    if all(variation > 0.0 for variation in variations.values()):
        yield "variation_percent", lambda trial: variations[id(trial)]


def _events(trial: MeasuredTrial) -> int:
    return trial.figures.events if trial.figures else 0


def _errors(trial: MeasuredTrial) -> int:
    return sum(trial.figures.errors.values()) if trial.figures else 0


def _errors_per_1000(trial: MeasuredTrial, added: float = 0.0) -> float:
    """Errors per 1,000 transactions; with half an error `added`, the logarithm of no errors exists."""
    return (_errors(trial) + added) / _events(trial) * 1000.0


def _variation_percent(trial: MeasuredTrial) -> float:
    """Standard deviation of the throughput of the seconds, in percent of its mean; 0 if it is unknown."""
    window = trial.window
    if window is None:
        return 0.0
    inside = [
        second for second in trial.seconds if second[0] >= window.start_us and second[1] <= window.end_us
    ]
    longest = max((end - start for start, end, _ in inside), default=0)
    rates = [
        events / (end - start) for start, end, events in inside if end - start >= LENGTH_SHARE * longest > 0.0
    ]
    if len(rates) < INTERVALS_MIN or not any(rates):
        return 0.0
    return stdev(rates) / fmean(rates) * 100.0


def contradictions(comparison: Comparison, lines: Sequence[Line]) -> list[Line]:
    """The significant lines whose direction is not that of the verdict at their load, the largest first.

    If the verdict is *equivalent*, lines within the declared zone of equivalence are left out.
    """
    shown = []
    delta = comparison.scale.delta_percent
    for line in lines:
        is_equivalent = comparison.judged.verdict == Verdict.EQUIVALENT
        if is_equivalent and delta is not None and line.effect.lies_within(delta):
            continue
        # The capacity has one verdict for all rates.
        verdict = comparison.judged.load_verdicts[0 if comparison.capacities else line.load]
        if verdict not in DIRECTIONS:
            verdict = comparison.judged.verdict
        same = {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}.get(verdict)
        if line.direction not in (None, same):
            shown.append(line)
    return sorted(shown, key=lambda line: -abs(math.log1p(line.effect.effect_percent / 100.0)))


def but_clause(comparison: Comparison, lines: Sequence[Line]) -> str:
    """The contradictions as the end of a sentence: "; but p99 latency is …"; "" without any."""
    shown = contradictions(comparison, lines)
    # The sentence itself has the only load.
    of_loads = len(comparison.pairs) > 1
    clauses = [_clause(line, with_load=of_loads) for line in shown[:CLAUSES]]
    if len(shown) > CLAUSES:
        clauses.append(
            compose("{number} more in the table of secondary metrics", number=len(shown) - CLAUSES)
        )
    return compose("; but {listed}", listed=join(", ", clauses)) if clauses else ""


def _clause(line: Line, *, with_load: bool) -> str:
    """One line: p99 latency is 38.0 % higher (95 % interval +30.1 to +46.2) at 16 connections."""
    effect, ends = line.effect, line.effect.interval_percent
    assert ends is not None, "a line with a direction has an interval"
    at = join("", (" ", loads([line.at]))) if with_load else ""
    if line.baseline == 0.0:
        # A ratio to none depends on the half that is added.
        return compose(
            "{names} is {variant:.3g}{unit} instead of 0{loads}",
            names=_NAMES.get(line.metric) or metric_text(line.metric),
            variant=line.variant,
            unit=compose(" per 1,000 transactions") if line.metric == "errors_per_1000" else "",
            loads=at,
        )
    if is_ratio(effect.effect_percent):
        size, inside = (
            compose("{times} times as high", times=times(effect.effect_percent)),
            times_interval(ends),
        )
    else:
        decimals = decimals_for((effect.effect_percent, *ends))
        percent = f"{abs(effect.effect_percent):.{decimals}f}"
        size = (
            compose("{percent} % higher", percent=percent)
            if effect.effect_percent > 0.0
            else compose("{percent} % lower", percent=percent)
        )
        inside = interval(ends, decimals)
    return compose(
        "{names} is {size} ({confidence} {inside}){loads}",
        names=_NAMES.get(line.metric) or metric_text(line.metric),
        size=size,
        confidence=confidence(effect.alpha),
        inside=inside,
        loads=at,
    )


# Throughputs below this have three digits in the sentence.
SMALL = 100.0


def highest_throughput(comparison: Comparison, experiment: Experiment) -> HighestThroughput | None:
    """The highest throughput of each variant over the loads of a closed loop, as the entry in verdict.json;
    None in open loops and factorial runs, with one load, without a result, and if a server failed in most
    trials of every load.

    It is an estimate with an interval, not a verdict: it has no direction, and its interval is outside the
    error rate of the verdicts and secondary metrics. Those of all comparisons of a run hold together.
    """
    loads = comparison.pairs
    has_result = comparison.judged.verdict in RESULTS and not comparison.is_factorial
    if not has_result or experiment.load.has_set_rate or len(loads) < 2:
        return None
    medians = [[_median(of_load) for of_load in (load.baseline, load.variant)] for load in loads]
    baseline, variant = (max(range(len(loads)), key=lambda load: medians[load][role]) for role in (0, 1))
    highest = [
        HighestMedian(connections=loads[load].at["connections"], throughput=medians[load][role])
        for role, load in enumerate((baseline, variant))
    ]
    stop = stopping(experiment)
    effect = highest_effect(
        [[log_ratios(base.baseline, load.variant, THROUGHPUT) for load in loads] for base in loads],
        (baseline, variant),
        ALPHA if comparison.is_identical else comparison.scale.alpha_of_test,
        Looks(stop.last, planned=stop.planned) if stop else None,
    )
    if effect is None or not all(entry.throughput for entry in highest):
        return None
    return HighestThroughput(
        baseline=highest[0],
        variant=highest[1],
        **change(effect),
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


def _rate(highest_median: HighestMedian) -> str:
    return (
        f"{highest_median.throughput:,.0f} /s"
        if highest_median.throughput >= SMALL
        else f"{highest_median.throughput:.3g} /s"
    )
