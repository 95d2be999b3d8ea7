"""Decides the verdicts of all comparisons of a run, from its measured trials.

The functions here are pure, so benchmarks/truth can call them with simulated trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.experiment.differences import describe_differences, is_identical
from dbdyno.experiment.family import allows_false_discoveries, error_shares, is_factorial
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.finding import Finding
from dbdyno.judge.capacity import capacities
from dbdyno.judge.comparison import Comparison, Scale, pair
from dbdyno.judge.effects import (
    Assessment,
    Conditions,
    Judged,
    Stopping,
    assess,
    assess_jointly,
    judge_family,
    judge_identical,
    overall_looks,
)
from dbdyno.judge.order_effect import order_effect
from dbdyno.stats.family import blocks_for_verdict, verdicts_share
from dbdyno.stats.paired import ALPHA, Effect, Ratios
from dbdyno.stats.repeated import Looks
from dbdyno.stats.verdict_rule import Circumstances, Verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, join

# Codes of the checks whose warnings [override] may override. It may override the stops of every check.
OVERRIDABLE_WARNINGS = frozenset({"D06"})
# Maximum number of failure reasons in a sentence.
REASONS = 2


def scale(experiment: Experiment) -> Scale:
    """The metric and limits of an experiment's verdicts."""
    shares, tests = error_shares(experiment), tests_per_variant(experiment)
    return Scale(experiment.metrics[0], experiment.design.delta_percent, shares, tests)


def tests_per_variant(experiment: Experiment) -> int:
    """Number of tests (workloads) of a variant that are judged jointly.

    Contrasts of factors are not, nor are verdicts whose false discovery rate is limited.
    """
    is_separate = is_factorial(experiment) or allows_false_discoveries(experiment)
    return 1 if is_separate else len(experiment.workloads)


def further_scales(experiment: Experiment) -> list[Scale]:
    """Those of the further metrics of `design.metrics`, which share a second family-wise error rate."""
    further = experiment.metrics[1:]
    size, tests = error_shares(experiment, len(further)), tests_per_variant(experiment)
    return [Scale(metric, experiment.design.delta_percent, size, tests) for metric in further]


def stopping(experiment: Experiment, family: float = 1) -> Stopping | None:
    """What the statistics of `family` tests with a common error rate need; None for fixed blocks."""
    stop = experiment.design.stop
    if stop is None:
        return None
    return Stopping(None if stop.top_up else stop.max_blocks, int(family), stop.max_blocks)


def share_of_verdicts(experiment: Experiment, metric: str | None = None) -> float:
    """The share of the family-wise error rate for the verdicts on the first metric.

    The rest is for the second lines. The further metrics share an error rate of their own.
    """
    if is_factorial(experiment) or metric not in (None, experiment.metrics[0]):
        return 1.0
    design = experiment.design
    return verdicts_share(error_shares(experiment), None if design.stop else design.blocks)


@dataclass(frozen=True)
class VerdictTest:
    """How the effects of one metric over all loads are tested; known before the run."""

    # Significance level of the interval of each effect.
    alpha: float
    # Significance level of the test.
    level: float
    looks: Looks | None
    # Minimum number of blocks with which there can be a verdict.
    blocks_needed: int


def verdict_test(experiment: Experiment, metric: str | None = None) -> VerdictTest:
    """The test of the verdicts by a metric, by default the first."""
    further = metric in experiment.metrics[1:]
    family = error_shares(experiment, len(experiment.metrics) - 1 if further else 1)
    loads = 1 if experiment.load.promise else len(experiment.load.points())
    share, alpha = share_of_verdicts(experiment, metric), ALPHA / family
    stop = stopping(experiment, family)
    looks = overall_looks(stop, loads, share) if stop else None
    return VerdictTest(alpha, share * alpha, looks, blocks_for_verdict(alpha, loads, share, looks))


def compare_all(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding]
) -> list[Comparison]:
    """The comparisons of each variant with the baseline on each workload, in the order of the file.

    `findings` may stop a comparison. With `design.stop` the trials are those of finished blocks, in the order
    in which the blocks were finished.
    """
    return _compare(trials, experiment, findings, [scale(experiment)])


def compare_further(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding]
) -> list[list[Comparison]]:
    """For each of these comparisons, the same by every further metric of `design.metrics`."""
    scales = further_scales(experiment)
    if not scales:
        return [[] for _ in experiment.variants[1:] for _ in experiment.workloads]
    compared = _compare(trials, experiment, findings, scales)
    return [compared[first : first + len(scales)] for first in range(0, len(compared), len(scales))]


