"""Tests which costs of a transaction differ between the baseline and a variant, and writes explained.json.

::

    cost per transaction of every trial -> log ratio per block and load -> mean over the loads of a block
        -> estimate and interval by the signed-rank method, for each measure
        -> significant if the joint sign-flip test of all measures rejects "no change" too

Significant changes come first, resources before the server's counters, then the largest change first. If
there are several loads, the measures are also tested at each load, because a counter may change only with
many connections.

A report is one statement, so the error rate is that of the run: all measures of all comparisons are tested
together, and so are those at all single loads (`stats.family.costs_levels`). The test changes the signs of
all rows of a block at once. Every row alone is symmetric if its two variants are equal; that the rows of
several variants have one baseline only makes them correlated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median

from dbdyno.decide.comparison import change
from dbdyno.experiment.model import Experiment
from dbdyno.explain import TABLE_COLUMNS, Cost, Measure, amount, log_ratio, sentence
from dbdyno.stats.family import costs_levels, is_within
from dbdyno.stats.joint import family_p_values
from dbdyno.stats.paired import Ratios, effect
from dbdyno.stats.verdict_rule import BLOCKS_MIN
from dbdyno.store.document import PointDict
from dbdyno.store.explained import ComparisonChanges, Costs, ExplainedFile, MeasuredChange, Per, PointChanges
from dbdyno.store.measured import MeasuredTrial, Point

# A counter is tested if, at some load, the larger of its two counts in a block has at least this many steps,
# in the median over the blocks. The rule treats both variants alike, so the sign-flip test stays exact.
COUNTED_MIN = 5.0

# Trial -> its costs by key.
TrialCosts = Mapping[int, Mapping[str, Cost]]


def _rank(measured_change: MeasuredChange) -> tuple[bool, bool, float, str]:
    """The sort key: significant changes first, then resources, then large changes."""
    assert measured_change.effect_percent is not None, "amounts are positive, so their ratios are finite"
    size = abs(math.log1p(max(measured_change.effect_percent, -99.999999) / 100.0))
    return not measured_change.significant, measured_change.group != "resource", -size, measured_change.key


def explain(trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment) -> ExplainedFile:
    """The content of explained.json."""
    per: dict[str, Per] = {
        workload.title: "query" if _statements(trials, workload.title) == 1.0 else "transaction"
        for workload in experiment.workloads
    }
    of_comparisons = {
        (variant.name, workload.title): _pairs(
            [trial for trial in trials if trial.workload == workload.title],
            costs,
            experiment,
            variant.name,
            per[workload.title],
        )
        for variant in experiment.variants[1:]
        for workload in experiment.workloads
    }
    changes, at_loads = _changes(list(of_comparisons.values()))
    return ExplainedFile(
        baseline=experiment.variants[0].name,
        comparisons=[
            ComparisonChanges(variant=variant, workload=workload, measures=measures, points=points)
            for (variant, workload), measures, points in zip(of_comparisons, changes, at_loads, strict=True)
        ],
        costs=list(_costs(trials, costs, experiment, per)),
    )


def _statements(trials: Sequence[MeasuredTrial], workload: str) -> float:
    """The measured number of statements per transaction, rounded."""
    figures = [trial.figures for trial in trials if trial.workload == workload and trial.figures]
    return round(median(figure.statements / figure.events for figure in figures)) if figures else 0.0


@dataclass(frozen=True)
class _Pairs:
    """The costs of the comparable trials of baseline (role 0) and variant (role 1) on one workload."""

    baseline: str
    variant: str
    per: Per
    # Role, load, block -> costs by key.
    cells: Mapping[tuple[int, float, int], Mapping[str, Cost]]
    points: Sequence[PointDict]
    # Blocks in which all trials have costs.
    blocks: Sequence[int]

    @property
    def loads(self) -> list[float]:
        return [Point.of(point).value for point in self.points]

    def testable_keys(self) -> list[str]:
        """The measures that every trial has, and whose counters grow by enough steps at some load."""
        complete = [self.cells[role, load, block] for role, load, block in self._cell_keys()]
        common = set.intersection(*(set(cell) for cell in complete)) if complete else set()
        return sorted(key for key in common if any(self._counts(key, load) for load in self.loads))

    def _counts(self, key: str, load: float) -> bool:
        """Whether the counter grows by enough steps in the median block at one load."""
        larger = (max(self.cells[role, load, block][key].counted for role in (0, 1)) for block in self.blocks)
        return median(larger) >= COUNTED_MIN * self.measure(key).quantum

    def measure(self, key: str) -> Measure:
        return self.cells[next(self._cell_keys())][key].measure

    def log_ratios(self, key: str, load: float) -> list[float]:
        """The log ratio of each block at one load."""
        return [
            log_ratio(self.cells[0, load, block][key], self.cells[1, load, block][key])
            for block in self.blocks
        ]

    def amounts(self, key: str, loads: Sequence[float]) -> tuple[float, float]:
        """The costs of baseline and variant: the geometric mean over the loads of the medians over the
        blocks.

        If a median is 0, it is the arithmetic mean.
        """
        first, second = (
            [median(self.cells[role, load, block][key].each for block in self.blocks) for load in loads]
            for role in (0, 1)
        )
        if len(loads) == 1 or not all((*first, *second)):
            return fmean(first), fmean(second)
        return geometric_mean(first), geometric_mean(second)

    def _cell_keys(self) -> Iterator[tuple[int, float, int]]:
        return itertools.product((0, 1), self.loads, self.blocks)


def _pairs(
    trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment, variant: str, per: Per
) -> _Pairs:
    """The costs on one workload, of blocks in which both variants have results at every load."""
    names = (experiment.variants[0].name, variant)
    cells = {
        (names.index(trial.variant), trial.point.value, trial.block): costs[trial.index]
        for trial in trials
        if trial.variant in names and trial.figures is not None and costs.get(trial.index)
    }
    points = [point.as_dict() for point in experiment.load.points()]
    # In the order in which they ran.
    blocks = [
        block
        for block in dict.fromkeys(block for _, _, block in cells)
        if all((role, Point.of(point).value, block) in cells for role in (0, 1) for point in points)
    ]
    return _Pairs(*names, per, cells, points, blocks)


def _changes(
    comparisons: Sequence[_Pairs],
) -> tuple[list[list[MeasuredChange]], list[list[PointChanges]]]:
    """The changes of each comparison, ranked: of every measure over all loads, and the significant ones at
    each load. There are none at a single load, nor if no block is complete.
    """
    keys = [(pairs, key) for pairs in comparisons for key in pairs.testable_keys()]
    blocks = len({block for pairs in comparisons for block in pairs.blocks})
    several_loads = any(len(pairs.points) > 1 for pairs in comparisons)
    level, level_at_load = costs_levels(blocks, several_loads=several_loads)
    overall = [(test.row, test.change(level)) for test in _tests([_Row(*key, key[0].loads) for key in keys])]
    at_loads: list[tuple[_Row, MeasuredChange]] = []
    if several_loads:
        tests = _tests([_Row(*key, [load]) for key in keys for load in key[0].loads])
        at_loads = [
            (test.row, test.change(level_at_load)) for test in tests if is_within(test.p_value, level_at_load)
        ]
    return (
        [sorted((entry for row, entry in overall if row.pairs is pairs), key=_rank) for pairs in comparisons],
        [_points(pairs, at_loads) for pairs in comparisons],
    )


def _points(pairs: _Pairs, changes: Sequence[tuple[_Row, MeasuredChange]]) -> list[PointChanges]:
    """The significant ones of the changes of a comparison, at each of several loads."""
    if len(pairs.points) < 2 or len(pairs.blocks) < BLOCKS_MIN:
        return []
    changes_of_pairs = [
        (row.loads[0], change) for row, change in changes if row.pairs is pairs and change.significant
    ]
    return [
        PointChanges(
            at=point,
            measures=sorted(
                (entry for load, entry in changes_of_pairs if load == Point.of(point).value), key=_rank
            ),
        )
        for point in pairs.points
    ]


@dataclass(frozen=True)
class _Row:
    """One measure of one comparison, over some loads."""

    pairs: _Pairs
    key: str
    loads: Sequence[float]

    @property
    def is_tested(self) -> bool:
        """Whether the row belongs to the family of tests. The components of a resource do not, because the
        resource itself does; nor do rows whose blocks are too few to be significant.
        """
        return self.pairs.measure(self.key).group != "part" and len(self.pairs.blocks) >= BLOCKS_MIN

    def log_ratios(self) -> dict[int, float]:
        """The log ratio of each block, the mean over the loads."""
        at_loads = zip(*(self.pairs.log_ratios(self.key, load) for load in self.loads), strict=True)
        return dict(zip(self.pairs.blocks, map(fmean, at_loads), strict=True))


@dataclass(frozen=True)
class _Test:
    """A row with its log ratios, and its p-value, which is adjusted for all rows of the family."""

    row: _Row
    log_ratios: Mapping[int, float]
    p_value: float

    def change(self, level: float) -> MeasuredChange:
        """The change of the measure. It is significant if the interval excludes zero and the p-value is
        small enough.
        """
        row, of_blocks = self.row, effect(Ratios(self.log_ratios, self.log_ratios))
        assert of_blocks is not None, "there is a block"
        measure = row.pairs.measure(row.key)
        amounts = row.pairs.amounts(row.key, row.loads)
        return MeasuredChange(
            key=measure.key,
            title=measure.title,
            group=measure.group,
            unit=measure.unit,
            per=row.pairs.per,
            baseline=amounts[0],
            variant=amounts[1],
            shown=(amount(measure, amounts[0]), amount(measure, amounts[1])),
            **change(of_blocks),
            p_value=self.p_value,
            significant=row.is_tested and is_within(self.p_value, level) and of_blocks.is_significant,
            sentence=sentence(measure, row.pairs.variant, row.pairs.baseline, amounts, row.pairs.per),
        )


def _tests(rows: Sequence[_Row]) -> list[_Test]:
    """The joint test of all rows of one family."""
    log_ratios = [row.log_ratios() for row in rows]
    blocks = list(dict.fromkeys(block for of_row in log_ratios for block in of_row))
    family = [index for index, row in enumerate(rows) if row.is_tested]
    values = [[log_ratios[index].get(block, math.nan) for block in blocks] for index in family]
    adjusted = dict(zip(family, family_p_values(values), strict=True))
    return [
        _Test(row, of_row, adjusted.get(index, 1.0))
        for index, (row, of_row) in enumerate(zip(rows, log_ratios, strict=True))
    ]


def cost_ratios(
    key: str,
    variant: str,
    trials: Sequence[MeasuredTrial],
    costs: TrialCosts,
    experiment: Experiment,
) -> dict[str, Ratios]:
    """Workload -> the log ratios of one cost per block, means over the loads; without the workloads in which
    the counter grew too little.
    """
    ratios = {}
    for workload in experiment.workloads:
        of_workload = [trial for trial in trials if trial.workload == workload.title]
        pairs = _pairs(of_workload, costs, experiment, variant, "transaction")
        if key in pairs.testable_keys():
            by_block = _Row(pairs, key, pairs.loads).log_ratios()
            ratios[workload.title] = Ratios(by_block, by_block)
    return ratios


def _costs(
    trials: Sequence[MeasuredTrial], costs: TrialCosts, experiment: Experiment, per: Mapping[str, Per]
) -> Iterator[Costs]:
    """The costs of a transaction for each workload, variant and load: medians over the blocks."""
    for workload in experiment.workloads:
        for variant in experiment.variants:
            for point in experiment.load.points():
                of_trials = [
                    costs[trial.index]
                    for trial in trials
                    if (trial.workload, trial.variant) == (workload.title, variant.name)
                    and trial.at == point.as_dict()
                    and trial.figures is not None
                    and costs.get(trial.index)
                ]
                measures = {key: entry.measure for cost in of_trials for key, entry in cost.items()}
                each = {
                    key: median(cost[key].each for cost in of_trials if key in cost)
                    for key in sorted(measures)
                }
                if each:
                    yield Costs(
                        workload=workload.title,
                        variant=variant.name,
                        at=point.as_dict(),
                        per=per[workload.title],
                        blocks=len(of_trials),
                        costs=each,
                        shown={
                            key: amount(measures[key], each[key])
                            for key in TABLE_COLUMNS
                            if key in each and (measures[key].group == "resource" or key == "proxy_cpu_us")
                        },
                    )
