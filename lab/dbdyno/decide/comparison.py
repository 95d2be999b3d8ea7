"""One variant against the baseline on one workload: pairs of trials of the same block, and their
log ratios.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dbdyno.decide.capacity import Capacities
from dbdyno.decide.effects import Conditions, Judged
from dbdyno.decide.order_effect import order_effect
from dbdyno.experiment.differences import describe_differences
from dbdyno.experiment.family import is_factorial
from dbdyno.experiment.metrics import HIGHER_IS_BETTER, change_of_loss
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.measure.foreign_load import shares_of_pairs, weighted_pairs, weighted_ratios, without_foreign_load
from dbdyno.say.wording import finite
from dbdyno.stats.paired import ALPHA, Bound, Effect, Ratios, effect
from dbdyno.stats.signed_rank import percent
from dbdyno.stats.verdict_rule import RESULTS, Circumstances, Verdict
from dbdyno.store import verdict
from dbdyno.store.document import Metric, PointDict
from dbdyno.store.measured import BlockEffects, ComparisonBlockEffects, MeasuredTrial, PointBlockEffects
from dbdyno.store.verdict import OrderEffect
from dbdyno.text import compose, join

# Maximum number of failure reasons in a sentence.
REASONS = 2


@dataclass(frozen=True)
class Scale:
    """The metric and the limits of a verdict; the same for all comparisons of an experiment."""

    metric: Metric
    # None if the experiment declares no zone of equivalence; the verdict is then never "equivalent".
    delta_percent: float | None
    # The number by which the error rate is divided, see `experiment.family.error_shares`.
    family: float
    # Number of tests (workloads) of a variant that share one part.
    tests: int = 1

    @property
    def alpha(self) -> float:
        """Significance level of the intervals of one variant, which are simultaneous over its tests."""
        return ALPHA / self.family

    @property
    def alpha_of_test(self) -> float:
        """Significance level for what is tested in each of these tests alone."""
        return self.alpha / self.tests

    @property
    def higher_is_faster(self) -> bool:
        """Whether a higher value of the metric is better."""
        return self.metric in HIGHER_IS_BETTER

    def limit_percent(self, max_loss_percent: float) -> float:
        """The change of the metric that is the largest allowed loss."""
        return change_of_loss(self.metric, max_loss_percent)


@dataclass(frozen=True)
class Pairs:
    """The trials at one load, of the blocks in which both variants have results."""

    at: PointDict
    # Block -> trial.
    baseline: Mapping[int, MeasuredTrial]
    variant: Mapping[int, MeasuredTrial]

    def ratios(self, metric: str) -> Ratios:
        """The log ratios of variant to baseline, per block in which both are known, without the load of other
        processes.
        """
        return log_ratios(self.baseline, self.variant, metric)

    def measured_ratios(self, metric: str) -> Ratios:
        """The same with the load of other processes."""
        return measured_ratios(self.baseline, self.variant, metric)


def log_ratios(
    baseline: Mapping[int, MeasuredTrial], variant: Mapping[int, MeasuredTrial], metric: str
) -> Ratios:
    """The log ratios of two trials of each block, if both are known, without the load of other processes;
    the arguments are by block.
    """
    measured = measured_ratios(baseline, variant, metric)
    return without_foreign_load(measured, shares_of_pairs(baseline, variant), metric)


def measured_ratios(
    baseline: Mapping[int, MeasuredTrial], variant: Mapping[int, MeasuredTrial], metric: str
) -> Ratios:
    """The same with the load of other processes."""
    both = weighted_pairs(baseline, variant)
    with_metric = {
        block: of_block for block, of_block in both.items() if all(t.has(metric) for _, t in of_block)
    }
    return weighted_ratios(with_metric, metric)


def pair(trials: Sequence[MeasuredTrial], at: PointDict, baseline: str, variant: str) -> Pairs:
    """The pairs at one load, in the order of `trials`; blocks without a result of both variants are left
    out.
    """
    by_variant: dict[str, dict[int, MeasuredTrial]] = {baseline: {}, variant: {}}
    for trial in trials:
        if trial.at == at and trial.is_result and trial.variant in by_variant:
            by_variant[trial.variant][trial.block] = trial
    both = [block for block in by_variant[baseline] if block in by_variant[variant]]
    return Pairs(
        at=at,
        baseline={block: by_variant[baseline][block] for block in both},
        variant={block: by_variant[variant][block] for block in both},
    )


@dataclass(frozen=True)
class Sample:
    """Which of one variant and the baseline is better on one workload, by one metric: the trials that answer
    this, and what forbids an answer.
    """

    baseline: str
    variant: str
    workload: str
    scale: Scale
    # The two variants differ only in their names.
    is_identical: bool
    # The change of the metric that the gate allows; None without a gate.
    limit_percent: float | None
    trials: Sequence[MeasuredTrial]
    pairs: tuple[Pairs, ...]
    # The capacities under the latency objective of the experiment. The verdict is about them, not about
    # single loads.
    capacities: Capacities | None
    # About its variants, its workload, or the complete run.
    findings: tuple[Finding, ...]
    # Those that forbid an answer.
    stops: tuple[Finding, ...]

    @property
    def names(self) -> tuple[str, str, str]:
        """Baseline, variant and workload."""
        return self.baseline, self.variant, self.workload

    def ratios(self) -> Sequence[Ratios]:
        """The log ratios at each load; with a latency objective, those of the capacities."""
        if self.capacities:
            return [self.capacities.ratios()]
        return [pairs.ratios(self.scale.metric) for pairs in self.pairs]

    def conditions(self, floors: NoiseFloors | None = None) -> Conditions:
        """All inputs of the verdict other than the effects."""
        scale = self.scale
        return Conditions(
            higher_is_faster=scale.higher_is_faster,
            circumstances=Circumstances(
                is_stopped=bool(self.stops), is_unfinished=is_unfinished(self.trials)
            ),
            delta_percent=scale.delta_percent,
            load_floors=floors.per_load(self) if floors else (),
            floor_percent=floors.overall(self) if floors else None,
            limit_percent=self.limit_percent,
            group=f"{self.variant} {scale.metric}" if scale.tests > 1 else None,
        )


class NoiseFloors:
    """Noise floors per workload and metric: the largest absolute end of an interval of identical variants."""

    def __init__(self, identical: Iterable[tuple[Sample, Judged]]) -> None:
        self._judged: dict[tuple[str, str], list[Judged]] = defaultdict(list)
        for sample, judged in identical:
            self._judged[self._key(sample)].append(judged)

    @staticmethod
    def _key(sample: Sample) -> tuple[str, str]:
        return sample.workload, sample.scale.metric

    def overall(self, sample: Sample) -> float | None:
        """The noise floor over all loads; None without identical variants."""
        return _largest([_floor(entry.overall) for entry in self._judged.get(self._key(sample), ())])

    def per_load(self, sample: Sample) -> tuple[float | None, ...]:
        """The noise floor at each load."""
        floors = [map(_floor, entry.load_effects) for entry in self._judged.get(self._key(sample), ())]
        return tuple(map(_largest, zip(*floors, strict=True)))


def _floor(effect: Effect | None) -> float | None:
    ends = effect.interval_percent if effect else None
    return max(map(abs, ends)) if ends else None


def _largest(floors: Sequence[float | None]) -> float | None:
    return max((floor for floor in floors if floor is not None), default=None)


@dataclass(frozen=True)
class Comparison(Sample):
    """A sample with its verdicts."""

    judged: Judged
    floors: NoiseFloors
    experiment: Experiment

    @property
    def is_factorial(self) -> bool:
        """Whether the run is factorial: the sentences about factors have the verdicts."""
        return is_factorial(self.experiment) and not self.is_identical

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if the factors have the verdicts."""
        return None if self.is_factorial and self.judged.verdict in RESULTS else self.judged.verdict

    def differences(self, *, server: bool = True) -> tuple[str, ...]:
        """What the variant has and the baseline has not, one short text each; with `server` false only those
        that are not its server's.
        """
        variant = self.experiment.variant(self.variant)
        return tuple(describe_differences(self.experiment, variant, self.findings, server=server))

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of blocks of this comparison in which all trials have run, and number of planned blocks."""
        return finished_and_planned(self.trials, self.experiment)

    @property
    def blocks_at_most(self) -> int | None:
        """With `design.stop`, the number of blocks that the run may have."""
        return blocks_at_most(self.trials, self.experiment)

    @property
    def failures(self) -> Mapping[str, str]:
        """Variant -> a text with the number of trials in which its server failed, and the reasons."""
        return dict(failures(self.trials))

    @property
    def floor_percent(self) -> float | None:
        """Noise floor over all loads."""
        return None if self.is_identical else self.floors.overall(self)

    @property
    def load_floors(self) -> tuple[float | None, ...]:
        """Noise floor at each load; empty without one."""
        return () if self.is_identical else self.floors.per_load(self)

    @property
    def order(self) -> OrderEffect | None:
        """The order effect. An unfinished run has no intervals, so that nobody stops a run after a lucky
        block.
        """
        if is_unfinished(self.trials):
            return None
        ratios = self.judged.assessment.overall_ratios
        return order_effect(ratios, self.trials, self.baseline, self.variant)

    @property
    def incomplete_variants(self) -> frozenset[str]:
        """Variants that have no result at some load."""
        return frozenset(
            name
            for name in (self.baseline, self.variant)
            if any(pairs.at not in self._measured(name) for pairs in self.pairs)
        )

    @property
    def variants_without_metric(self) -> tuple[str, ...]:
        """Variants with results at some load whose metric is unknown there."""
        metric = self.scale.metric
        if self.capacities:
            return ()
        return tuple(
            name
            for name in (self.baseline, self.variant)
            if any(at not in self._measured(name, metric) for at in self._measured(name))
        )

    def _measured(self, variant: str, metric: str | None = None) -> list[PointDict]:
        """The loads of a variant's trials with a result, or with this metric."""
        results = [trial for trial in self.trials if trial.variant == variant and trial.is_result]
        return [trial.at for trial in results if metric is None or trial.has(metric)]


