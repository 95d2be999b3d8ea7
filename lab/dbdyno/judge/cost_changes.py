"""Which costs of a transaction changed between the baseline and a variant.

::

    cost per transaction of every trial -> log ratio per block and point -> mean over the points of a block
        -> estimate and interval by the signed-rank machinery, one measure at a time
        -> significant where the joint sign-flip test over all measures excludes chance too

Significant changes come first, resources before the server's counters, then by size. Several points are also
tested one by one, in one family of all measures at all points: a counter may change only at high connection
counts.
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
from dbdyno.stats.paired import ALPHA, Ratios, effect
from dbdyno.stats.verdict_rule import BLOCKS_MIN
from dbdyno.store.document import At
from dbdyno.store.explained import ChangesAt, ComparisonChanges, Costs, ExplainedFile, MeasuredChange, Per
from dbdyno.store.measured import MeasuredTrial

# A counter with fewer counts than this in every trial is not tested.
COUNTED_MIN = 5.0
# The columns of the table of costs; reads and writes are system calls if no device statistics are available.
HEADLINE = (
    *("cpu_us", "context_switches", "cpu_wait_us"),
    *("disk_reads", "read_calls", "read_kib", "disk_writes", "write_calls", "write_kib"),
)

# Trial -> its costs by key.
TrialCosts = Mapping[int, Mapping[str, Cost]]


def _rank(one: MeasuredChange) -> tuple[bool, bool, float, str]:
    """Sorts significant and large changes to the front."""
    assert one.effect_percent is not None, "amounts are positive, so their ratios are finite"
    far = abs(math.log1p(max(one.effect_percent, -99.999999) / 100.0))
    return not one.significant, one.group != "resource", -far, one.key


def explain(trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment) -> ExplainedFile:
    """The content of explained.json."""
    per: dict[str, Per] = {
        workload.title: "query" if _statements(trials, workload.title) == 1.0 else "transaction"
        for workload in experiment.workloads
    }
    baseline = experiment.variants[0].name
    comparisons = []
    for variant in experiment.variants[1:]:
        for workload in experiment.workloads:
            of = [trial for trial in trials if trial.workload == workload.title]
            pairs = _pairs(of, costs, experiment, variant.name, per[workload.title])
            comparisons.append(
                ComparisonChanges(
                    variant=variant.name,
                    workload=workload.title,
                    measures=_changes(pairs),
                    points=list(_significant_at(pairs)),
                )
            )
    return ExplainedFile(
        baseline=baseline, comparisons=comparisons, costs=list(_costs(trials, costs, experiment, per))
    )


def _statements(trials: Sequence[MeasuredTrial], workload: str) -> float:
    """The measured number of statements per transaction."""
    figures = [trial.figures for trial in trials if trial.workload == workload and trial.figures]
    return round(median(one.statements / one.events for one in figures)) if figures else 0.0


@dataclass(frozen=True)
class _Pairs:
    """The comparable trials of baseline (arm 0) and variant (arm 1) on one workload."""

    baseline: str
    variant: str
    per: Per
    # Arm, load level, block -> costs by key.
    cells: Mapping[tuple[int, float, int], Mapping[str, Cost]]
    points: Sequence[At]
    # Blocks in which all trials have costs.
    blocks: Sequence[int]

    @property
    def levels(self) -> list[float]:
        return [_level(point) for point in self.points]

    def counted(self) -> list[str]:
        """The measures that every trial has, and that have enough counts in at least one."""
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

    def amount(self, key: str, arm: int, levels: Sequence[float]) -> float:
        """Geometric mean over the points; the value of a point is the median over the blocks."""
        costs = [[self.cells[arm, at, block][key] for block in self.blocks] for at in levels]
        if not any(cost.counted for of_point in costs for cost in of_point):
            return 0.0
        medians = [median(cost.floored for cost in of_point) for of_point in costs]
        return math.exp(fmean(math.log(value) for value in medians))

    def _places(self) -> Iterator[tuple[int, float, int]]:
        return itertools.product((0, 1), self.levels, self.blocks)


def _pairs(
    trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment, variant: str, per: Per
) -> _Pairs:
    """The trials of one workload, from blocks in which both arms have results."""
    names = (experiment.variants[0].name, variant)
    cells = {
        (names.index(trial.variant), trial.point.value, trial.block): costs[trial.index]
        for trial in trials
        if trial.variant in names and trial.figures is not None and costs.get(trial.index)
    }
    points = [point.level() for point in experiment.load.points()]
    blocks = [
        block
        for block in sorted({block for _, _, block in cells})
        if all((arm, _level(point), block) in cells for arm in (0, 1) for point in points)
    ]
    return _Pairs(*names, per, cells, points, blocks)


def _level(at: At) -> float:
    (level,) = at.values()
    return level


def _changes(pairs: _Pairs) -> list[MeasuredChange]:
    """Every measure over all loads, ranked; [] if no block is complete."""
    levels = pairs.levels
    kept = {
        key: [
            fmean(of_block) for of_block in zip(*(pairs.differences(key, at) for at in levels), strict=True)
        ]
        for key in pairs.counted()
    }
    measures = {key: pairs.measure(key) for key in kept}
    # A resource is tested; its parts are not tested again.
    family = [key for key, measure in measures.items() if measure.group != "part"]
    adjusted = dict(zip(family, family_p_values([kept[key] for key in family]), strict=True))
    every = (
        _change(pairs, key, levels, of_blocks, adjusted.get(key, 1.0)) for key, of_blocks in kept.items()
    )
    return sorted(every, key=_rank)


def _significant_at(pairs: _Pairs) -> Iterator[ChangesAt]:
    """The significant changes at each point, ranked; nothing if there is only one point.

    All measures at all points are one family, which limits the chance of a single false result among them.
    """
    if len(pairs.points) < 2 or len(pairs.blocks) < BLOCKS_MIN:
        return
    keys = [key for key in pairs.counted() if pairs.measure(key).group != "part"]
    places = list(itertools.product(pairs.levels, keys))
    differences = [pairs.differences(key, at) for at, key in places]
    adjusted = zip(places, differences, family_p_values(differences), strict=True)
    significant: dict[float, list[MeasuredChange]] = {at: [] for at in pairs.levels}
    for (at, key), of_blocks, p_value in adjusted:
        if p_value <= ALPHA and (one := _change(pairs, key, [at], of_blocks, p_value)).significant:
            significant[at].append(one)
    for point in pairs.points:
        yield ChangesAt(at=point, measures=sorted(significant[_level(point)], key=_rank))


def _change(
    pairs: _Pairs, key: str, levels: Sequence[float], differences: Sequence[float], p_value: float
) -> MeasuredChange:
    """One measure, from the log ratio of every block. It is significant only if interval and
    p-value agree.
    """
    by_block = dict(enumerate(differences))
    of_blocks = effect(Ratios(by_block, by_block))
    assert of_blocks is not None, "there is a block"
    measure = pairs.measure(key)
    amounts = pairs.amount(key, 0, levels), pairs.amount(key, 1, levels)
    return MeasuredChange(
        key=measure.key,
        title=measure.title,
        group=measure.group,
        unit=measure.unit,
        per=pairs.per,
        baseline=amounts[0],
        variant=amounts[1],
        shown=(amount(measure, amounts[0]), amount(measure, amounts[1])),
        **change(of_blocks),
        blocks=of_blocks.blocks,
        p_value=p_value,
        significant=of_blocks.blocks >= BLOCKS_MIN and p_value <= ALPHA and of_blocks.is_significant,
        sentence=sentence(measure, pairs.variant, pairs.baseline, amounts, pairs.per),
    )


def _costs(
    trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment, per: Mapping[str, Per]
) -> Iterator[Costs]:
    """The costs of a transaction by workload, variant and point: medians over the blocks."""
    for workload in experiment.workloads:
        for variant in experiment.variants:
            for point in experiment.load.points():
                of_trials = [
                    costs[trial.index]
                    for trial in trials
                    if (trial.workload, trial.variant) == (workload.title, variant.name)
                    and trial.at == point.level()
                    and trial.figures is not None
                    and costs.get(trial.index)
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
                        at=point.level(),
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
