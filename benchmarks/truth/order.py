"""False words under periodic disturbances, by the order of the blocks: `python -m benchmarks.truth.order`.

Cron jobs, timers and checkpoints disturb a machine periodically. If the order of the variants has the same
period, the disturbance looks like an effect. Here all variants are equal, and throughput falls by a share in
the first half of each period. Every cell of a grid (length of the period, share, number of variants, loads
and workloads, jitter of the trials' lengths, number of blocks, with and without a rule that stops the run)
has so many experiments, in which the signed-rank test looks for a difference of any variant. The orders are
those of dbdyno's schedule, or, for comparison, pairs of blocks AB BA. The worst cells are rows of
`benchmarks.truth`, where the real judge decides (`WORST`).
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dbdyno.experiment.schedule import balanced_orders
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.repeated import FIRST_LOOK, Looks
from dbdyno.stats.signed_rank import cut_off

from .simulation import busy_time

Array = NDArray[np.float64]
PERIODS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.9, 2.0, 2.1, 2.25, 2.5, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0)
DEPTHS = (0.03, 0.08, 0.15)
# Noise of a trial, and the jitter of its length as a share.
NOISE, JITTER = 0.02, 0.03
# Variants, loads, workloads.
SHAPES = ((2, 1, 1), (2, 3, 1), (2, 1, 2), (3, 1, 1), (4, 1, 1), (3, 3, 2))
# Blocks, and whether the run may stop earlier.
PLANS = ((8, False), (20, False), (20, True))


@dataclass(frozen=True)
class Cell:
    """The conditions of some experiments."""

    period: float
    depth: float
    variants: int
    loads: int
    workloads: int
    jitter: float
    blocks: int
    stops: bool
    # Effect of each position later in a block, in log units.
    position: float = 0.0

    def __str__(self) -> str:
        plan = f"stopped within {self.blocks} blocks" if self.stops else f"{self.blocks} blocks"
        jitter = ", jitter" if self.jitter else ""
        return (
            f"{self.variants} variants, {self.loads} loads, {self.workloads} workloads, {plan}, "
            f"period {self.period:g} blocks, -{100 * self.depth:g} %{jitter}"
            + (f", position effect of {100 * self.position:g} %" if self.position else "")
        )


# The cells with most false words of 1,000 experiments each, for the real judge.
WORST = (
    Cell(1.5, 0.15, 2, 3, 1, JITTER, 20, stops=False),
    Cell(1.25, 0.15, 2, 1, 1, 0.0, 20, stops=False),
    Cell(0.75, 0.08, 3, 3, 2, 0.0, 20, stops=False),
    Cell(1.5, 0.08, 2, 3, 1, JITTER, 8, stops=False),
    Cell(0.75, 0.08, 2, 1, 2, 0.0, 20, stops=False),
    Cell(6, 0.15, 4, 1, 1, 0.0, 8, stops=False),
    Cell(1.5, 0.08, 2, 3, 1, JITTER, 20, stops=False),
    Cell(1.5, 0.15, 3, 1, 1, JITTER, 8, stops=False),
    Cell(2.25, 0.15, 3, 1, 1, JITTER, 8, stops=False),
    Cell(0.75, 0.08, 2, 1, 2, JITTER, 8, stops=False),
    Cell(1.75, 0.08, 2, 3, 1, JITTER, 20, stops=False),
    Cell(1.5, 0.15, 3, 3, 2, JITTER, 20, stops=False),
    Cell(2, 0.08, 2, 1, 2, JITTER, 20, stops=False),
    Cell(2.1, 0.03, 2, 1, 2, 0.0, 8, stops=False),
    Cell(2.25, 0.15, 2, 1, 2, JITTER, 20, stops=False),
)


def cells() -> Iterator[Cell]:
    """The grid."""
    grid = itertools.product(PERIODS, DEPTHS, SHAPES, (0.0, JITTER), PLANS)
    for period, depth, shape, jitter, (blocks, stops) in grid:
        yield Cell(period, depth, *shape, jitter, blocks, stops)
    for shape, (blocks, stops) in itertools.product(SHAPES, PLANS):
        yield Cell(1.0, 0.0, *shape, 0.0, blocks, stops, position=0.05)


@lru_cache(maxsize=64)
def dbdyno_orders(variants: int, workload: int, blocks: int, stops: bool, count: int) -> NDArray[np.intp]:
    """Positions of the variants (experiment, block, variant) in dbdyno's orders."""
    names = [str(number) for number in range(variants)]
    orders = [
        balanced_orders(names, blocks, None if stops else blocks, seed, "variant", f"workload {workload}")
        for seed in range(count)
    ]
    return np.argsort(np.array(orders, dtype=np.intp), axis=2)


