"""Computes the running order of the trials: blocks in balanced random order, groups, and rotated slots.

Variants are compared within blocks, close together in time, so that drift (temperature, other processes, the
file system) affects all of them alike. The order of the variants in a block, and their slots (directory and
ports), are random. Pairs of blocks such as AB BA, or Latin squares, would have a period, and a disturbance
with the same period (a cron job, a checkpoint) would look like an effect of a variant: see
`benchmarks/truth/order.py`.

Independent random orders are sometimes far from balanced: one of two variants would run first in 7 or 8 of 8
blocks in 7 % of the experiments. So the orders of a cycle of blocks are drawn again until the mean position
of every variant is about that of all (constrained randomization, Moulton 2004, Clinical Trials 1:297).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.experiment.model import Experiment, Point

# Random order seeds are below this limit, so that they are short enough to type.
ORDER_SEEDS = 1_000_000
# Number of blocks of a cycle of orders, unless the number of blocks of the run is fixed.
CYCLE_BLOCKS = 8


@dataclass(frozen=True)
class Trial:
    """One engine run: one variant, one workload, one point, one block. All numbers start at 0 and
    follow the running order.
    """

    index: int
    block: int
    # Trials of one group run one after another on one server start.
    group: int
    variant: str
    workload: str
    point: Point
    # The server's slot (directory, port, socket); there are as many slots as variants.
    slot: int = 0
    # The block that this trial's block repeats; None for planned blocks.
    repeats: int | None = None


def trial_number(index: int) -> str:
    """The number of the trial with that index in texts and as the name of its folder, which begin at 0001."""
    return f"{index + 1:04d}"


def schedule(experiment: Experiment, blocks: int | None = None) -> tuple[Trial, ...]:
    """Every trial of the experiment in running order; equal experiments have equal schedules on every
    machine. With another number of `blocks`, those that both schedules have are equal.
    """
    trials: list[Trial] = []
    count = experiment.design.blocks if blocks is None else blocks
    orders = {
        workload.title: _VariantOrder(experiment, workload.title, count) for workload in experiment.workloads
    }
    starts = {titles[0]: titles for titles in workloads_by_start(experiment)}
    for block in range(count):
        for group in _groups(experiment, orders, starts, block):
            number = trials[-1].group + 1 if trials else 0
            trials += [
                Trial(len(trials) + offset, block, number, variant, workload, point, slot)
                for offset, (variant, workload, point, slot) in enumerate(group)
            ]
    return tuple(trials)


def planned_blocks(trials: Iterable[Trial]) -> list[int]:
    """The numbers of the blocks that repeat no other block, in running order."""
    return list(dict.fromkeys(trial.block for trial in trials if trial.repeats is None))


def top_up(experiment: Experiment, trials: Sequence[Trial], blocks: int) -> list[Trial]:
    """The trials of so many more blocks, whose balanced order continues that of `trials`; their numbers
    follow the last ones.
    """
    last = max(trials, key=lambda trial: trial.index)
    so_far = len(planned_blocks(trials))
    every = schedule(experiment, so_far + blocks)
    before = [trial for trial in every if trial.block < so_far][-1]
    next_block = max(trial.block for trial in trials) + 1
    return [
        replace(
            trial,
            index=last.index + trial.index - before.index,
            block=next_block + trial.block - so_far,
            group=last.group + trial.group - before.group,
        )
        for trial in every
        if trial.block >= so_far
    ]


def count_earlier_trials(experiment: Experiment, trial: Trial, planned: Sequence[Trial] = ()) -> int:
    """Number of trials that ran before this one on the same data; `planned` are the run's trials, including
    repeats.

    If every group begins with fresh data, these are the trials of its group, else all trials of its variant
    and of the variants that use the same database.
    """
    renewed = experiment.design.renews_data
    sharing = {trial.variant, *experiment.variants_on_data_of(trial.variant)}
    return sum(
        entry.group == trial.group if renewed else entry.variant in sharing
        for entry in planned or schedule(experiment)
        if entry.index < trial.index
    )


def engine_seed(experiment: Experiment, trial: Trial) -> int:
    """The seed of a trial's keys, below 2^53 so that every JSON reader represents it exactly.

    It does not depend on the variant: all variants of a block use the same keys (common random numbers), so
    random differences between keys do not affect the comparison. Variants that one after the other change
    the same data are the exception: the second would write the values that are there, which changes no row.
    For the same reason the order seed, which differs from run to run, is part of it where the data of an
    earlier run may be left.
    """
    holders: list[int | str] = [trial.variant] if experiment.variants_on_data_of(trial.variant) else []
    design, server = experiment.design, experiment.variant(trial.variant).server
    if not (server.is_private or design.renews_data or design.order_seed is None):
        holders.append(design.order_seed)
    return (
        _random_number(
            experiment.design.seed, "engine", trial.block, trial.workload, _name(trial.point), *holders
        )
        >> 11
    )


def background_seed(experiment: Experiment, trial: Trial, title: str) -> int:
    """The seed of the keys of a background load in a trial, with the properties of `engine_seed`."""
    return _random_number(engine_seed(experiment, trial), "background", title) >> 11


def round_order(experiment: Experiment, trial: Trial, number: int) -> list[str]:
    """The order of the variants in one round of slices: random, so that no variant always follows another
    one. `trial` is any trial of the round's block, workload and point.
    """
    names = [variant.name for variant in experiment.variants]
    seed, point = experiment.design.effective_order_seed, _name(trial.point)
    return _shuffle(names, seed, "round", trial.block, trial.workload, point, number)


class _VariantOrder:
    """Order and slots of the variants for one workload, block by block."""

    def __init__(self, experiment: Experiment, workload: str, blocks: int) -> None:
        design = experiment.design
        names = [variant.name for variant in experiment.variants]
        planned = None if design.stop else design.blocks
        seed = design.effective_order_seed
        self.orders = balanced_orders(names, blocks, planned, seed, "variant", workload)
        slots = balanced_orders(names, blocks, planned, seed, "slot", workload)
        # If data are kept between groups, each variant keeps its slot.
        self.slots = slots if design.state == "restore" else [names] * blocks

    def slot(self, block: int, variant: str) -> int:
        """The slot of a variant in a block."""
        return self.slots[block].index(variant)


def _groups(
    experiment: Experiment,
    orders: Mapping[str, _VariantOrder],
    starts: Mapping[str, Sequence[str]],
    block: int,
) -> Iterator[list[tuple[str, str, Point, int]]]:
    """One block's groups in running order; `starts` has the workloads of each start by the first one."""
    seed = experiment.design.effective_order_seed
    for first in _shuffle(list(starts), seed, "workload", block):
        order = orders[first]
        loads = []
        for workload in _shuffle(list(starts[first]), seed, "workload", block):
            by_name = {_name(point): point for point in experiment.load.points()}
            names = list(by_name)
            if experiment.design.order == "random":
                names = _shuffle(names, seed, "point", block, workload)
            loads += [(workload, by_name[name]) for name in names]
        # With fresh data per trial every trial starts its server, so the variants of one point run in
        # succession.
        parts = [[load] for load in loads] if experiment.design.state_per == "trial" else [loads]
        for part in parts:
            for variant in order.orders[block]:
                slot = order.slot(block, variant)
                yield [(variant, workload, point, slot) for workload, point in part]


