"""Decides the verdicts of all comparisons of a run, from its measured trials.

The functions here are pure, so benchmarks/truth can call them with simulated trials.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dbdyno.decide.capacity import capacities
from dbdyno.decide.comparison import Comparison, NoiseFloors, Sample, Scale, pair
from dbdyno.decide.effects import (
    Assessment,
    Judged,
    Stopping,
    assess,
    assess_jointly,
    judge_family,
    judge_identical,
    overall_looks,
)
from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.family import allows_false_discoveries, error_shares, is_factorial
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.stats.family import blocks_for_verdict, verdicts_share
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.repeated import Looks
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.store.measured import MeasuredTrial

# Codes of the checks whose warnings [override] may override. It may override the stops of every check.
OVERRIDABLE_WARNINGS = frozenset({"D06"})


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

    The rest is for the secondary metrics. The further metrics share an error rate of their own.
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
    loads = 1 if experiment.load.latency_objective else len(experiment.load.points())
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
    samples = list(_samples(trials, experiment, findings, scales))
    share = share_of_verdicts(experiment, scales[0].metric)
    assessments = _assess(samples, experiment)
    # Identical variants never get a direction; in a factorial run the sentences about factors have the
    # verdicts, so comparisons get none either.
    is_judged = [not (sample.is_identical or is_factorial(experiment)) for sample in samples]
    without = {
        place: judge_identical(assessments[place], sample.conditions())
        for place, sample in enumerate(samples)
        if not is_judged[place]
    }
    floors = NoiseFloors(
        [(samples[place], judged) for place, judged in without.items() if not is_factorial(experiment)]
    )
    places = list(itertools.compress(range(len(samples)), is_judged))
    family = [samples[place] for place in places]
    if allows_false_discoveries(experiment):
        results = _judge_for_discoveries(family, floors, share)
    else:
        members = [(assessments[place], samples[place].conditions(floors)) for place in places]
        results = judge_family(members, share * ALPHA)
    judged = without | dict(zip(places, results, strict=True))
    return [
        Comparison(**vars(sample), judged=judged[place], floors=floors, experiment=experiment)
        for place, sample in enumerate(samples)
    ]


def _samples(
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
    findings: Sequence[Finding],
    scales: Sequence[Scale],
) -> Iterator[Sample]:
    """Each variant against the baseline on each workload, by each metric."""
    allowed, baseline = experiment.design.max_loss_percent, experiment.variants[0].name
    for variant, workload, entry in itertools.product(experiment.variants[1:], experiment.workloads, scales):
        is_gated = allowed is not None and entry.metric == experiment.metrics[0]
        names = baseline, variant.name, workload.title
        of_both = [t for t in trials if t.workload == workload.title and t.variant in names[:2]]
        relevant = tuple(relevant_to(names, findings))
        yield Sample(
            *names,
            scale=entry,
            is_identical=is_identical(experiment, variant),
            limit_percent=entry.limit_percent(allowed) if is_gated and allowed is not None else None,
            trials=of_both,
            pairs=tuple(pair(of_both, point.as_dict(), *names[:2]) for point in experiment.load.points()),
            capacities=capacities(of_both, experiment.load, *names[:2]),
            findings=relevant,
            stops=tuple(stops(relevant)),
        )


def _assess(samples: Sequence[Sample], experiment: Experiment) -> list[Assessment]:
    """The effects of all comparisons; those of one variant by one metric have been assessed together."""
    if allows_false_discoveries(experiment):
        return [assess(entry.ratios(), ALPHA) for entry in samples]
    groups: dict[tuple[str, str], list[int]] = {}
    for place, sample in enumerate(samples):
        groups.setdefault((sample.variant, sample.scale.metric), []).append(place)
    assessments: dict[int, Assessment] = {}
    for places in groups.values():
        first = samples[places[0]]
        of_group = first.scale
        is_alone = first.is_identical or is_factorial(experiment)
        joint = assess_jointly(
            [samples[place].ratios() for place in places],
            ALPHA if is_alone else of_group.alpha,
            stopping(experiment, 1 if is_alone else of_group.family),
            1.0 if is_alone else share_of_verdicts(experiment, of_group.metric),
            has_zone=of_group.delta_percent is not None,
        )
        assessments |= dict(zip(places, joint, strict=True))
    return [assessments[place] for place in range(len(samples))]


def _judge_for_discoveries(family: Sequence[Sample], floors: NoiseFloors, share: float) -> list[Judged]:
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
        for entry in family:
            assessment = assess(entry.ratios(), entry.scale.alpha * max(1, count), share=share)
            results += judge_family([(assessment, entry.conditions(floors))], share * assessment.alpha)
        directions = sum(result.verdict in (Verdict.FASTER, Verdict.SLOWER) for result in results)
        if directions >= count:
            return results
        count = directions


def relevant_to(names: tuple[str, str, str], findings: Sequence[Finding]) -> list[Finding]:
    """The findings that concern a comparison: about its variants, its workload, or the complete run."""
    baseline, variant, workload = names
    return [
        entry
        for entry in on_workload(workload, findings)
        if entry.subject in ("", baseline, variant, workload)
    ]


def on_workload(workload: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings about this workload, also among others, or about all workloads."""
    return [
        finding
        for finding in findings
        if workload in finding.evidence.get("workloads", [finding.evidence.get("workload", workload)])
    ]


def stops(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that make a comparison impossible.

    R04 is not among them: a load without results makes a comparison impossible anyway.
    """
    return [finding for finding in findings if finding.is_blocking and finding.code != "R04"]


def with_overrides(findings: Iterable[Finding], experiment: Experiment) -> list[Finding]:
    """The findings, with the reasons from the experiment's table [override], which may differ from those with
    which they were stored.
    """
    return [
        replace(finding, override=experiment.override.get(finding.code))
        if finding.level == "stop" or finding.code in OVERRIDABLE_WARNINGS
        else finding
        for finding in findings
    ]