def is_unfinished(trials: Sequence[MeasuredTrial]) -> bool:
    """Whether any planned trial has not run."""
    return any(trial.failed_by == "not-run" for trial in trials)


def finished_and_planned(trials: Sequence[MeasuredTrial], experiment: Experiment) -> tuple[int, int]:
    """Number of blocks in which all of these trials have run, and number of blocks that should count.

    With `design.stop` every finished block should count, and no other.
    """
    unfinished = {trial.block for trial in trials if trial.failed_by == "not-run"}
    finished, planned = len({trial.block for trial in trials} - unfinished), experiment.design.blocks
    if experiment.design.stop and finished:
        return finished, finished
    return min(planned, finished), planned


def blocks_at_most(trials: Sequence[MeasuredTrial], experiment: Experiment) -> int | None:
    """With `design.stop`, the number of blocks that the run may have."""
    finished, _ = finished_and_planned(trials, experiment)
    return max(finished, experiment.design.blocks) if experiment.design.stop else None


def failures(trials: Sequence[MeasuredTrial]) -> Iterator[tuple[str, str]]:
    """For each variant with failures of its server, a text with their number and reasons."""
    for variant in dict.fromkeys(trial.variant for trial in trials):
        of_variant = [trial for trial in trials if trial.variant == variant]
        reasons = Counter(str(trial.failure) for trial in of_variant if trial.failed_by == "server")
        if reasons:
            listed = join(", ", (reason.rstrip(".") for reason, _ in reasons.most_common(REASONS)))
            yield (
                variant,
                compose(
                    "{sum} of {number} trials of {variant} failed: {listed}",
                    sum=sum(reasons.values()),
                    number=len(of_variant),
                    variant=variant,
                    listed=listed,
                ),
            )


