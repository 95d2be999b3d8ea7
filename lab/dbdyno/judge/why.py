"""Why one variant differs from the baseline: what moved of all that is counted per transaction, most certain
first.

::

    cost per transaction of every trial -> log ratio per block and point -> mean over the points of a block
        -> estimate and interval by the signed-rank machinery, one measure at a time
        -> "moved" where the joint sign-flip test over all measures says that it is no accident

Measures that moved come first, resources before the server's own counters, the largest change first. Where
there are several points, the same is asked of each of them, in one family of all measures at all points: a
counter may move at many connections and stay at few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost
from dbdyno.explain.measures import Measure
from dbdyno.explain.telling import amount, sentence
from dbdyno.finding import Finding
from dbdyno.judge.comparison import effect_json
from dbdyno.judge.measured import Measured
from dbdyno.stats.max_t import family_p_values
from dbdyno.stats.paired import ALPHA, Effect, Ratios, effect
from dbdyno.stats.words import BLOCKS_MIN

SCHEMA = 1
# Counted less often than this in the busier arm's trials, nothing can be said of a counter.
COUNTED_MIN = 5.0
# What a transaction costs, in the table of every variant and load; reads and writes are calls of the server
# where no device counts them.
HEADLINE = (
    *("cpu_us", "context_switches", "cpu_wait_us"),
    *("disk_reads", "read_calls", "read_kib", "disk_writes", "write_calls", "write_kib"),
)

# Trial -> its costs by key.
Costs = Mapping[int, Mapping[str, Cost]]


@dataclass(frozen=True)
class Moved:
    """One measure of one comparison."""

    measure: Measure
    # Of baseline and variant: geometric mean over the points of the median over the blocks.
    levels: tuple[float, float]
    effect: Effect
    # Adjusted for all measures of the comparison.
    p_value: float

    @property
    def surely(self) -> bool:
        """Whether it is no accident."""
        ends = self.effect.interval_percent
        excluded = ends is not None and not ends[0] <= 0.0 <= ends[1]
        return self.effect.blocks >= BLOCKS_MIN and self.p_value <= ALPHA and excluded

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sorts what moved most certainly and farthest to the front."""
        far = abs(math.log1p(max(self.effect.effect_percent, -99.999999) / 100.0))
        return not self.surely, self.measure.group != "resource", -far


def explained(trials: Sequence[Measured], costs: Costs, experiment: Experiment) -> dict[str, Any]:
    """The content of explained.json."""
    per = {
        workload.title: "query" if _statements(trials, workload.title) == 1.0 else "transaction"
        for workload in experiment.workloads
    }
    baseline = experiment.variants[0].name
    comparisons = []
    for variant in experiment.variants[1:]:
        for workload in experiment.workloads:
            of = [trial for trial in trials if trial.place.workload == workload.title]
            names = (variant.name, baseline, per[workload.title])
            pairs = _pairs(of, costs, experiment, variant.name)
            comparisons.append(
                {
                    "variant": variant.name,
                    "workload": workload.title,
                    "measures": [_json(one, *names) for one in moved(pairs)],
                    "points": [
                        {"at": at, "moved": [_json(one, *names) for one in found]}
                        for at, found in moved_at(pairs)
                    ],
                }
            )
    return {
        "schema": SCHEMA,
        "baseline": baseline,
        "comparisons": comparisons,
        "costs": list(_costs(trials, costs, experiment, per)),
    }


def _statements(trials: Sequence[Measured], workload: str) -> float:
    """Statements per transaction, as they were counted."""
    found = [trial.figures for trial in trials if trial.place.workload == workload and trial.figures]
    return round(median(one.statements / one.events for one in found)) if found else 0.0


@dataclass(frozen=True)
class _Pairs:
    """The trials of baseline (arm 0) and variant (arm 1) on one workload that can be compared."""

    # Arm, level of the point, block -> costs by key.
    cells: Mapping[tuple[int, float, int], Mapping[str, Cost]]
    # As plans and results name them.
    points: Sequence[Mapping[str, float]]
    # Those that lack no trial.
    blocks: Sequence[int]

    @property
    def levels(self) -> list[float]:
        return [_level(point) for point in self.points]

    def counted(self) -> list[str]:
        """What every trial has, and one of them has counted often enough to speak of."""
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


def _pairs(trials: Sequence[Measured], costs: Costs, experiment: Experiment, variant: str) -> _Pairs:
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


def _level(at: Mapping[str, float]) -> float:
    (level,) = at.values()
    return level


