"""Which costs of a transaction changed between the baseline and a variant.

::

    cost per transaction of every trial -> log ratio per block and point -> mean over the points of a block
        -> estimate and interval by the signed-rank machinery, one measure at a time
        -> significant where the joint sign-flip test over all measures excludes chance too

Significant changes come first, resources before the server's own counters, the largest change first. Several
points are also tested one by one, in one family of all measures at all points: a counter may change at many
connections and stay at few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost
from dbdyno.explain.formatting import amount, sentence
from dbdyno.explain.measures import Measure
from dbdyno.finding import Finding
from dbdyno.judge.comparison import change
from dbdyno.stats.max_t import family_p_values
from dbdyno.stats.paired import ALPHA, Effect, Ratios, effect
from dbdyno.stats.words import BLOCKS_MIN
from dbdyno.store.document import At
from dbdyno.store.explained import ChangesAt, ComparisonChanges, Costs, ExplainedFile, MeasuredChange, Per
from dbdyno.store.measured import MeasuredTrial

# A counter with fewer events than this in every trial is not tested.
COUNTED_MIN = 5.0
# The columns of the table of costs; reads and writes are calls of the server where no device counts them.
HEADLINE = (
    *("cpu_us", "context_switches", "cpu_wait_us"),
    *("disk_reads", "read_calls", "read_kib", "disk_writes", "write_calls", "write_kib"),
)

# Trial -> its costs by key.
TrialCosts = Mapping[int, Mapping[str, Cost]]


@dataclass(frozen=True)
class MeasureChange:
    """One measure of one comparison."""

    measure: Measure
    # Of baseline and variant: geometric mean over the points of the median over the blocks.
    levels: tuple[float, float]
    effect: Effect
    # Adjusted for all measures of the comparison.
    p_value: float

    @property
    def significant(self) -> bool:
        """Whether both interval and adjusted p-value exclude chance."""
        return self.effect.blocks >= BLOCKS_MIN and self.p_value <= ALPHA and self.effect.is_sure

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sorts significant and large changes to the front."""
        far = abs(math.log1p(max(self.effect.effect_percent, -99.999999) / 100.0))
        return not self.significant, self.measure.group != "resource", -far


def explained(trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment) -> ExplainedFile:
    """The content of explained.json."""
    per: dict[str, Per] = {
        workload.title: "query" if _statements(trials, workload.title) == 1.0 else "transaction"
        for workload in experiment.workloads
    }
    baseline = experiment.variants[0].name
    comparisons = []
    for variant in experiment.variants[1:]:
        for workload in experiment.workloads:
            of = [trial for trial in trials if trial.place.workload == workload.title]
            unit = per[workload.title]
            pairs = _pairs(of, costs, experiment, variant.name)
            comparisons.append(
                ComparisonChanges(
                    variant=variant.name,
                    workload=workload.title,
                    measures=[_entry(one, variant.name, baseline, unit) for one in changes(pairs)],
                    points=[
                        ChangesAt(
                            at=at, measures=[_entry(one, variant.name, baseline, unit) for one in significant]
                        )
                        for at, significant in significant_at(pairs)
                    ],
                )
            )
    return ExplainedFile(
        baseline=baseline, comparisons=comparisons, costs=list(_costs(trials, costs, experiment, per))
    )


def _statements(trials: Sequence[MeasuredTrial], workload: str) -> float:
    """The measured number of statements per transaction."""
    figures = [trial.figures for trial in trials if trial.place.workload == workload and trial.figures]
    return round(median(one.statements / one.events for one in figures)) if figures else 0.0


@dataclass(frozen=True)
class _Pairs:
    """The trials of baseline (arm 0) and variant (arm 1) on one workload that can be compared."""

    # Arm, level of the point, block -> costs by key.
    cells: Mapping[tuple[int, float, int], Mapping[str, Cost]]
    points: Sequence[At]
    # Blocks with all their trials.
    blocks: Sequence[int]

    @property
    def levels(self) -> list[float]:
        return [_level(point) for point in self.points]

    def counted(self) -> list[str]:
        """The measures that every trial has, and at least one has counted often enough."""
        complete = [self.cells[arm, at, block] for arm, at, block in self._places()]
        every = set.intersection(*(set(cell) for cell in complete)) if complete else set()
        return sorted(
            key
            for key in every
            if any(cell[key].counted >= COUNTED_MIN * cell[key].measure.quantum for cell in complete)
        )

    def measure(self, key: str) -> Measure:
        return self.cells[next(self._places())][key].measure

    def differences(self, key: str, at: float) -> list[float]:
        """The log ratio of every block at a point."""
        return [
            math.log(self.cells[1, at, block][key].floored / self.cells[0, at, block][key].floored)
            for block in self.blocks
        ]

    def amounts(self, key: str, levels: Sequence[float]) -> tuple[float, float]:
        """Baseline's and variant's: geometric mean over the points of the median over the blocks."""
        return self._amount(key, 0, levels), self._amount(key, 1, levels)

    def _amount(self, key: str, arm: int, levels: Sequence[float]) -> float:
        costs = [[self.cells[arm, at, block][key] for block in self.blocks] for at in levels]
        if not any(cost.counted for of_point in costs for cost in of_point):
            return 0.0
        medians = [median(cost.floored for cost in of_point) for of_point in costs]
        return math.exp(fmean(math.log(value) for value in medians))

    def _places(self) -> Iterator[tuple[int, float, int]]:
        return itertools.product((0, 1), self.levels, self.blocks)


