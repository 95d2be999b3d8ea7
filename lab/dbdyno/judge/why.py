"""Why one variant differs from the baseline: what moved of all that is counted per transaction, most certain
first.

::

    cost per transaction of every trial -> log ratio per block and point -> mean over the points of a block
        -> estimate and interval by the signed-rank machinery, one measure at a time
        -> "moved" where the joint sign-flip test over all measures says that it is no accident

Measures that moved come first, resources before the server's own counters, the largest change first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.explain.costs import Cost
from dbdyno.explain.measures import Measure
from dbdyno.explain.telling import amount, sentence
from dbdyno.judge.comparison import effect_json
from dbdyno.judge.findings import Finding, finding
from dbdyno.judge.measured import Measured
from dbdyno.stats.max_t import family_p_values
from dbdyno.stats.paired import ALPHA, Effect, curve_effect
from dbdyno.stats.words import EXPLORATORY_BELOW

SCHEMA = 1
# Counted less often than this in the busier arm's trials, nothing can be said of a counter.
COUNTED_MIN = 5.0
# What a transaction costs, in the table of every variant and load.
HEADLINE = (
    *("cpu_us", "context_switches", "cpu_wait_us"),
    *("disk_reads", "read_kib", "disk_writes", "write_kib"),
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
        return self.effect.blocks >= EXPLORATORY_BELOW and self.p_value <= ALPHA and excluded

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
            found = moved(of, costs, experiment, variant.name)
            entries = [_json(one, variant.name, baseline, per[workload.title]) for one in found]
            comparisons.append({"variant": variant.name, "workload": workload.title, "measures": entries})
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


def moved(trials: Sequence[Measured], costs: Costs, experiment: Experiment, variant: str) -> list[Moved]:
    """Every measure that both arms have on one workload, ranked. Blocks that lack a trial are left out."""
    cells = _cells(trials, costs, (experiment.variants[0].name, variant))
    points = [next(iter(point.at().values())) for point in experiment.load.points()]
    blocks = [
        block
        for block in sorted({block for _, _, block in cells})
        if all((arm, point, block) in cells for arm in (0, 1) for point in points)
    ]
    if not blocks:
        return []
    keys = set.intersection(*(set(cell) for place, cell in cells.items() if place[2] in blocks))
    kept: dict[str, list[float]] = {}
    for key in sorted(keys):
        if any(
            cells[arm, point, block][key].counted
            >= COUNTED_MIN * cells[arm, point, block][key].measure.quantum
            for arm in (0, 1)
            for point in points
            for block in blocks
        ):
            kept[key] = [
                fmean(math.log(cells[1, p, b][key].floored / cells[0, p, b][key].floored) for p in points)
                for b in blocks
            ]
    # Parts of a resource would be told twice.
    family = [key for key in kept if _measure(cells, key).group != "part"]
    adjusted = dict(zip(family, family_p_values([kept[key] for key in family]), strict=True))
    found = []
    for key, differences in kept.items():
        effect = curve_effect(differences)
        assert effect is not None, "there is a block"
        levels = (_level(cells, key, 0, points, blocks), _level(cells, key, 1, points, blocks))
        found.append(Moved(_measure(cells, key), levels, effect, adjusted.get(key, 1.0)))
    return sorted(found, key=lambda one: (*one.rank, one.measure.key))


# Arm (0 the baseline), point, block -> costs by key.
Cells = Mapping[tuple[int, float, int], Mapping[str, Cost]]


def _cells(trials: Sequence[Measured], costs: Costs, names: tuple[str, str]) -> Cells:
    return {
        (names.index(trial.place.variant), trial.place.level[1], trial.place.block): costs[trial.place.index]
        for trial in trials
        if trial.place.variant in names and trial.figures is not None and costs.get(trial.place.index)
    }


def _measure(cells: Cells, key: str) -> Measure:
    return next(cell[key].measure for cell in cells.values() if key in cell)


def _level(cells: Cells, key: str, arm: int, points: Sequence[float], blocks: Sequence[int]) -> float:
    if not any(cells[arm, point, block][key].counted for point in points for block in blocks):
        return 0.0
    medians = [median(cells[arm, point, block][key].floored for block in blocks) for point in points]
    return math.exp(fmean(math.log(value) for value in medians))


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
    """What a transaction costs, by workload, variant and point: medians over the blocks."""
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
                each = {
                    key: median(cost[key].each for cost in found if key in cost)
                    for key in HEADLINE
                    if any(key in cost for cost in found)
                }
                if each:
                    yield {
                        "workload": workload.title,
                        "variant": variant.name,
                        "at": point.at(),
                        "per": per[workload.title],
                        "blocks": len(found),
                        "costs": each,
                        "told": {key: amount(_key_measure(found, key), value) for key, value in each.items()},
                    }


def _key_measure(found: Sequence[Mapping[str, Cost]], key: str) -> Measure:
    return next(cost[key].measure for cost in found if key in cost)


def unmoved(entries: Mapping[str, Any], experiment: Experiment) -> Iterator[Finding]:
    """P17: set-ups that are declared to differ, and nothing that is counted moved."""
    first = experiment.variants[0]
    for entry in entries["comparisons"]:
        variant = experiment.variant(entry["variant"])
        measures = entry["measures"]
        enough = bool(measures) and measures[0]["blocks"] >= EXPLORATORY_BELOW
        if variant.server != first.server and enough and not any(one["moved"] for one in measures):
            yield finding(
                "P17",
                "warn",
                f"{variant.name} and {first.name} are set up differently, and of {len(measures)} things that "
                f"are counted per transaction of {entry['workload']} none moved: the difference may not "
                "reach what this workload does",
                variant.name,
                workload=entry["workload"],
                measures=len(measures),
            )