def moved(pairs: _Pairs) -> list[Moved]:
    """Every measure over the whole curve, ranked; [] where no block is complete."""
    levels = pairs.levels
    kept = {
        key: [
            fmean(of_block) for of_block in zip(*(pairs.differences(key, at) for at in levels), strict=True)
        ]
        for key in pairs.counted()
    }
    measures = {key: pairs.measure(key) for key in kept}
    # Parts of a resource would be told twice.
    family = [key for key, measure in measures.items() if measure.group != "part"]
    adjusted = dict(zip(family, family_p_values([kept[key] for key in family]), strict=True))
    found = [
        Moved(measures[key], pairs.amounts(key, levels), _effect(differences), adjusted.get(key, 1.0))
        for key, differences in kept.items()
    ]
    return sorted(found, key=lambda one: (*one.rank, one.measure.key))


def moved_at(pairs: _Pairs) -> Iterator[tuple[Mapping[str, float], list[Moved]]]:
    """What surely moved at each of several points, ranked; nothing where the curve is one point.

    All measures at all points are one family, so that the chance of a false word holds for all of them.
    """
    if len(pairs.points) < 2 or len(pairs.blocks) < BLOCKS_MIN:
        return
    keys = [key for key in pairs.counted() if pairs.measure(key).group != "part"]
    places = list(itertools.product(pairs.levels, keys))
    differences = [pairs.differences(key, at) for at, key in places]
    adjusted = zip(places, differences, family_p_values(differences), strict=True)
    found: dict[float, list[Moved]] = {at: [] for at in pairs.levels}
    for (at, key), of_blocks, p_value in adjusted:
        if p_value <= ALPHA:
            one = Moved(pairs.measure(key), pairs.amounts(key, [at]), _effect(of_blocks), p_value)
            if one.surely:
                found[at].append(one)
    for point in pairs.points:
        yield point, sorted(found[_level(point)], key=lambda one: (*one.rank, one.measure.key))


def _effect(differences: Sequence[float]) -> Effect:
    by_block = dict(enumerate(differences))
    found = effect(Ratios(by_block, by_block))
    assert found is not None, "there is a block"
    return found


def _json(one: Moved, variant: str, baseline: str, per: str) -> dict[str, Any]:
    measure = one.measure
    return {
        "key": measure.key,
        "title": measure.title,
        "group": measure.group,
        "unit": measure.unit,
        "per": per,
        "baseline": one.levels[0],
        "variant": one.levels[1],
        "told": [amount(measure, level) for level in one.levels],
        **effect_json(one.effect),
        "blocks": one.effect.blocks,
        "p_value": one.p_value,
        "moved": one.surely,
        "sentence": sentence(measure, variant, baseline, one.levels, per),
    }


def _costs(
    trials: Sequence[Measured], costs: Costs, experiment: Experiment, per: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """What a transaction costs, by workload, variant and point: medians over the blocks.

    Of everything that is counted; told in words are the resources of `HEADLINE`.
    """
    for workload in experiment.workloads:
        for variant in experiment.variants:
            for point in experiment.load.points():
                found = [
                    costs[trial.place.index]
                    for trial in trials
                    if (trial.place.workload, trial.place.variant) == (workload.title, variant.name)
                    and trial.place.at == point.at()
                    and trial.figures is not None
                    and costs.get(trial.place.index)
                ]
                measures = {key: one.measure for cost in found for key, one in cost.items()}
                each = {
                    key: median(cost[key].each for cost in found if key in cost) for key in sorted(measures)
                }
                if each:
                    yield {
                        "workload": workload.title,
                        "variant": variant.name,
                        "at": point.at(),
                        "per": per[workload.title],
                        "blocks": len(found),
                        "costs": each,
                        "told": {
                            key: amount(measures[key], each[key])
                            for key in HEADLINE
                            if key in each and measures[key].group == "resource"
                        },
                    }


def unmoved(entries: Mapping[str, Any], experiment: Experiment) -> Iterator[Finding]:
    """P17: variants whose servers are declared differently although no metric changed significantly."""
    first = experiment.variants[0]
    for entry in entries["comparisons"]:
        variant = experiment.variant(entry["variant"])
        measures = entry["measures"]
        enough = bool(measures) and measures[0]["blocks"] >= BLOCKS_MIN
        if variant.server != first.server and enough and not any(one["moved"] for one in measures):
            yield Finding(
                "P17",
                "warn",
                f"{variant.name} and {first.name} are set up differently, but none of {len(measures)} "
                f"metrics per transaction of {entry['workload']} changed significantly: the difference may "
                "not affect what this workload does",
                {"workload": entry["workload"], "measures": len(measures)},
                variant.name,
            )
