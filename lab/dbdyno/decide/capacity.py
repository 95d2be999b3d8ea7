"""The capacity of each block: the highest rate at which a variant meets the latency objective.

Two variants are compared by the ratios of their blocks; the only one of a run gets an estimate and interval.

::

    percentile of each trial -> monotone curve over the rates -> crossing of the limit -> log ratio per block
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from dbdyno.experiment.load import LatencyObjective, rate_text
from dbdyno.experiment.metrics import CAPACITY
from dbdyno.experiment.model import Load
from dbdyno.explain import Cost
from dbdyno.measure.foreign_load import shares_of_blocks, without_foreign_load
from dbdyno.stats.capacity import log_capacity
from dbdyno.stats.paired import ALPHA, LogBounds, Ratios, ratio_bounds
from dbdyno.stats.signed_rank import hodges_lehmann, interval
from dbdyno.store import verdict
from dbdyno.store.measured import Figures, MeasuredTrial
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
        return Ratios.of(
            {block: ratio_bounds(base, self.variant[block]) for block, base in self.baseline.items()}
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


# Shares from which on something is used up: of the time of the server's CPUs, of the mean latency, and of the
# time of the load generator. Transactions queue for CPUs long before these are busy all the time.
CPU_USED_UP, LOCKS_USED_UP, GENERATOR_USED_UP = 0.70, 0.25, 0.80


@dataclass(frozen=True)
class Use:
    """What a server and the load generator used at one rate, the medians over the blocks; None if it is not
    known.
    """

    rate: float
    # Share of the time of the server's CPUs.
    cpu: float | None
    # Share of the mean latency that waits for row locks.
    locks: float | None
    # Share of the time of the load generator's event loops.
    generator: float
    # Disk reads and writes per second.
    reads_per_s: float | None
    writes_per_s: float | None

    @property
    def limited_by(self) -> Literal["cpu", "locks", "generator", "storage", "unknown"]:
        """What is used up; `storage` if nothing else is, `unknown` if the CPUs are not visible."""
        if self.cpu is not None and self.cpu >= CPU_USED_UP:
            return "cpu"
        if self.locks is not None and self.locks >= LOCKS_USED_UP:
            return "locks"
        if self.generator >= GENERATOR_USED_UP:
            return "generator"
        return "unknown" if self.cpu is None else "storage"


@dataclass(frozen=True)
class MeasuredCapacity:
    """The capacity of the only variant of a run under one workload."""

    workload: str
    objective: LatencyObjective
    # The measured rates in increasing order.
    rates: Sequence[float]
    # Lower and upper bound of the estimate; None for an unknown end.
    estimate: tuple[float | None, float | None]
    # None with too few blocks.
    interval: tuple[float | None, float | None] | None
    blocks: int
    # None if no measured rate meets the objective, or every rate does.
    use: Use | None


def capacity_of_only_variant(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], load: Load, cpus: int | None
) -> MeasuredCapacity | None:
    """The capacity under the workload whose trials these are, by the signed-rank method on the logarithm of
    each block; None without a block that has a result at every rate.

    `costs` are by index of the trial; `cpus` is the number of the server's CPUs, None if it is not known.
    """
    assert load.latency_objective is not None, "the caller has checked it"
    rates = sorted(float(point.as_dict()["rate"]) for point in load.points())
    by_block = _of(trials, rates, load.latency_objective, trials[0].variant) if trials else {}
    if not by_block:
        return None
    lows, highs = ([bounds[side] for bounds in by_block.values()] for side in (0, 1))
    estimate = hodges_lehmann(lows, -math.inf), hodges_lehmann(highs, math.inf)
    low, high = interval(lows, ALPHA, -math.inf), interval(highs, ALPHA, math.inf)
    met = [rate for rate in rates if math.log(rate) <= estimate[0]]
    return MeasuredCapacity(
        trials[0].workload,
        load.latency_objective,
        rates,
        _ends(*estimate),
        None if low is None or high is None else _ends(low.low, high.high),
        len(by_block),
        _use(trials, costs, met[-1], cpus) if met and estimate[1] < math.inf else None,
    )


def _use(
    trials: Sequence[MeasuredTrial], costs: Mapping[int, Mapping[str, Cost]], rate: float, cpus: int | None
) -> Use:
    at_rate = [t for t in trials if t.figures is not None and float(t.point.value) == rate]

    def middle(key: str, scale: Callable[[Figures], float]) -> float | None:
        """The median of a cost times a scale."""
        values = [
            costs[trial.index][key].each * scale(trial.figures)
            for trial in at_rate
            if trial.figures is not None and key in costs.get(trial.index, {})
        ]
        return median(values) if values else None

    return Use(
        rate,
        middle("cpu_us", lambda figures: figures.throughput / 1e6 / cpus) if cpus else None,
        middle("Innodb_row_lock_time", lambda figures: 1e3 / figures.latency_mean_us),
        median(trial.figures.generator_cpu for trial in at_rate if trial.figures is not None),
        middle("disk_reads", lambda figures: figures.throughput),
        middle("disk_writes", lambda figures: figures.throughput),
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
    return _ends(*ends)


def _ends(log_low: float, log_high: float) -> tuple[float | None, float | None]:
    """Rates from bounds of logarithms; None for an unknown end."""
    low, high = (math.exp(end) if end < math.inf else math.inf for end in (log_low, log_high))
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
