"""The trials as lines of Go's benchmark format, which benchstat reads.

Source of the format: https://golang.org/design/14313-benchmark-format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.experiment.metrics import CPU, HIGHER_IS_BETTER, THROUGHPUT
from dbdyno.exports.series import JudgedRun, known_value, latency_name, read, scaled
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial


def as_benchstat(run: Run) -> str:
    """One line per trial that counts, and a comment for each that does not, or whose server failed. The
    baseline is first, because benchstat compares with the first column.

    The load is the last part of a name, because benchstat takes a dash and a number at the end of a name, as
    in postgres-16, for a number of CPUs. Latencies are nanoseconds, because benchstat knows that unit.
    """
    return "\n".join(_lines(read(run)))


def _lines(judged: JudgedRun) -> Iterator[str]:
    # Not a configuration line: benchstat would put two runs into two tables.
    yield f"# run {judged.run.path.name}"
    yield f"experiment: {judged.experiment.name}"
    for metric in judged.metrics:
        better = "higher" if metric in HIGHER_IS_BETTER else "lower"
        yield f"Unit {_unit(metric)} better={better}"
    for trial in (one for series in judged.series for one in series.trials):
        if trial.failure is not None:
            yield f"# trial {trial.index + 1}: {' '.join(trial.failure.split())}"
        elif bounds := [latency_name(one) for one in judged.metrics if _is_bound(trial, one)]:
            yield f"# trial {trial.index + 1}: only lower bounds are known of {', '.join(bounds)} latency"
        values = [
            f"{scaled(metric, value, 1e9):.10g} {_unit(metric)}"
            for metric in judged.metrics
            if (value := known_value(trial, metric)) is not None
        ]
        if values:
            events = trial.figures.events if trial.figures else 0
            yield " ".join([_name(trial), str(events), *values])


def _is_bound(trial: MeasuredTrial, metric: str) -> bool:
    return trial.has(metric) and known_value(trial, metric) is None


def _name(trial: MeasuredTrial) -> str:
    workload, variant = _part(trial.workload), _part(trial.variant)
    return f"BenchmarkTransaction/workload={workload}/variant={variant}/{trial.point.label}"


def _part(name: str) -> str:
    """The name as a part of a benchmark's name, which a blank ends and a slash divides."""
    return re.sub(r"[\s/]", "_", name)


def _unit(metric: str) -> str:
    if metric == THROUGHPUT:
        return "transactions/s"
    return "cpu-ns/op" if metric == CPU else f"{latency_name(metric)}-latency-ns"