def pair_orders(variants: int, workload: int, blocks: int, stops: bool, count: int) -> NDArray[np.intp]:
    """Positions in random pairs of blocks AB BA, and in Latin squares one after the other, for comparison."""
    random = np.random.default_rng([variants, workload, blocks, stops])
    squares = math.ceil(blocks / variants)
    columns = random.permuted(np.tile(np.arange(variants), (count, squares, 1)), axis=2)
    rows = random.permuted(np.tile(np.arange(variants), (count, squares, 1)), axis=2)
    positions = (columns[:, :, None, :] + rows[:, :, :, None]) % variants
    return np.asarray(positions.reshape(count, squares * variants, variants)[:, :blocks])


def simulate(cell: Cell, count: int, orders: Callable[..., NDArray[np.intp]], seed: int) -> list[Array]:
    """Log ratios (experiment, block) of each variant to the first one, on each workload."""
    random = np.random.default_rng(seed)
    places = [
        orders(cell.variants, workload, cell.blocks, cell.stops, count) for workload in range(cell.workloads)
    ]
    of_block = cell.workloads * cell.variants * cell.loads
    lengths = 1.0 + cell.jitter * random.standard_normal((count, cell.blocks, of_block))
    ends = np.cumsum(lengths.reshape(count, -1), axis=1).reshape(lengths.shape) / of_block
    phase = cell.period * random.random((count, 1, 1))
    busy = (
        busy_time(ends + phase, cell.period) - busy_time(ends - lengths / of_block + phase, cell.period)
    ) * of_block
    speeds = np.log1p(-cell.depth * busy / lengths) + NOISE * random.standard_normal(lengths.shape)
    ratios = []
    for workload, positions in enumerate(places):
        # The trials of a group are the loads of one variant.
        own = speeds.reshape(count, cell.blocks, cell.workloads, cell.variants, cell.loads)[:, :, workload]
        by_variant = np.take_along_axis(own.mean(axis=3), positions, axis=2)
        by_variant += cell.position * positions
        ratios += [by_variant[:, :, other] - by_variant[:, :, 0] for other in range(1, cell.variants)]
    return ratios


def false_words(cell: Cell, tests: Sequence[Array]) -> float:
    """The share of experiments in which any test finds a difference, all at 5 % together."""
    alpha = ALPHA / len(tests)
    is_false = np.zeros(len(tests[0]), dtype=bool)
    for blocks in range(FIRST_LOOK, cell.blocks + 1) if cell.stops else (cell.blocks,):
        cut = Looks().cut_off(blocks, alpha, alpha) if cell.stops else cut_off(blocks, alpha, 0.0)
        if not cut:
            continue
        rows, columns = np.triu_indices(blocks)
        for ratios in tests:
            sums = ratios[:, rows] + ratios[:, columns]
            is_false |= np.minimum((sums <= 0).sum(axis=1), (sums >= 0).sum(axis=1)) < cut
    return float(is_false.mean())


def main() -> int:
    """Print the mean over all cells, the share of cells above 7 %, and the worst cells, for both orders."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth.order", description=__doc__)
    parser.add_argument("--experiments", type=int, default=1_000)
    parser.add_argument("--worst", type=int, default=15, help="number of cells that are listed")
    options = parser.parse_args()
    grid = list(cells())
    for name, orders in (("dbdyno's order", dbdyno_orders), ("pairs AB BA", pair_orders)):
        shares = [
            false_words(cell, simulate(cell, options.experiments, orders, number))
            for number, cell in enumerate(grid)
        ]
        above = sum(share > 0.07 for share in shares)
        mean = math.fsum(shares) / len(shares)
        print(f"{name}: mean of {len(grid)} cells {100 * mean:.1f} %, {above} cells above 7 %")
        ordered = sorted(zip(shares, grid, strict=True), key=lambda pair: -pair[0])
        for share, cell in ordered[: options.worst]:
            print(f"  {100 * share:.1f} %  {cell}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
