"""Formats of programs that follow benchmarks over time: Bencher, Go's benchstat and Apache Otava."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.experiment.metrics import CPU, HIGHER_IS_BETTER, LATENCY_MEAN, THROUGHPUT, is_latency
from dbdyno.exports.series import JudgedRun, known_value, latency_name, read, scaled
from dbdyno.result_text import write_csv
from dbdyno.store import Run
from dbdyno.store.listing import began
from dbdyno.store.measured import MeasuredTrial

# Key of a summary or a ratio -> key of the format.
_KEYS = {"value": "value", "lower": "lower_value", "upper": "upper_value"}
Benchmarks = dict[str, dict[str, dict[str, float]]]


def as_bencher(run: Run) -> str:
    """Benchmark (workload, load and variant) -> measure -> value, lower_value, upper_value.

    Measures are medians over the blocks, with minimum and maximum; units are those of Bencher's own measures:
    transactions/s, and nanoseconds. A measure that ends in -ratio is the ratio to the baseline, with the
    interval of the verdict, of which a side may be open.
    """
    judged = read(run)
    benchmarks: Benchmarks = {}
    for series in judged.series:
        for metric in judged.metrics:
            if "value" in (summary_of_metric := series.summary(metric)):
                entry = {_KEYS[key]: scaled(metric, value, 1e9) for key, value in summary_of_metric.items()}
                benchmarks.setdefault(series.name, {})[_measure(metric)] = entry
    for change in judged.changes:
        if "value" in (ratios := change.ratios):
            entry = {_KEYS[key]: ratio for key, ratio in ratios.items()}
            measure = f"{_measure(change.effect.metric)}-ratio"
            benchmarks.setdefault(change.name, {})[measure] = entry
    return json.dumps(benchmarks, indent=1, ensure_ascii=False)


def _measure(metric: str) -> str:
    if metric == CPU:
        return "cpu"
    if not is_latency(metric):
        return metric
    # Bencher has a measure of this name, and its benchmark adapters fill it with means.
    return "latency" if metric == LATENCY_MEAN else f"latency-{latency_name(metric)}"


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
    for trial in (entry for series in judged.series for entry in series.trials):
        if trial.failure is not None:
            yield f"# trial {trial.index + 1}: {' '.join(trial.failure.split())}"
        elif bounds := [latency_name(entry) for entry in judged.metrics if _is_bound(trial, entry)]:
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


def as_otava(run: Run) -> str:
    """The names of the columns, and one row."""
    return write_rows([otava_row(run)])


def otava_row(run: Run) -> dict[str, str]:
    """Column -> value: `time` (ISO 8601, when the run began), `experiment`, `run`; of each series a column
    NAME/METRIC, the median over the blocks; of each change NAME/METRIC_ratio, the ratio to the baseline.

    The columns depend on the experiment alone. An unknown value is an empty text, which Otava refuses: after
    a NaN it would find no change in the column.
    """
    judged, time = read(run), began(run.path)
    row = {
        "time": "" if time is None else time.isoformat(),
        "experiment": judged.experiment.name,
        "run": run.path.name,
    }
    for series in judged.series:
        for metric in judged.metrics:
            value = series.summary(metric).get("value")
            row[f"{series.name}/{metric}"] = "" if value is None else f"{value:.10g}"
    for change in judged.changes:
        ratio = change.ratios.get("value")
        row[f"{change.name}/{change.effect.metric}_ratio"] = "" if ratio is None else f"{ratio:.10g}"
    return row


def write_rows(rows: Sequence[Mapping[str, str]]) -> str:
    """The rows as CSV, with the columns of all of them."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return write_csv([columns, *([row.get(column, "") for column in columns] for row in rows)])
