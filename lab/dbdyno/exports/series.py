"""What all writers read of a judged run: the trials of each variant at each load, and the changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno.experiment.metrics import LATENCY_MEAN, THROUGHPUT, percentile_of
from dbdyno.experiment.model import Experiment
from dbdyno.problem import Problem
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial, Point
from dbdyno.store.verdict import Comparison, Effect, VerdictFile

_METRICS = (
    THROUGHPUT, LATENCY_MEAN, "latency_p50_us", "latency_p95_us", "latency_p99_us", "latency_p999_us",
)  # fmt: skip
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

    def values(self, metric: str) -> list[float]:
        """The metric of every trial in which it is known; the throughput is 0 if the server failed."""
        return [value for trial in self.trials if (value := known_value(trial, metric)) is not None]


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
        """The known ones of value, lower and upper: the ratio to the baseline, and its interval."""
        low, high = self.effect.interval_percent or (None, None)
        percents = {"value": self.effect.effect_percent, "lower": low, "upper": high}
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
        return list(dict.fromkeys((*_METRICS, *self.experiment.metrics)))

    @property
    def series(self) -> Iterator[Series]:
        """Each workload at each load, with its variants in the order of the experiment file."""
        variants = [variant.name for variant in self.experiment.variants]
        for workload in self.experiment.workloads:
            trials = [trial for trial in self.trials if trial.workload == workload.title]
            for point in sorted({trial.point for trial in trials}):
                for variant in variants:
                    own = [one for one in trials if (one.point, one.variant) == (point, variant)]
                    yield Series(variant, workload.title, point, own)

    @property
    def changes(self) -> Iterator[Change]:
        """The effects of verdict.json, by every metric of design.metrics."""
        for comparison in self.verdict.comparisons:
            for entry in (comparison, *(comparison.metrics or ())):
                for point in entry.points:
                    yield Change(comparison, Point(*next(iter(point.at.items()))).label, point)
                yield Change(comparison, ALL_LOADS, entry.curve)


def read(run: Run) -> JudgedRun:
    """Raises StoreProblem if a file cannot be read, and Problem if the run was not judged."""
    judged = run.judge_files()
    if judged is None:
        raise Problem(f"{run.path} has not been judged", f"Run dbdyno report {run.path}, which judges it")
    verdict, measured, _ = judged
    return JudgedRun(run, run.experiment(), verdict, measured.trials)


def series_name(workload: str, load: str, variant: str) -> str:
    """The name of a series, such as oltp_read_only/connections=16/128M."""
    return f"{workload}/{load}/{variant}"


def known_value(trial: MeasuredTrial, metric: str) -> float | None:
    """A metric of a trial; None if it is unknown. The throughput is 0 if the server failed."""
    is_known = trial.figures is not None or (metric == THROUGHPUT and trial.failed_by == "server")
    return trial.value(metric) if is_known and trial.has(metric) else None


def latency_name(metric: str) -> str:
    """A latency without its unit: mean, p50 or p99.9."""
    percent = percentile_of(metric)
    return "mean" if percent is None else f"p{percent:g}"
