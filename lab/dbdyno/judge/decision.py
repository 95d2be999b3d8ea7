"""From measured trials to verdicts: all comparisons of a run as one family.

Uses only its arguments: trials and findings in, comparisons out. benchmarks/truth calls it with simulated
trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.experiment.family import family_size, is_factorial, is_identical
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.finding import Finding
from dbdyno.judge.comparison import Comparison, Scale, pair
from dbdyno.judge.effects import Assessment, Conditions, Judged, assess, give_words, judge_identical
from dbdyno.judge.measured import LATENCY_P95, THROUGHPUT
from dbdyno.judge.order import order_effect
from dbdyno.stats.paired import ALPHA, Effect
from dbdyno.stats.words import Circumstances
from dbdyno.store.measured import MeasuredTrial

# Maximum number of failure reasons in a sentence.
REASONS = 2


def scale(experiment: Experiment) -> Scale:
    """The scale of an experiment: closed or open loop determines the metric, the design the zone of
    equivalence.
    """
    return Scale(
        metric=LATENCY_P95 if experiment.load.rate else THROUGHPUT,
        delta_percent=experiment.design.delta_percent,
        alpha=ALPHA / family_size(experiment),
    )


def compare_all(
    trials: Sequence[MeasuredTrial], experiment: Experiment, findings: Sequence[Finding]
) -> list[Comparison]:
    """Each variant against the baseline, on each workload, in the order of the file.

    A finding of level stop makes a comparison impossible; with D06 (foreign load) the verdict has no
    direction.
    """
    questions = [
        _Question(trials, experiment, findings, variant, workload)
        for variant in experiment.variants[1:]
        for workload in experiment.workloads
    ]
    standard = scale(experiment)
    twins = [question for question in questions if question.identical]
    family = [question for question in questions if not question.identical]
    if is_factorial(experiment):
        # The family consists of the sentences about factors; these comparisons have no verdicts.
        twins, family = questions, []
    up = standard.higher_is_faster
    judged = {id(q): judge_identical(q.assessment, q.conditions(), higher_is_faster=up) for q in twins}
    floors = _Floors(twins, judged) if not is_factorial(experiment) else _Floors((), {})
    words = give_words(
        [(q.assessment, q.conditions(floors)) for q in family], higher_is_faster=up, alpha=ALPHA
    )
    judged |= {id(question): word for question, word in zip(family, words, strict=True)}
    return [question.comparison(judged[id(question)], floors) for question in questions]


class _Floors:
    """Noise floors: the largest absolute end of the intervals of identical variants, by workload."""

    def __init__(self, twins: Sequence[_Question], judged: Mapping[int, Judged]) -> None:
        self._twins: dict[str, list[Judged]] = {}
        for twin in twins:
            self._twins.setdefault(twin.workload.title, []).append(judged[id(twin)])

    def overall(self, workload: str) -> float | None:
        return _largest([_floor(twin.overall) for twin in self._twins.get(workload, ())])

    def levels(self, workload: str) -> tuple[float | None, ...]:
        by_twin = [map(_floor, twin.levels) for twin in self._twins.get(workload, ())]
        return tuple(map(_largest, zip(*by_twin, strict=True)))


def _floor(effect: Effect | None) -> float | None:
    ends = effect.interval_percent if effect else None
    return max(map(abs, ends)) if ends else None


def _largest(floors: Sequence[float | None]) -> float | None:
    return max((floor for floor in floors if floor is not None), default=None)


class _Question:
    """One variant against the baseline on one workload, before its verdict."""

    def __init__(
        self,
        trials: Sequence[MeasuredTrial],
        experiment: Experiment,
        findings: Sequence[Finding],
        variant: Variant,
        workload: Workload,
    ) -> None:
        self.experiment, self.variant, self.workload = experiment, variant, workload
        self.names = (experiment.variants[0].name, variant.name, workload.title)
        self.trials = [
            t for t in trials if t.place.workload == workload.title and t.place.variant in self.names[:2]
        ]
        self.identical = is_identical(experiment, variant)
        self.scale = scale(experiment)
        self.pairs = tuple(pair(self.trials, p.level(), *self.names[:2]) for p in experiment.load.points())
        alpha = ALPHA if self.identical or is_factorial(experiment) else self.scale.alpha
        self.assessment: Assessment = assess([p.ratios(self.scale.metric) for p in self.pairs], alpha)
        relevant = relevant_to(self.names, findings)
        self.stops = stops(relevant)
        self.disturbed = is_disturbed(relevant)

    def conditions(self, floors: _Floors | None = None) -> Conditions:
        """The conditions of the verdict other than the measured values."""
        return Conditions(
            circumstances=Circumstances(
                stopped=bool(self.stops), unfinished=is_unfinished(self.trials), disturbed=self.disturbed
            ),
            delta_percent=self.scale.delta_percent,
            level_floors=floors.levels(self.workload.title) if floors else (),
            floor_percent=floors.overall(self.workload.title) if floors else None,
        )

    def comparison(self, judged: Judged, floors: _Floors) -> Comparison:
        """The comparison with its verdicts."""
        baseline, variant, workload = self.names
        return Comparison(
            baseline=baseline,
            variant=variant,
            workload=workload,
            scale=self.scale,
            pairs=self.pairs,
            judged=judged,
            identical=self.identical,
            wordless=is_factorial(self.experiment) and not self.identical,
            disturbed=self.disturbed,
            stops=tuple(self.stops),
            blocks=(_finished_blocks(self.trials, self.experiment), self.experiment.design.blocks),
            failures=dict(failures(self.trials)),
            floor_percent=None if self.identical else floors.overall(workload),
            level_floors=() if self.identical else floors.levels(workload),
            # If an interval were shown, a user could stop the run after a lucky block.
            order=None
            if is_unfinished(self.trials)
            else order_effect(self.assessment.overall_ratios, self.trials, baseline, variant),
            lacking=frozenset(name for name in (baseline, variant) if self._lacks_load(name)),
        )

    def _lacks_load(self, variant: str) -> bool:
        """Whether a variant has no result at some load."""
        mine = [t.place.at for t in self.trials if t.place.variant == variant and t.is_result]
        return any(pairs.at not in mine for pairs in self.pairs)


def is_unfinished(trials: Sequence[MeasuredTrial]) -> bool:
    """Whether any planned trial has not run."""
    return any(trial.failed_by == "not-run" for trial in trials)


def _finished_blocks(trials: Sequence[MeasuredTrial], experiment: Experiment) -> int:
    """Blocks in which all of these trials have run."""
    waiting = {trial.place.block for trial in trials if trial.failed_by == "not-run"}
    return min(experiment.design.blocks, len({trial.place.block for trial in trials} - waiting))


def failures(trials: Sequence[MeasuredTrial]) -> Iterator[tuple[str, str]]:
    """For each variant, how many trials its server failed, and why."""
    for variant in dict.fromkeys(trial.place.variant for trial in trials):
        mine = [trial for trial in trials if trial.place.variant == variant]
        reasons = Counter(str(trial.failure) for trial in mine if trial.failed_by == "server")
        if reasons:
            listed = "; ".join(reason.rstrip(".") for reason, _ in reasons.most_common(REASONS))
            yield variant, f"{sum(reasons.values())} of {len(mine)} trials of {variant} failed ({listed})"


def relevant_to(names: tuple[str, str, str], findings: Sequence[Finding]) -> list[Finding]:
    """The findings about a comparison's variants or the complete run, and about its workload or all
    workloads.
    """
    baseline, variant, workload = names
    return [
        one for one in on_workload(workload, findings) if one.subject in ("", baseline, variant, workload)
    ]


def on_workload(workload: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings about this workload or about all workloads."""
    return [one for one in findings if one.evidence.get("workload", workload) == workload]


def stops(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that forbid the comparison. R04 may concern a single load, which then has no blocks."""
    return [one for one in findings if one.stops and one.code != "R04"]


def is_disturbed(findings: Sequence[Finding]) -> bool:
    """Whether other processes disturbed blocks that count, without an override."""
    return any(one.code == "D06" and one.level == "warn" and not one.override for one in findings)
