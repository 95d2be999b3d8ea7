"""The contrasts of a factorial experiment: the trials of each combination of levels, and the log ratios of
each block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.decide.effects import Assessment, Conditions
from dbdyno.experiment.family import Contrast
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.measure.foreign_load import weighted_ratios, weighted_shares, without_foreign_load
from dbdyno.stats.paired import Ratios
from dbdyno.store.document import Metric
from dbdyno.store.measured import MeasuredTrial

# Block -> the trial of one variant at one load.
Blocks = Mapping[int, MeasuredTrial]
# Levels of a variant -> its trials at each load, in the order of the file.
Cells = Mapping[tuple[str, ...], Sequence[Blocks]]


@dataclass(frozen=True)
class AssessedContrast:
    """A contrast on one workload, before its verdict is known."""

    contrast: Contrast
    workload: str
    cells: Cells
    assessment: Assessment
    conditions: Conditions
    # Findings that forbid a result; empty if there is a result.
    stops: Sequence[Finding]
    # For the caveats of the sentence: failures of servers, and findings about the workload.
    failures: Sequence[str]
    findings: Sequence[Finding]
    # Finished and planned blocks; with `design.stop`, the number of blocks that the run may have.
    blocks: tuple[int, int]
    blocks_at_most: int | None


def cells_of(trials: Sequence[MeasuredTrial], experiment: Experiment, metric: str) -> Cells:
    """The trials of every variant, load and block whose metric is known."""
    cells: dict[tuple[str, ...], list[Blocks]] = {}
    for variant in experiment.variants:
        levels = tuple(variant.levels[factor.name] for factor in experiment.factors)
        cells[levels] = [
            {
                trial.block: trial
                for trial in trials
                if trial.variant == variant.name and trial.at == point.as_dict() and trial.has(metric)
            }
            for point in experiment.load.points()
        ]
    return cells


def contrast_ratios(weights: Mapping[tuple[str, ...], float], cells: Cells, metric: Metric) -> list[Ratios]:
    """The bounds of a contrast at each load, per block."""
    ratios = []
    for load in range(len(next(iter(cells.values())))):
        weighted = [(weight, cells[cell][load]) for cell, weight in weights.items()]
        first, *others = (trials for _, trials in weighted)
        by_block = {
            block: [(weight, trials[block]) for weight, trials in weighted]
            for block in first
            if all(block in trials for trials in others)
        }
        ratios.append(
            without_foreign_load(weighted_ratios(by_block, metric), weighted_shares(by_block), metric)
        )
    return ratios