def _compare(
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
    findings: Sequence[Finding],
    scales: Sequence[Scale],
) -> list[Comparison]:
    """The comparisons by some metrics, whose verdicts are one family; the metrics vary fastest."""
    pending = [
        _Pending((trials, experiment, findings), variant, workload, one)
        for variant in experiment.variants[1:]
        for workload in experiment.workloads
        for one in scales
    ]
    identical = [one for one in pending if one.is_identical]
    family = [one for one in pending if not one.is_identical]
    if allows_false_discoveries(experiment):
        for one in identical:
            one.assessment = assess(one.ratios(), ALPHA)
    else:
        _assess(pending, experiment)
    if is_factorial(experiment):
        # The sentences about factors have the verdicts, so comparisons get none, like those of identical
        # variants.
        identical, family = pending, []
    judged = {id(one): judge_identical(one.assessment, one.conditions()) for one in identical}
    floors = _NoiseFloors(identical, judged) if not is_factorial(experiment) else _NoiseFloors((), {})
    share = share_of_verdicts(experiment, scales[0].metric)
    if allows_false_discoveries(experiment):
        results = _judge_for_discoveries(family, floors, share)
    else:
        results = judge_family([(one.assessment, one.conditions(floors)) for one in family], share * ALPHA)
    judged |= {id(one): result for one, result in zip(family, results, strict=True)}
    return [one.comparison(judged[id(one)], floors) for one in pending]


def _assess(pending: Sequence[_Pending], experiment: Experiment) -> None:
    """Compute the effects of all comparisons; those of one variant by one metric together."""
    groups: dict[tuple[str, str], list[_Pending]] = {}
    for one in pending:
        groups.setdefault((one.variant.name, one.scale.metric), []).append(one)
    for group in groups.values():
        first = group[0]
        is_alone = first.is_identical or is_factorial(experiment)
        assessments = assess_jointly(
            [one.ratios() for one in group],
            ALPHA if is_alone else first.scale.alpha,
            stopping(experiment, 1 if is_alone else first.scale.family),
            1.0 if is_alone else share_of_verdicts(experiment, first.scale.metric),
            has_zone=first.scale.delta_percent is not None,
        )
        for one, assessment in zip(group, assessments, strict=True):
            one.assessment = assessment


def _judge_for_discoveries(family: Sequence[_Pending], floors: _NoiseFloors, share: float) -> list[Judged]:
    """The verdicts of all comparisons, of which at most 5 % of those with a direction are expected to be
    wrong.

    With m comparisons, the level of each is R times that of the first of m, where R is the largest number
    with at least R directions at that level (Benjamini & Yekutieli 2001, Ann. Stat. 29:1165). Directions that
    the noise floor or the zone of equivalence forbids do not count. This holds whatever the dependence of the
    tests, as each direction has a p-value that fits the number of all of them (Blanchard & Roquain 2008,
    Electron. J. Stat. 2:963), and of intervals at that level too an expected share of at most 5 % misses the
    true value (Benjamini & Yekutieli 2005, J. Am. Stat. Assoc. 100:71).
    """
    count = len(family)
    while True:
        results: list[Judged] = []
        for one in family:
            one.assessment = assess(one.ratios(), one.scale.alpha * max(1, count), share=share)
            results += judge_family([(one.assessment, one.conditions(floors))], share * one.assessment.alpha)
        directions = sum(one.verdict in (Verdict.FASTER, Verdict.SLOWER) for one in results)
        if directions >= count:
            return results
        count = directions


class _NoiseFloors:
    """Noise floors per workload and metric: the largest absolute end of an interval of identical variants."""

    def __init__(self, identical: Sequence[_Pending], judged: Mapping[int, Judged]) -> None:
        self._judged: dict[tuple[str, str], list[Judged]] = {}
        for one in identical:
            self._judged.setdefault(one.floor_key, []).append(judged[id(one)])

    def overall(self, key: tuple[str, str]) -> float | None:
        return _largest([_floor(one.overall) for one in self._judged.get(key, ())])

    def per_load(self, key: tuple[str, str]) -> tuple[float | None, ...]:
        floors = [map(_floor, one.load_effects) for one in self._judged.get(key, ())]
        return tuple(map(_largest, zip(*floors, strict=True)))


def _floor(effect: Effect | None) -> float | None:
    ends = effect.interval_percent if effect else None
    return max(map(abs, ends)) if ends else None


def _largest(floors: Sequence[float | None]) -> float | None:
    return max((floor for floor in floors if floor is not None), default=None)


