"""The measured figures of every variant at every load: medians over the blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from dbdyno.report import formatting
from dbdyno.report.model import Report
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

# Column -> figure. Latencies are milliseconds.
COLUMNS = {
    compose("transactions/s"): "throughput",
    compose("mean ms"): "latency_mean_us",
    "p50 ms": "latency_p50_us",
    "p95 ms": "latency_p95_us",
    "p99 ms": "latency_p99_us",
    "p99.9 ms": "latency_p999_us",
    compose("errors per 1,000"): "errors_per_1000",
}


@dataclass(frozen=True)
class LoadRow:
    """One variant at one load."""

    variant: str
    load: str
    # In the order of COLUMNS.
    cells: Sequence[str]
    # Why there are no figures; empty if there are some.
    failure: str = ""


def load_rows(report: Report, workload: str) -> Iterator[LoadRow]:
    """A row for each variant and load, without those that were not run."""
    for variant in report.variants:
        trials = [one for one in report.trials if (one.variant, one.workload) == (variant, workload)]
        for point in sorted({trial.point for trial in trials}):
            of_point = [trial for trial in trials if trial.point == point]
            if any(trial.failed_by != "not-run" for trial in of_point):
                yield _row(variant, of_point)


def _row(variant: str, trials: Sequence[MeasuredTrial]) -> LoadRow:
    cells = [median_text(trials, figure) for figure in COLUMNS.values()]
    failures = [trial.failure or "" for trial in trials if trial.figures is None]
    failure = failures[0] if len(failures) == len(trials) else ""
    return LoadRow(variant, formatting.load(*next(iter(trials[0].at.items()))), cells, failure)


def median_text(trials: Sequence[MeasuredTrial], figure: str) -> str:
    """The median of a figure, without its unit (latencies in milliseconds): "> x" if a trial knows only a
    lower bound, an en dash without results. A trial in which the server failed has a throughput of 0, and no
    other figure.
    """
    is_throughput = figure == "throughput"
    known = [one for one in trials if one.figures is not None or (is_throughput and one.is_result)]
    if not known:
        return formatting.MISSING
    value = median(trial.value(figure) for trial in known)
    if not figure.startswith("latency_"):
        return formatting.rate(value) if is_throughput else f"{value:,.2f}" if value else "0"
    is_bound = any(trial.figures is not None and figure in trial.figures.censored for trial in known)
    return ("> " if is_bound else "") + formatting.milliseconds(value)