def comparison_entry(
    comparison: Comparison,
    sentence: str,
    caveats: Sequence[str] = (),
    secondary_metrics: Sequence[verdict.SecondaryMetric] = (),
    *,
    metrics: Sequence[verdict.MetricComparison] = (),
    highest: verdict.HighestThroughput | None = None,
) -> verdict.Comparison:
    """One entry of `comparisons` in verdict.json; `metrics` are the further metrics."""
    return verdict.Comparison(
        variant=comparison.variant,
        workload=comparison.workload,
        identical=True if comparison.is_identical else None,
        differs=list(comparison.differences()) or None,
        **dict(metric_entry(comparison, sentence, caveats)),
        capacity=comparison.capacities.entry() if comparison.capacities else None,
        highest_throughput=highest,
        metrics=list(metrics) or None,
        secondary_metrics=list(secondary_metrics) or None,
        order=comparison.order,
    )


def metric_entry(
    comparison: Comparison, sentence: str, caveats: Sequence[str] = ()
) -> verdict.MetricComparison:
    """The effects on one metric in verdict.json."""
    overall = comparison.judged.overall
    return verdict.MetricComparison(
        points=[
            _point(comparison, index) if comparison.capacities is None else _rate_point(pairs, comparison)
            for index, pairs in enumerate(comparison.pairs)
        ],
        curve=verdict.CombinedEffect(
            metric=comparison.scale.metric,
            **change(overall, comparison.judged.assessment.alpha),
            noise_floor_percent=finite(comparison.floor_percent),
            delta_percent=comparison.scale.delta_percent,
            p_value=overall_p_value(comparison.judged),
            verdict=comparison.verdict.value if comparison.verdict else None,
            sentence=sentence,
            caveats=list(caveats),
        ),
    )


