"""What all writers read of a judged run: the trials of each variant at each load, and the changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from dbdyno.experiment.metrics import CAPACITY, LATENCY_MEAN, THROUGHPUT, percentile_of
from dbdyno.experiment.model import Experiment
from dbdyno.store import Run
from dbdyno.store.measured import SHOWN_PERCENTILES, MeasuredTrial, Point
from dbdyno.store.verdict import WITHOUT_RATIO, Comparison, Effect, VerdictFile

_METRICS = (THROUGHPUT, LATENCY_MEAN, *SHOWN_PERCENTILES)
# Stands for the load of an effect over all loads.
ALL_LOADS = "all"


@dataclass(frozen=True)
class Series:
    """One variant on one workload at one load."""

    variant: str
    workload: str
    point: Point
    # In planned order, those without a result too.
    trials: Sequence[MeasuredTrial]

    @property
    def name(self) -> str:
        """Unique in a run, and the same in every run of the experiment."""
        return series_name(self.workload, self.point.label, self.variant)

    def summary(self, metric: str) -> dict[str, float]:
        """The known ones of value, lower and upper: the median over the blocks, minimum and maximum. A median
        that is only a bound is not known. The throughput is 0 if the server failed.
        """
        bounds = [pair for trial in self.trials if (pair := _bounds(trial, metric)) is not None]
        if not bounds:
            return {}
        lows, highs = zip(*bounds, strict=True)
        extremes = {"value": (median(lows), median(highs)), "lower": (min(lows),), "upper": (max(highs),)}
        return {key: ends[0] for key, ends in extremes.items() if ends[0] == ends[-1] < math.inf}


@dataclass(frozen=True)
class Change:
    """A change of a variant against the baseline at one load, or over all loads."""

    comparison: Comparison
    load: str
    effect: Effect

    @property
    def name(self) -> str:
        """The name of the variant's series at this load."""
        return series_name(self.comparison.workload, self.load, self.comparison.variant)

    @property
    def ratios(self) -> dict[str, float]:
        """The known ones of value, lower and upper: the ratio to the baseline, and its interval. None if the
        run is not finished, or the variants are not comparable.
        """
        if self.effect.verdict in WITHOUT_RATIO:
            return {}
        low, high = self.effect.interval_percent or (None, None)
        value = None if self.effect.bound else self.effect.effect_percent
        percents = {"value": value, "lower": low, "upper": high}
        return {key: 1.0 + percent / 100.0 for key, percent in percents.items() if percent is not None}


@dataclass(frozen=True)
class JudgedRun:
    """What a writer needs of a run."""

    run: Run
    experiment: Experiment
    verdict: VerdictFile
    # In planned order.
    trials: Sequence[MeasuredTrial]

    @property
    def metrics(self) -> list[str]:
        """The metrics of a trial: those of every run, then the others of design.metrics."""
        return [
            metric for metric in dict.fromkeys((*_METRICS, *self.experiment.metrics)) if metric != CAPACITY
        ]

    @property
    def series(self) -> Iterator[Series]:
        """Each workload at each load, with its variants in the order of the experiment file."""
        variants = [variant.name for variant in self.experiment.variants]
        for workload in self.experiment.workloads:
            trials = [trial for trial in self.trials if trial.workload == workload.title]
            for point in sorted({trial.point for trial in trials}):
                for variant in variants:
                    of_variant = [
                        trial for trial in trials if (trial.point, trial.variant) == (point, variant)
                    ]
                    yield Series(variant, workload.title, point, of_variant)

    @property
    def changes(self) -> Iterator[Change]:
        """The effects of verdict.json, by every metric of design.metrics."""
        for comparison in self.verdict.comparisons:
            for entry in (comparison, *(comparison.metrics or ())):
                for point in entry.points:
                    yield Change(comparison, Point.of(point.at).label, point)
                yield Change(comparison, ALL_LOADS, entry.curve)


def read(run: Run) -> JudgedRun:
    """Raises StoreProblem if a file cannot be read, and Problem if the run was not judged."""
    verdict, measured, _ = run.require_judged()
    return JudgedRun(run, run.experiment(), verdict, measured.trials)


def series_name(workload: str, load: str, variant: str) -> str:
    """The name of a series, such as oltp_read_only/connections=16/128M."""
    return f"{workload}/{load}/{variant}"


def known_value(trial: MeasuredTrial, metric: str) -> float | None:
    """A metric of a trial; None if it is unknown or a bound. The throughput is 0 if the server failed."""
    low, high = _bounds(trial, metric) or (0.0, math.inf)
    return low if low == high else None


def _bounds(trial: MeasuredTrial, metric: str) -> tuple[float, float] | None:
    """Lower and upper bound of a metric of a trial, which are equal if it is known; None without a value."""
    if trial.figures is not None and trial.has(metric):
        return trial.figures.bounds(metric)
    return (0.0, 0.0) if metric == THROUGHPUT and trial.failed_by == "server" else None


def scaled(metric: str, value: float, units_per_s: float) -> float:
    """A metric with its time in units of which a second has so many; trials have microseconds."""
    return value if metric == THROUGHPUT else value * units_per_s / 1e6


def latency_name(metric: str) -> str:
    """A latency without its unit: mean, p50 or p99.9."""
    percent = percentile_of(metric)
    return "mean" if percent is None else f"p{percent:g}"
