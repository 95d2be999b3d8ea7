"""R10: whether it matters which variant of a block runs first.

The order is balanced, so an order effect widens the interval and does not shift the estimate. If the order
effect is significant, the verdict also has the cross-over interval, from which it is removed::

    log ratio of a block in which the variant ran later      = effect + order effect
    log ratio of a block in which the variant ran earlier    = effect - order effect
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.finding import Finding
from dbdyno.judge.wording import METRICS, interval, signed
from dbdyno.stats.paired import ALPHA, Ratios
from dbdyno.stats.rank_sum import Shift, shift
from dbdyno.stats.signed_rank import percent
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Order

# A smaller order effect, in percent, is not reported if no zone of equivalence is declared.
NOTEWORTHY_PERCENT = 1.0


def order_effect(
    ratios: Ratios, trials: Sequence[MeasuredTrial], baseline: str, variant: str
) -> Order | None:
    """The order effect on the log ratios of one comparison; `trials` are the trials of its workload.

    None if a ratio is known only by a bound, or if there are too few blocks.
    """
    first: dict[tuple[int, str], int] = {}
    for trial in trials:
        key = (trial.place.block, trial.place.variant)
        first[key] = min(first.get(key, trial.place.index), trial.place.index)
    if not ratios.exact:
        return None
    later = [r for block, r in ratios.lows.items() if first[block, baseline] < first[block, variant]]
    earlier = [r for block, r in ratios.lows.items() if first[block, baseline] > first[block, variant]]
    position = shift(later, earlier, ALPHA)
    crossover = shift(later, [-ratio for ratio in earlier], ALPHA)
    if position is None or crossover is None:
        return None
    effect, ends = _halved(position)
    without, without_ends = _halved(crossover)
    return Order(
        effect_percent=effect,
        interval_percent=ends,
        blocks=(len(later), len(earlier)),
        crossover_percent=without,
        crossover_interval_percent=without_ends,
    )


def _halved(shifted: Shift) -> tuple[float, tuple[float, float]]:
    estimate, low, high = (percent(value / 2.0) for value in (shifted.estimate, shifted.low, shifted.high))
    return estimate, (low, high)


def order_findings(
    order: Order | None, names: tuple[str, str, str], metric: str, delta_percent: float | None
) -> Iterator[Finding]:
    """R10 for one comparison; `names` are baseline, variant and workload."""
    limit = NOTEWORTHY_PERCENT if delta_percent is None else delta_percent / 2.0
    if order is None or not order.is_sure or math.fabs(order.effect_percent) <= limit:
        return
    baseline, variant, workload = names
    yield Finding(
        "R10",
        "warn",
        f"the variant that runs later in a block has {signed(order.effect_percent)} % {METRICS[metric]} "
        f"({interval(order.interval_percent)}) on {workload}: each trial leaves something behind for the "
        "next. The order is balanced, so the estimate is not shifted; without the order effect "
        f"{variant} against {baseline} is {signed(order.crossover_percent)} % "
        f"({interval(order.crossover_interval_percent)})",
        {"workload": workload, "metric": METRICS[metric], **order.model_dump(mode="json")},
        variant,
        fix='A longer warmup, or state_per = "trial" under [design], makes it smaller',
    )