def _rate_point(pairs: Pairs, comparison: Comparison) -> verdict.Point:
    """One entry of `points` with a latency objective: its percentile at one rate. It is part of the capacity,
    and has no interval and no verdict of its own.
    """
    assert comparison.capacities is not None, "the caller has checked it"
    scale = replace(comparison.scale, metric=comparison.capacities.objective.metric)
    estimate = effect(pairs.ratios(scale.metric))
    estimate = replace(estimate, interval_percent=None) if estimate else None
    return _entry(comparison, scale, pairs, estimate, None)


def _point(comparison: Comparison, index: int) -> verdict.Point:
    """One entry of `points` in verdict.json."""
    word = comparison.judged.load_verdicts[index]
    shown = None if comparison.is_factorial and word in RESULTS else word
    load_effect = comparison.judged.load_effects[index]
    floors = comparison.load_floors
    point = _entry(comparison, comparison.scale, comparison.pairs[index], load_effect, shown)
    return point.model_copy(update={"noise_floor_percent": finite(floors[index]) if floors else None})


def _entry(
    comparison: Comparison, scale: Scale, pairs: Pairs, effect: Effect | None, word: Verdict | None
) -> verdict.Point:
    """One entry of `points`. Its two values are medians over the blocks."""
    by_role = {"baseline": pairs.baseline, "variant": pairs.variant}
    censored = {
        name: any(t.figures is not None and scale.metric in t.figures.censored for t in by_block.values())
        for name, by_block in by_role.items()
    }
    return verdict.Point(
        at=pairs.at,
        metric=scale.metric,
        baseline=_median(pairs.baseline, scale.metric),
        variant=_median(pairs.variant, scale.metric),
        **change(effect, comparison.judged.assessment.alpha),
        noise_floor_percent=None,
        delta_percent=scale.delta_percent,
        trials=verdict.TrialIndices(
            **{name: [t.index for t in by_block.values()] for name, by_block in by_role.items()}
        ),
        verdict=word.value if word else None,
        censored=verdict.CensoredMedians(**censored) if any(censored.values()) else None,
    )


def _median(by_block: Mapping[int, MeasuredTrial], metric: str) -> float | None:
    """The median over the blocks; None if it is infinite because the server failed in most trials."""
    values = [trial.value(metric) for trial in by_block.values() if trial.has(metric)]
    median = float(np.median(values)) if values else math.nan
    return median if math.isfinite(median) else None


def change(effect: Effect | None, alpha: float | None = None) -> dict[str, Any]:
    """An effect with the keys of verdict.json and explained.json; `alpha` is that of its interval."""
    ends = effect.interval_percent if effect else None
    return {
        "effect_percent": finite(effect.effect_percent) if effect else None,
        "interval_percent": ends and (finite(ends[0]), finite(ends[1])),
        "bound": None if effect is None or effect.bound == Bound.EXACT else effect.bound.value,
        "blocks": effect.blocks if effect else 0,
        "confidence": 1.0 - (alpha or (effect.alpha if effect else 0.0)),
    }


def overall_p_value(judged: Judged) -> float | None:
    """The p-value over all loads. An unfinished run has none, so that nobody stops a run after a
    lucky block.
    """
    is_unfinished = judged.verdict == Verdict.UNFINISHED
    return judged.overall.p_value if judged.overall and not is_unfinished else None


def _blocks_percent(ratios: Ratios) -> dict[str, float | None]:
    """Block -> change in percent. If only bounds are known, the finite one; None if neither is finite."""
    finite_logs = {b: low if math.isfinite(low) else ratios.highs[b] for b, low in ratios.lows.items()}
    return {str(block): percent(r) if math.isfinite(r) else None for block, r in finite_logs.items()}


def comparison_blocks(comparison: Comparison) -> ComparisonBlockEffects:
    """The effect in every single block, for the charts."""
    assessment = comparison.judged.assessment
    is_finished = comparison.judged.verdict != Verdict.UNFINISHED
    effects: Sequence[Effect | None] = assessment.load_effects
    ratios_of_loads: Sequence[Ratios] = assessment.ratios
    if comparison.capacities is not None:
        effects = [None] * len(comparison.pairs)
        ratios_of_loads = [entry.ratios(comparison.capacities.objective.metric) for entry in comparison.pairs]
    return ComparisonBlockEffects(
        variant=comparison.variant,
        workload=comparison.workload,
        points=[
            PointBlockEffects(
                at=pairs.at,
                p_value=effect.p_value if effect and is_finished else None,
                percent=_blocks_percent(ratios),
            )
            for pairs, effect, ratios in zip(comparison.pairs, effects, ratios_of_loads, strict=True)
        ],
        curve=BlockEffects(
            p_value=overall_p_value(comparison.judged), percent=_blocks_percent(assessment.overall_ratios)
        ),
    )
