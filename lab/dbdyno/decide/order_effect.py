"""R10: the order effect, that is, whether it matters which variant of a block runs first.

The order is random and about balanced, so an order effect makes the interval wider and hardly shifts the
estimate. If the order effect is significant, its finding also gives the variant's effect without it
(cross-over estimate), because::

    log ratio of a block in which the variant ran later      = effect + order effect
    log ratio of a block in which the variant ran earlier    = effect - order effect

The intervals are those of the rank-sum test at 95 %. It cannot reach a level of 1 % with 4 and 4 blocks, so
whether the finding is reported also depends on a t-test.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.stats.paired import ALPHA, Ratios
from dbdyno.stats.rank_sum import Shift, shift, shift_p_value
from dbdyno.stats.signed_rank import percent
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import OrderEffect


def order_effect(
    ratios: Ratios, trials: Sequence[MeasuredTrial], baseline: str, variant: str
) -> OrderEffect | None:
    """The order effect in one comparison, or in several that run in the same order; `trials` are the trials
    of their workloads.

    None if only a bound of some ratio is known, or if blocks are too few.
    """
    # Block and variant -> the lowest index of a trial.
    first: dict[tuple[int, str], int] = {}
    for trial in trials:
        key = (trial.block, trial.variant)
        first[key] = min(first.get(key, trial.index), trial.index)
    if not ratios.is_exact:
        return None
    later = [r for block, r in ratios.lows.items() if first[block, baseline] < first[block, variant]]
    earlier = [r for block, r in ratios.lows.items() if first[block, baseline] > first[block, variant]]
    position = shift(later, earlier, ALPHA)
    crossover = shift(later, [-ratio for ratio in earlier], ALPHA)
    if position is None or crossover is None:
        return None
    effect, ends = _halved(position)
    without, without_ends = _halved(crossover)
    return OrderEffect(
        effect_percent=effect,
        interval_percent=ends,
        blocks=(len(later), len(earlier)),
        crossover_percent=without,
        crossover_interval_percent=without_ends,
        p_value=shift_p_value(later, earlier),
    )


def _halved(shifted: Shift) -> tuple[float, tuple[float, float]]:
    """Half of a shift of log ratios, in percent: estimate and interval."""
    estimate, low, high = (percent(value / 2.0) for value in (shifted.estimate, shifted.low, shifted.high))
    return estimate, (low, high)
