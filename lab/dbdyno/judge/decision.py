"""From measured trials to words: every comparison of a run, judged as one family.

Pure: trials and findings in, comparisons out. Simulations of experiments enter here (benchmarks/truth).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.experiment.family import family_size, is_factorial, is_identical
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.judge.comparison import Comparison, Scale, pair
from dbdyno.judge.effects import Assessment, Conditions, Judged, assess, give_words, judge_identical
from dbdyno.judge.findings import Finding
from dbdyno.judge.measured import LATENCY_P95, THROUGHPUT, Measured
from dbdyno.judge.order import order_effect
from dbdyno.stats.paired import ALPHA, Effect
from dbdyno.stats.words import Circumstances

# Reasons of failures that a sentence names.
REASONS = 2


def scale(experiment: Experiment) -> Scale:
    """The scale of an experiment: its loop decides the metric, its design the zone of equivalence."""
    return Scale(
        metric=LATENCY_P95 if experiment.load.rate else THROUGHPUT,
        delta_percent=experiment.design.delta_percent,
        alpha=ALPHA / family_size(experiment),
    )


def compare_all(
    trials: Sequence[Measured], experiment: Experiment, found: Sequence[Finding]
) -> list[Comparison]:
    """Each variant against the baseline, on each workload, in the order of the file.

    `found` are the findings with their overrides: stops end a comparison, D06 takes its direction.
    """
    questions = [
        _Question(trials, experiment, found, variant, workload)
        for variant in experiment.variants[1:]
        for workload in experiment.workloads
    ]
    standard = scale(experiment)
    twins = [question for question in questions if question.identical]
    family = [question for question in questions if not question.identical]
    if is_factorial(experiment):
        # The sentences about factors are the family; these comparisons are shown without words.
        twins, family = questions, []
    up = standard.higher_is_faster
    judged = {id(q): judge_identical(q.assessment, q.conditions(), higher_is_faster=up) for q in twins}
    floors = _Floors(twins, judged) if not is_factorial(experiment) else _Floors((), {})
    asked = [(q.assessment, q.conditions(floors)) for q in family]
    words = give_words(asked, higher_is_faster=up, alpha=ALPHA)
    judged |= {id(question): word for question, word in zip(family, words, strict=True)}
    return [question.comparison(judged[id(question)], floors) for question in questions]


class _Floors:
    """What identical variants differ by: the farthest end of their intervals, by workload."""

    def __init__(self, twins: Sequence[_Question], judged: Mapping[int, Judged]) -> None:
        self._twins: dict[str, list[Judged]] = {}
        for twin in twins:
            self._twins.setdefault(twin.workload.title, []).append(judged[id(twin)])

    def overall(self, workload: str) -> float | None:
        return _largest([_floor(twin.overall) for twin in self._twins.get(workload, ())])

    def levels(self, workload: str) -> tuple[float | None, ...]:
        by_twin = [map(_floor, twin.levels) for twin in self._twins.get(workload, ())]
        return tuple(map(_largest, zip(*by_twin, strict=True)))


def _floor(found: Effect | None) -> float | None:
    ends = found.interval_percent if found else None
    return max(map(abs, ends)) if ends else None


def _largest(floors: Sequence[float | None]) -> float | None:
    return max((floor for floor in floors if floor is not None), default=None)


class _Question:
    """One variant against the baseline on one workload, before it has words."""

    def __init__(
        self,
        trials: Sequence[Measured],
        experiment: Experiment,
        found: Sequence[Finding],
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
        self.pairs = tuple(pair(self.trials, p.at(), *self.names[:2]) for p in experiment.load.points())
        alpha = ALPHA if self.identical or is_factorial(experiment) else self.scale.alpha
        self.assessment: Assessment = assess([p.ratios(self.scale.metric) for p in self.pairs], alpha)
        bearing_on = bearing(found, self.names)
        self.stops = stops(bearing_on)
        self.disturbed = is_disturbed(bearing_on)

    def conditions(self, floors: _Floors | None = None) -> Conditions:
        """What decides about the words besides the numbers."""
        return Conditions(
            circumstances=Circumstances(
                stopped=bool(self.stops), unfinished=is_unfinished(self.trials), disturbed=self.disturbed
            ),
            delta_percent=self.scale.delta_percent,
            level_floors=floors.levels(self.workload.title) if floors else (),
            floor_percent=floors.overall(self.workload.title) if floors else None,
        )

    def comparison(self, judged: Judged, floors: _Floors) -> Comparison:
        """The comparison with its words."""
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
            # Nobody is to look at intervals of a run that goes on.
            order=None
            if is_unfinished(self.trials)
            else order_effect(self.assessment.overall_ratios, self.trials, baseline, variant),
            present={name: self._loads_of(name) for name in (baseline, variant)},
        )

    def _loads_of(self, variant: str) -> frozenset[int]:
        """The loads, by their index, at which a variant has a result."""
        mine = [t.place.at for t in self.trials if t.place.variant == variant and t.is_result]
        return frozenset(index for index, pairs in enumerate(self.pairs) if pairs.at in mine)


def is_unfinished(trials: Sequence[Measured]) -> bool:
    """Whether trials are planned that have not run."""
    return any(trial.failed_by == "not-run" for trial in trials)


def _finished_blocks(trials: Sequence[Measured], experiment: Experiment) -> int:
    """Blocks in which every trial of these has run."""
    waiting = {trial.place.block for trial in trials if trial.failed_by == "not-run"}
    return min(experiment.design.blocks, len({trial.place.block for trial in trials} - waiting))


def failures(trials: Sequence[Measured]) -> Iterator[tuple[str, str]]:
    """Per variant: how many of its trials failed by their server, and why."""
    for variant in dict.fromkeys(trial.place.variant for trial in trials):
        mine = [trial for trial in trials if trial.place.variant == variant]
        reasons = Counter(str(trial.failure) for trial in mine if trial.failed_by == "server")
        if reasons:
            listed = "; ".join(reason.rstrip(".") for reason, _ in reasons.most_common(REASONS))
            yield variant, f"{sum(reasons.values())} of {len(mine)} trials of {variant} failed ({listed})"


def bearing(found: Sequence[Finding], names: tuple[str, str, str]) -> list[Finding]:
    """The findings that bear on a comparison: on its variants or on the whole, and on its workload."""
    baseline, variant, workload = names
    return [
        finding
        for finding in found
        if finding.get("subject", "") in ("", baseline, variant, workload)
        and finding["evidence"].get("workload", workload) == workload
    ]


def stops(found: Sequence[Finding]) -> list[Finding]:
    """Stops that nobody overrode. Those of R04 speak of single loads, which then have no blocks."""
    return [f for f in found if f["level"] == "stop" and not f["override"] and f["code"] != "R04"]


def is_disturbed(found: Sequence[Mapping[str, Any]]) -> bool:
    """Whether other processes disturbed blocks that count, and nobody lets the word pass all the same."""
    return any(f["code"] == "D06" and f["level"] == "warn" and not f["override"] for f in found)
