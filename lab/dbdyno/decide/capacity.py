"""The capacity of each block: the highest rate at which a variant meets the latency objective.

::

    percentile of each trial -> monotone curve over the rates -> crossing of the limit -> log ratio per block
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from dbdyno.experiment.load import LatencyObjective, rate_text
from dbdyno.experiment.metrics import CAPACITY
from dbdyno.experiment.model import Load
from dbdyno.measure.foreign_load import shares_of_blocks, without_foreign_load
from dbdyno.stats.capacity import log_capacity
from dbdyno.stats.paired import LogBounds, Ratios, ratio_bounds
from dbdyno.store import verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose


@dataclass(frozen=True)
class Capacities:
    """The capacities of the two variants of a comparison, in the blocks in which both have a result at every
    rate.
    """

    objective: LatencyObjective
    # The measured rates in increasing order.
    rates: Sequence[float]
    # Block -> bounds of the logarithm.
    baseline: Mapping[int, LogBounds]
    variant: Mapping[int, LogBounds]
    # Block -> mean share of the CPU time that other processes used, next to either variant.
    shares: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def ratios(self) -> Ratios:
        """The log ratios of variant to baseline, per block, without the load of other processes."""
        return without_foreign_load(self.measured_ratios(), self.shares, CAPACITY)

    def measured_ratios(self) -> Ratios:
        """The same with the load of other processes."""
        bounds = {block: ratio_bounds(base, self.variant[block]) for block, base in self.baseline.items()}
        return Ratios(
            {block: low for block, (low, _) in bounds.items()},
            {block: high for block, (_, high) in bounds.items()},
        )

    def entry(self) -> verdict.Capacity:
        """The entry in verdict.json."""
        return verdict.Capacity(
            metric=self.objective.metric,
            limit_us=self.objective.limit_us,
            baseline=_median(self.baseline),
            variant=_median(self.variant),
        )

    def text(self) -> str:
        """The medians of variant and baseline: 760 against 801 transactions/s."""
        return compose(
            "{text} against {text_2} transactions/s",
            text=_text(_median(self.variant)),
            text_2=_text(_median(self.baseline)),
        )

    def missed_text(self) -> str:
        """That the rates do not contain the capacities."""
        low, high = self.rates[0], self.rates[-1]
        return compose(
            "the rates from {low:g} to {high:g} transactions/s do not contain both capacities",
            low=low,
            high=high,
        )

    def rates_to_give(self) -> str:
        """The rates that contain the capacities, if those of the experiment do not."""
        match _median(self.baseline), _median(self.variant):
            case ((_, float()), (None, float())) | ((None, float()), (_, float())):
                return compose("lower rates")
            case ((float(), _), (float(), None)) | ((float(), None), (float(), _)):
                return compose("higher rates")
        return compose("lower and higher rates")


def capacities(trials: Sequence[MeasuredTrial], load: Load, baseline: str, variant: str) -> Capacities | None:
    """The capacities of two variants under one workload, whose trials these are; None without a latency
    objective.
    """
    if load.latency_objective is None:
        return None
    rates = sorted(float(point.as_dict()["rate"]) for point in load.points())
    of_baseline, of_variant = (
        _of(trials, rates, load.latency_objective, name) for name in (baseline, variant)
    )
    blocks = [block for block in of_baseline if block in of_variant]
    return Capacities(
        load.latency_objective,
        rates,
        {block: of_baseline[block] for block in blocks},
        {block: of_variant[block] for block in blocks},
        shares_of_blocks(trials, baseline, variant),
    )


def _of(
    trials: Sequence[MeasuredTrial], rates: Sequence[float], objective: LatencyObjective, variant: str
) -> dict[int, LogBounds]:
    """Block -> bounds of the log capacity of a variant, in the order of `trials`."""
    blocks: dict[int, dict[float, MeasuredTrial]] = {}
    for trial in trials:
        if trial.variant == variant and trial.is_result:
            blocks.setdefault(trial.block, {})[float(trial.point.value)] = trial
    return {
        block: _capacity(rates, [by_rate[rate] for rate in rates], objective)
        for block, by_rate in blocks.items()
        if all(rate in by_rate for rate in rates)
    }


def _capacity(
    rates: Sequence[float], trials: Sequence[MeasuredTrial], objective: LatencyObjective
) -> LogBounds:
    if all(trial.figures is None for trial in trials):
        return -math.inf, -math.inf
    # A server that failed at a rate meets no latency objective at higher ones.
    failed = next((index for index, trial in enumerate(trials) if trial.figures is None), len(trials))
    latencies = [_latency(trial, objective) for trial in trials[:failed]] + [math.inf] * (
        len(trials) - failed
    )
    return log_capacity(rates, latencies, objective.limit_us)


def _latency(trial: MeasuredTrial, objective: LatencyObjective) -> float:
    """The percentile of a trial that the objective limits; infinite if as many transactions are unknown as
    may be beyond it.

    A few that wait at the end make it a bound too, which is hardly below the true percentile.
    """
    low, high = trial.figures.bounds(objective.metric) if trial.figures else (math.inf, math.inf)
    return low if low > objective.limit_us or math.isfinite(high) else math.inf


def _median(by_block: Mapping[int, LogBounds]) -> tuple[float | None, float | None]:
    """Lower and upper bound of the median over the blocks; None for an unknown end."""
    ends = [median(bounds[side] for bounds in by_block.values()) if by_block else math.nan for side in (0, 1)]
    low, high = (math.exp(end) if end < math.inf else math.inf for end in ends)
    return (low if 0.0 < low < math.inf else None), (high if high < math.inf else None)


def _text(ends: tuple[float | None, float | None]) -> str:
    match ends:
        case None, None:
            return compose("an unknown number")
        case None, float(high):
            return compose("less than {rate_text}", rate_text=rate_text(high)) if high > 0.0 else "0"
        case float(low), None:
            return compose("more than {rate_text}", rate_text=rate_text(low))
        case float(low), float(high) if low != high:
            return compose(
                "{rate_text} to {rate_text_2}", rate_text=rate_text(low), rate_text_2=rate_text(high)
            )
    return rate_text(ends[0] or 0.0)
