"""How many more blocks an answer needs, from the variation of the blocks so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

from dbdyno.decide.effects import Assessment
from dbdyno.say.wording import duration
from dbdyno.stats.paired import ALPHA, Ratios
from dbdyno.text import compose, join

# Half width of the 95 % interval = HALF_WIDTH * s / sqrt(blocks), where s is the standard deviation of the
# blocks' log ratios, if the number of blocks was fixed before the run. Other levels are in proportion to the
# quantiles of the normal distribution.
HALF_WIDTH = 2.2
# An undecided sentence says how many blocks would make the half width of the interval one of these values, in
# percent.
PRECISIONS = (20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2)
# It names the first precision that needs at least MORE_BLOCKS times the present blocks, and at most
# BLOCKS_MAX.
MORE_BLOCKS, BLOCKS_MAX = 1.3, 1_000


def deviation(ratios: Ratios) -> float | None:
    """The standard deviation of the blocks' log ratios; None if it is unknown or 0."""
    values = list(ratios.lows.values())
    if not ratios.is_exact or len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return spread if math.isfinite(spread) and spread > 0.0 else None


def half_width(assessment: Assessment, blocks: int, level: float) -> float:
    """Half the width of the interval at `level` that so many blocks are expected to give, in standard
    deviations.
    """
    if assessment.looks is None:
        quantile, usual = (NormalDist().inv_cdf(1.0 - entry / 2.0) for entry in (level, ALPHA))
        return HALF_WIDTH * quantile / usual / math.sqrt(blocks)
    return assessment.looks.half_width(blocks, assessment.alpha, level)


def blocks_for(
    assessment: Assessment, limit: float, level: float | None = None, most: int = BLOCKS_MAX
) -> int | None:
    """The smallest number of blocks, from the present one on, whose half width is expected to be at most
    `limit`, a log ratio. `level` is the significance level of the interval, by default of the printed one.

    None if it is above `most`, or if the variation is unknown.
    """
    level = level or assessment.alpha
    spread, present = deviation(assessment.overall_ratios), len(assessment.overall_ratios.lows)
    if spread is None:
        return None
    candidates: Sequence[int] = range(present, most + 1)
    if assessment.looks is not None:
        candidates = [count for count in assessment.looks.counts(most) if count >= present]
    return next(
        (candidate for candidate in candidates if half_width(assessment, candidate, level) * spread <= limit),
        None,
    )


def next_precision(assessment: Assessment) -> tuple[float, int] | None:
    """A half width in percent that clearly more blocks would reach, and their number; None if none would."""
    present = len(assessment.overall_ratios.lows)
    for precision in PRECISIONS:
        needed = blocks_for(assessment, precision / 100.0)
        if needed is None:
            return None
        if needed >= MORE_BLOCKS * present:
            return precision, needed if needed < 20 else round(needed, -1)
    return None


def more_blocks_text(assessment: Assessment, block_s: float | None) -> list[str]:
    """That precision as text: ±5 % needs about 60 blocks, 40 minutes; [] if there is none.

    A run that cannot be extended may have too few blocks for it. The number is then that of a new run, whose
    blocks are fixed. `block_s` is the time of one block in seconds, if it is known.
    """
    target, run = next_precision(assessment), ""
    if target is None and assessment.looks is not None and assessment.looks.last is not None:
        target, run = next_precision(replace(assessment, looks=None)), compose(" in a new run")
    if target is None:
        return []
    precision, blocks = target
    time = join(", ", ("", duration(blocks * block_s))) if block_s else ""
    return [
        compose(
            "±{precision:g} % needs about {blocks} blocks{run}{time}",
            precision=precision,
            blocks=blocks,
            run=run,
            time=time,
        )
    ]
