"""Which trial runs when: blocks, random order inside each, and groups that share one server start.

Variants are compared inside blocks, close together in time, so that what drifts (temperature, neighbours, the
file system) meets all of them alike; the order inside a block is random so that what an earlier trial leaves
behind does not always meet the same one (Fisher 1935, The Design of Experiments, ch. 4: randomised blocks).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.experiment.model import Experiment, Point


@dataclass(frozen=True)
class Trial:
    """One engine run: one variant, one workload, one point, one block. Counted from 0 in running order."""

    index: int
    block: int
    # Trials of one group run one after another on one server start.
    group: int
    variant: str
    workload: str
    point: Point


def schedule(experiment: Experiment) -> tuple[Trial, ...]:
    """Every trial of the experiment in running order; the same for the same experiment, anywhere."""
    trials: list[Trial] = []
    for block in range(experiment.design.blocks):
        for group in _groups(experiment, block):
            number = trials[-1].group + 1 if trials else 0
            trials += [
                Trial(len(trials) + offset, block, number, variant, workload, point)
                for offset, (variant, workload, point) in enumerate(group)
            ]
    return tuple(trials)


def turn(experiment: Experiment, trial: Trial) -> int:
    """How many trials run before it on the same data.

    Those of its group where groups begin with fresh data, else all of its variant.
    """
    renewed = experiment.design.renews_data
    return sum(
        one.group == trial.group if renewed else one.variant == trial.variant
        for one in schedule(experiment)
        if one.index < trial.index
    )


def engine_seed(experiment: Experiment, trial: Trial) -> int:
    """The seed of a trial's keys, below 2^53 so that every JSON reader holds it exactly.

    Not a function of the variant: all variants of a block meet the same keys (common random numbers), which
    takes the luck of the draw out of their difference.
    """
    return _draw(experiment.design.seed, "engine", trial.block, trial.workload, _name(trial.point)) >> 11


def _groups(experiment: Experiment, block: int) -> Iterator[list[tuple[str, str, Point]]]:
    """One block's groups in running order."""
    seed = experiment.design.seed
    names = [variant.name for variant in experiment.variants]
    workloads = [workload.title for workload in experiment.workloads]
    for workload in _shuffled(workloads, seed, "workload", block):
        by_name = {_name(point): point for point in experiment.load.points()}
        points = list(by_name.values())
        if experiment.design.order == "random":
            points = [by_name[name] for name in _shuffled(list(by_name), seed, "point", block, workload)]
        if experiment.design.state_per == "trial":
            # A server start per trial anyway: the variants of a point can then stand side by side.
            for point in points:
                for variant in _shuffled(names, seed, "variant", block, workload, _name(point)):
                    yield [(variant, workload, point)]
        else:
            for variant in _shuffled(names, seed, "variant", block, workload):
                yield [(variant, workload, point) for point in points]


def _name(point: Point) -> str:
    return f"{point.connections} connections" if point.rate is None else f"{point.rate!r}/s"


def _shuffled(names: list[str], *where: int | str) -> list[str]:
    """A random order, by independent uniform draws: no generator whose stream a release may change."""
    return sorted(names, key=lambda name: (_draw(*where, name), name))


def _draw(*parts: int | str) -> int:
    """A uniform 64-bit number that depends on nothing but `parts`."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
