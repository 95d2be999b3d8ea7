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

import math
from collections.abc import Iterator, Sequence

from dbdyno.experiment.metrics import metric_text
from dbdyno.finding import Finding
from dbdyno.judge.wording import interval, signed
from dbdyno.stats.paired import ALPHA, Ratios
from dbdyno.stats.rank_sum import Shift, shift, shift_p_value
from dbdyno.stats.signed_rank import percent
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import OrderEffect
from dbdyno.text import compose

# Smaller order effects, in percent, are not reported. If a zone of equivalence is declared, the limit is half
# of it.
REPORTED_MIN_PERCENT = 1.0


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


def order_findings(
    order: OrderEffect | None,
    names: tuple[str, str, str],
    metric: str,
    delta_percent: float | None,
    averaged: Sequence[str] = (),
) -> Iterator[Finding]:
    """The finding R10 for one comparison, or for the mean of several; `names` are baseline, variant and
    workload, or a text for the `averaged` workloads.
    """
    limit = REPORTED_MIN_PERCENT if delta_percent is None else delta_percent / 2.0
    if order is None or not order.is_significant or math.fabs(order.effect_percent) <= limit:
        return
    baseline, variant, workload = names
    yield Finding(
        "R10",
        "warn",
        compose(
            "the variant that runs later in a block has {effect_percent} % {metric_text} "
            "({interval}) on {workload}: each trial affects the next one. The order is random, so "
            "the interval of the verdict allows for it; without the order effect {variant} against "
            "{baseline} is {crossover_percent} % ({interval_2})",
            effect_percent=signed(order.effect_percent),
            metric_text=metric_text(metric),
            interval=interval(order.interval_percent),
            workload=workload,
            variant=variant,
            baseline=baseline,
            crossover_percent=signed(order.crossover_percent),
            interval_2=interval(order.crossover_interval_percent),
        ),
        {
            "workload": workload,
            **({"workloads": [*averaged]} if averaged else {}),
            "metric": metric_text(metric),
            **order.model_dump(mode="json"),
        },
        variant,
        fix=compose('To reduce it, use a longer warmup in [load], or state_per = "trial" in [design]'),
    )