def workloads_by_start(experiment: Experiment) -> list[tuple[str, ...]]:
    """The titles of the workloads, those together that run on one start of a variant's server in a block:
    with `state_per = "block"` all that load the same tables.
    """
    if experiment.design.state_per != "block":
        return [(entry.title,) for entry in experiment.workloads]
    sets: dict[str, list[str]] = {}
    for workload in experiment.workloads:
        data = [experiment.workload_for(variant, workload.title).data() for variant in experiment.variants]
        sets.setdefault(json.dumps([type(workload).__name__, data], sort_keys=True), []).append(
            workload.title
        )
    return [tuple(titles) for titles in sets.values()]


def split_by_start(experiment: Experiment, trials: Iterable[Trial]) -> list[list[Trial]]:
    """The trials in running order, those together whose servers run at the same time in slices: those of a
    block, and of the workloads that run on one start of a server.
    """
    start_of = {title: titles for titles in workloads_by_start(experiment) for title in titles}
    return [
        list(part)
        for _, part in itertools.groupby(trials, lambda trial: (trial.block, start_of[trial.workload]))
    ]


def balanced_orders(
    names: Sequence[str], blocks: int, planned: int | None, *label: int | str
) -> list[list[str]]:
    """For each block a random order of `names`, such that over a cycle the mean positions of the names differ
    no more than those of independent orders do on average.

    `label` selects the random numbers: equal labels give equal orders. If the number of blocks is fixed, the
    `planned` blocks are one cycle. Blocks that are added later have cycles of their own.
    """
    orders: list[list[str]] = []
    while len(orders) < blocks:
        size = planned if planned and not orders else CYCLE_BLOCKS
        draws = (_draw_cycle(names, size, *label, len(orders), draw) for draw in itertools.count())
        orders += next(cycle for cycle in draws if _is_balanced(cycle))
    return orders[:blocks]


def _draw_cycle(names: Sequence[str], size: int, *label: int | str) -> list[list[str]]:
    return [_shuffle(list(names), *label, block) for block in range(size)]


def _is_balanced(cycle: Sequence[Sequence[str]]) -> bool:
    """Whether the variance of the names' sums of positions is at most its expected value."""
    size, count = len(cycle), len(cycle[0])
    sums = dict.fromkeys(cycle[0], 0)
    for order in cycle:
        for position, name in enumerate(order):
            sums[name] += 2 * position - (count - 1)
    # Twice a position has the variance (count^2 - 1) / 3.
    return 3 * sum(entry**2 for entry in sums.values()) <= size * count * (count**2 - 1)


def _name(point: Point) -> str:
    return f"{point.connections} connections" if point.rate is None else f"{point.rate!r}/s"


def _shuffle(names: list[str], *label: int | str) -> list[str]:
    """A random order, computed from independent uniform numbers, so that it is the same in every Python
    release.
    """
    return sorted(names, key=lambda name: (_random_number(*label, name), name))


def _random_number(*parts: int | str) -> int:
    """A uniform 64-bit number that depends only on `parts`."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