class _Pending:
    """A comparison before its verdict is known."""

    def __init__(
        self,
        run: tuple[Sequence[MeasuredTrial], Experiment, Sequence[Finding]],
        variant: Variant,
        workload: Workload,
        scale: Scale,
    ) -> None:
        trials, experiment, findings = run
        self.experiment, self.variant, self.workload = experiment, variant, workload
        self.names = (experiment.variants[0].name, variant.name, workload.title)
        self.trials = [t for t in trials if t.workload == workload.title and t.variant in self.names[:2]]
        self.is_identical = is_identical(experiment, variant)
        self.differences = tuple(describe_differences(experiment, variant))
        self.differences_besides_server = tuple(describe_differences(experiment, variant, server=False))
        self.scale = scale
        self.floor_key = workload.title, scale.metric
        allowed = experiment.design.max_loss_percent
        is_first = scale.metric == experiment.metrics[0]
        self.limit_percent = scale.limit_percent(allowed) if is_first and allowed is not None else None
        self.pairs = tuple(pair(self.trials, p.as_dict(), *self.names[:2]) for p in experiment.load.points())
        self.capacities = capacities(self.trials, experiment.load, *self.names[:2])
        # Computed by `_assess`, with those of the variant's other workloads.
        self.assessment: Assessment
        relevant = relevant_to(self.names, findings)
        self.stops = stops(relevant)

    def ratios(self) -> Sequence[Ratios]:
        """The log ratios at each load; with a promise, those of the capacities."""
        if self.capacities:
            return [self.capacities.ratios()]
        return [pairs.ratios(self.scale.metric) for pairs in self.pairs]

    @property
    def circumstances(self) -> Circumstances:
        """What forbids a verdict."""
        return Circumstances(is_stopped=bool(self.stops), is_unfinished=is_unfinished(self.trials))

    def conditions(self, floors: _NoiseFloors | None = None) -> Conditions:
        """All inputs of the verdict other than the effects."""
        return Conditions(
            higher_is_faster=self.scale.higher_is_faster,
            circumstances=self.circumstances,
            delta_percent=self.scale.delta_percent,
            load_floors=floors.per_load(self.floor_key) if floors else (),
            floor_percent=floors.overall(self.floor_key) if floors else None,
            limit_percent=self.limit_percent,
            group=f"{self.variant.name} {self.scale.metric}" if self.scale.tests > 1 else None,
        )

    def comparison(self, judged: Judged, floors: _NoiseFloors) -> Comparison:
        """The comparison with its verdict."""
        baseline, variant, workload = self.names
        return Comparison(
            baseline=baseline,
            variant=variant,
            workload=workload,
            scale=self.scale,
            pairs=self.pairs,
            judged=judged,
            is_identical=self.is_identical,
            differences=self.differences,
            differences_besides_server=self.differences_besides_server,
            is_factorial=is_factorial(self.experiment) and not self.is_identical,
            stops=tuple(self.stops),
            capacities=self.capacities,
            blocks=finished_and_planned(self.trials, self.experiment),
            blocks_at_most=blocks_at_most(self.trials, self.experiment),
            failures=dict(failures(self.trials)),
            floor_percent=None if self.is_identical else floors.overall(self.floor_key),
            load_floors=() if self.is_identical else floors.per_load(self.floor_key),
            # An unfinished run has no intervals, so that nobody stops a run after a lucky block.
            order=None
            if is_unfinished(self.trials)
            else order_effect(self.assessment.overall_ratios, self.trials, baseline, variant),
            incomplete_variants=frozenset(name for name in (baseline, variant) if self._lacks_load(name)),
            variants_without_metric=()
            if self.capacities
            else tuple(name for name in (baseline, variant) if self._lacks_metric(name)),
        )

    def _lacks_metric(self, variant: str) -> bool:
        """Whether a variant has results at some load, but the metric is unknown in all of them."""
        results = [trial for trial in self.trials if trial.variant == variant and trial.is_result]
        known = [trial.at for trial in results if trial.has(self.scale.metric)]
        return any(trial.at not in known for trial in results)

    def _lacks_load(self, variant: str) -> bool:
        """Whether a variant has no result at some load."""
        measured = [t.at for t in self.trials if t.variant == variant and t.is_result]
        return any(pairs.at not in measured for pairs in self.pairs)


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
            listed = join("; ", (reason.rstrip(".") for reason, _ in reasons.most_common(REASONS)))
            yield (
                variant,
                compose(
                    "{sum} of {number} trials of {variant} failed ({listed})",
                    sum=sum(reasons.values()),
                    number=len(of_variant),
                    variant=variant,
                    listed=listed,
                ),
            )


def relevant_to(names: tuple[str, str, str], findings: Sequence[Finding]) -> list[Finding]:
    """The findings that concern a comparison: about its variants, its workload, or the complete run."""
    baseline, variant, workload = names
    return [
        one for one in on_workload(workload, findings) if one.subject in ("", baseline, variant, workload)
    ]


def on_workload(workload: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings about this workload, also among others, or about all workloads."""
    return [
        one
        for one in findings
        if workload in one.evidence.get("workloads", [one.evidence.get("workload", workload)])
    ]


def stops(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that make a comparison impossible.

    R04 is not among them: a load without results makes a comparison impossible anyway.
    """
    return [one for one in findings if one.is_blocking and one.code != "R04"]


def with_overrides(findings: Iterable[Finding], experiment: Experiment) -> list[Finding]:
    """The findings, with the reasons from the experiment's table [override], which may differ from those with
    which they were stored.
    """
    return [
        replace(one, override=experiment.override.get(one.code))
        if one.level == "stop" or one.code in OVERRIDABLE_WARNINGS
        else one
        for one in findings
    ]