def _pairs(
    trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment, variant: str
) -> _Pairs:
    """The trials of one workload that both arms have; blocks that lack one are left out."""
    names = (experiment.variants[0].name, variant)
    cells = {
        (names.index(trial.place.variant), trial.place.level[1], trial.place.block): costs[trial.place.index]
        for trial in trials
        if trial.place.variant in names and trial.figures is not None and costs.get(trial.place.index)
    }
    points = [point.at() for point in experiment.load.points()]
    blocks = [
        block
        for block in sorted({block for _, _, block in cells})
        if all((arm, _level(point), block) in cells for arm in (0, 1) for point in points)
    ]
    return _Pairs(cells, points, blocks)


def _level(at: At) -> float:
    (level,) = at.values()
    return level


def changes(pairs: _Pairs) -> list[MeasureChange]:
    """Every measure over all loads, ranked; [] where no block is complete."""
    levels = pairs.levels
    kept = {
        key: [
            fmean(of_block) for of_block in zip(*(pairs.differences(key, at) for at in levels), strict=True)
        ]
        for key in pairs.counted()
    }
    measures = {key: pairs.measure(key) for key in kept}
    # A resource and its parts would count twice.
    family = [key for key, measure in measures.items() if measure.group != "part"]
    adjusted = dict(zip(family, family_p_values([kept[key] for key in family]), strict=True))
    ranked = [
        MeasureChange(measures[key], pairs.amounts(key, levels), _effect(differences), adjusted.get(key, 1.0))
        for key, differences in kept.items()
    ]
    return sorted(ranked, key=lambda one: (*one.rank, one.measure.key))


def significant_at(pairs: _Pairs) -> Iterator[tuple[At, list[MeasureChange]]]:
    """The significant changes at each of several points, ranked; nothing for a single point.

    All measures at all points are one family, so that the chance of a false word holds for all of them.
    """
    if len(pairs.points) < 2 or len(pairs.blocks) < BLOCKS_MIN:
        return
    keys = [key for key in pairs.counted() if pairs.measure(key).group != "part"]
    places = list(itertools.product(pairs.levels, keys))
    differences = [pairs.differences(key, at) for at, key in places]
    adjusted = zip(places, differences, family_p_values(differences), strict=True)
    significant: dict[float, list[MeasureChange]] = {at: [] for at in pairs.levels}
    for (at, key), of_blocks, p_value in adjusted:
        if p_value <= ALPHA:
            one = MeasureChange(pairs.measure(key), pairs.amounts(key, [at]), _effect(of_blocks), p_value)
            if one.significant:
                significant[at].append(one)
    for point in pairs.points:
        yield point, sorted(significant[_level(point)], key=lambda one: (*one.rank, one.measure.key))


def _effect(differences: Sequence[float]) -> Effect:
    by_block = dict(enumerate(differences))
    of_blocks = effect(Ratios(by_block, by_block))
    assert of_blocks is not None, "there is a block"
    return of_blocks


def _entry(one: MeasureChange, variant: str, baseline: str, per: Per) -> MeasuredChange:
    measure = one.measure
    return MeasuredChange(
        key=measure.key,
        title=measure.title,
        group=measure.group,
        unit=measure.unit,
        per=per,
        baseline=one.levels[0],
        variant=one.levels[1],
        shown=(amount(measure, one.levels[0]), amount(measure, one.levels[1])),
        **change(one.effect),
        blocks=one.effect.blocks,
        p_value=one.p_value,
        significant=one.significant,
        sentence=sentence(measure, variant, baseline, one.levels, per),
    )


def _costs(
    trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment, per: Mapping[str, Per]
) -> Iterator[Costs]:
    """The costs of a transaction by workload, variant and point: medians over the blocks."""
    for workload in experiment.workloads:
        for variant in experiment.variants:
            for point in experiment.load.points():
                of_trials = [
                    costs[trial.place.index]
                    for trial in trials
                    if (trial.place.workload, trial.place.variant) == (workload.title, variant.name)
                    and trial.place.at == point.at()
                    and trial.figures is not None
                    and costs.get(trial.place.index)
                ]
                measures = {key: one.measure for cost in of_trials for key, one in cost.items()}
                each = {
                    key: median(cost[key].each for cost in of_trials if key in cost)
                    for key in sorted(measures)
                }
                if each:
                    yield Costs(
                        workload=workload.title,
                        variant=variant.name,
                        at=point.at(),
                        per=per[workload.title],
                        blocks=len(of_trials),
                        costs=each,
                        shown={
                            key: amount(measures[key], each[key])
                            for key in HEADLINE
                            if key in each and measures[key].group == "resource"
                        },
                    )


def unchanged(explanation: ExplainedFile, experiment: Experiment) -> Iterator[Finding]:
    """P17: variants whose servers are declared differently although no metric changed significantly."""
    first = experiment.variants[0]
    for entry in explanation.comparisons:
        variant, measures = experiment.variant(entry.variant), entry.measures
        enough = bool(measures) and measures[0].blocks >= BLOCKS_MIN
        if variant.server != first.server and enough and not any(one.significant for one in measures):
            yield Finding(
                "P17",
                "warn",
                f"{variant.name} and {first.name} are set up differently, but none of {len(measures)} "
                f"metrics per transaction of {entry.workload} changed significantly: the difference may "
                "not affect what this workload does",
                {"workload": entry.workload, "measures": len(measures)},
                variant.name,
            )
