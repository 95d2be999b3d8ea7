"""Tests which costs of a transaction differ between the baseline and a variant, and writes explained.json.

::

    cost per transaction of every trial -> log ratio per block and load -> mean over the loads of a block
        -> estimate and interval by the signed-rank method, for each measure
        -> significant if the joint sign-flip test of all measures rejects "no change" too

Significant changes come first, resources before the server's counters, then the largest change first. If
there are several loads, the measures are also tested at each load, because a counter may change only with
many connections. The measures at all loads then share the family-wise error rate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median

from dbdyno.experiment.differences import is_identical
from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost, log_ratio
from dbdyno.explain.formatting import amount, sentence
from dbdyno.explain.measures import Measure
from dbdyno.finding import Finding
from dbdyno.judge.comparison import change
from dbdyno.stats.max_t import family_p_values
from dbdyno.stats.paired import ALPHA, Ratios, effect
from dbdyno.stats.verdict_rule import BLOCKS_MIN
from dbdyno.store.document import PointDict
from dbdyno.store.explained import ComparisonChanges, Costs, ExplainedFile, MeasuredChange, Per, PointChanges
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# A counter is tested if, at some load, the larger of its two counts in a block has at least this many steps,
# in the median over the blocks. The rule treats both variants alike, so the sign-flip test stays exact.
COUNTED_MIN = 5.0
# The measures in the report's table of costs. Read and write calls are used only if the device has no
# counters.
TABLE_MEASURES = (
    *("cpu_us", "proxy_cpu_us", "context_switches", "cpu_wait_us"),
    *("disk_reads", "read_calls", "read_kib", "disk_writes", "write_calls", "write_kib"),
)

# Trial -> its costs by key.
TrialCosts = Mapping[int, Mapping[str, Cost]]


def _rank(one: MeasuredChange) -> tuple[bool, bool, float, str]:
    """The sort key: significant changes first, then resources, then large changes."""
    assert one.effect_percent is not None, "amounts are positive, so their ratios are finite"
    size = abs(math.log1p(max(one.effect_percent, -99.999999) / 100.0))
    return not one.significant, one.group != "resource", -size, one.key


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
            of_workload = [trial for trial in trials if trial.workload == workload.title]
            pairs = _pairs(of_workload, costs, experiment, variant.name, per[workload.title])
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
    """The measured number of statements per transaction, rounded."""
    figures = [trial.figures for trial in trials if trial.workload == workload and trial.figures]
    return round(median(one.statements / one.events for one in figures)) if figures else 0.0


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
        return [_load(point) for point in self.points]

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
        if all((role, _load(point), block) in cells for role in (0, 1) for point in points)
    ]
    return _Pairs(*names, per, cells, points, blocks)


def _load(at: PointDict) -> float:
    (value,) = at.values()
    return value


def _changes(pairs: _Pairs) -> list[MeasuredChange]:
    """The change of every measure over all loads, ranked; [] if no block is complete."""
    loads = pairs.loads
    log_ratios = {
        key: [
            fmean(of_block) for of_block in zip(*(pairs.log_ratios(key, load) for load in loads), strict=True)
        ]
        for key in pairs.testable_keys()
    }
    measures = {key: pairs.measure(key) for key in log_ratios}
    # The components of a resource are not tested, because the resource itself is.
    family = [key for key, measure in measures.items() if measure.group != "part"]
    adjusted = dict(zip(family, family_p_values([log_ratios[key] for key in family]), strict=True))
    changes = (
        _change(pairs, key, loads, of_blocks, adjusted.get(key, 1.0)) for key, of_blocks in log_ratios.items()
    )
    return sorted(changes, key=_rank)


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
            at_loads = zip(*(pairs.log_ratios(key, load) for load in pairs.loads), strict=True)
            by_block = dict(zip(pairs.blocks, map(fmean, at_loads), strict=True))
            ratios[workload.title] = Ratios(by_block, by_block)
    return ratios


def _significant_at(pairs: _Pairs) -> Iterator[PointChanges]:
    """The significant changes at each load, ranked; nothing if there is only one load.

    All measures at all loads share the family-wise error rate.
    """
    if len(pairs.points) < 2 or len(pairs.blocks) < BLOCKS_MIN:
        return
    keys = [key for key in pairs.testable_keys() if pairs.measure(key).group != "part"]
    tests = list(itertools.product(pairs.loads, keys))
    log_ratios = [pairs.log_ratios(key, load) for load, key in tests]
    adjusted = zip(tests, log_ratios, family_p_values(log_ratios), strict=True)
    significant: dict[float, list[MeasuredChange]] = {load: [] for load in pairs.loads}
    for (load, key), of_blocks, p_value in adjusted:
        if p_value <= ALPHA and (one := _change(pairs, key, [load], of_blocks, p_value)).significant:
            significant[load].append(one)
    for point in pairs.points:
        yield PointChanges(at=point, measures=sorted(significant[_load(point)], key=_rank))


def _change(
    pairs: _Pairs, key: str, loads: Sequence[float], log_ratios: Sequence[float], p_value: float
) -> MeasuredChange:
    """The change of one measure, from the log ratio of each block.

    It is significant if the interval excludes zero and the adjusted p-value is small enough.
    """
    by_block = dict(enumerate(log_ratios))
    of_blocks = effect(Ratios(by_block, by_block))
    assert of_blocks is not None, "there is a block"
    measure = pairs.measure(key)
    amounts = pairs.amounts(key, loads)
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
                measures = {key: one.measure for cost in of_trials for key, one in cost.items()}
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
                            for key in TABLE_MEASURES
                            if key in each and (measures[key].group == "resource" or key == "proxy_cpu_us")
                        },
                    )


def unchanged(explanation: ExplainedFile, experiment: Experiment) -> Iterator[Finding]:
    """P17: variants whose servers are declared differently although no metric changed significantly."""
    first = experiment.variants[0]
    for entry in explanation.comparisons:
        variant, measures = experiment.variant(entry.variant), entry.measures
        enough = bool(measures) and measures[0].blocks >= BLOCKS_MIN
        differs = not is_identical(experiment, variant)
        if differs and enough and not any(one.significant for one in measures):
            yield Finding(
                "P17",
                "warn",
                compose(
                    "{name} and {name_2} are declared differently, but none of {number} metrics per "
                    "transaction of {workload} changed significantly: the difference may not affect what "
                    "this workload does",
                    name=variant.name,
                    name_2=first.name,
                    number=len(measures),
                    workload=entry.workload,
                ),
                {"workload": entry.workload, "measures": len(measures)},
                variant.name,
            )
