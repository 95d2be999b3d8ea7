"""A judged run as CSV or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.report.model import gather, value
from dbdyno.spreadsheet import write_csv
from dbdyno.store import Run

COLUMNS = (
    "trial", "block", "variant", "workload", "unit", "level", "status", "failure", "failed_by",
    "throughput_per_s", "latency_mean_us", "latency_p50_us", "latency_p90_us", "latency_p95_us",
    "latency_p99_us", "latency_p999_us", "latency_max_us", "lower_bound_of", "events", "errors_per_1000",
    "dropped", "backlog", "longest_gap_us",
)  # fmt: skip


def as_json(run: Run) -> str:
    """verdict.json. Raises StoreProblem if the run was not judged."""
    return json.dumps(gather(run).verdict.model_dump(mode="json"), indent=1, ensure_ascii=False)


def as_csv(run: Run) -> str:
    """One line per planned trial. Times are in microseconds.

    The columns of a trial without a result are empty. If its server failed, its throughput is 0, so that an
    average over the column includes the failure.
    """
    report = gather(run)
    # Metrics of design.metrics that no column has.
    further = [one for one in report.experiment.metrics if one not in (THROUGHPUT, *COLUMNS)]
    columns = (*COLUMNS, *further)
    rows: list[list[object]] = [[*columns]]
    for trial in report.trials:
        plan = [trial.index + 1, trial.block + 1, trial.variant, trial.workload]
        load = [trial.point.unit, f"{trial.point.value:g}"]
        status = [trial.status, trial.failure or "", trial.failed_by or ""]
        throughput = value(trial, "throughput")
        figures = {
            **({**asdict(trial.figures), **trial.figures.percentiles} if trial.figures else {}),
            "throughput_per_s": "" if throughput is None else throughput,
            "lower_bound_of": " ".join(trial.figures.censored) if trial.figures else "",
            "longest_gap_us": _known(trial.figures.longest_gap_us) if trial.figures else "",
        }
        values = [figures.get(column, "") for column in columns[len(plan) + len(load) + len(status) :]]
        rows.append([*plan, *load, *status, *values])
    return write_csv(rows)


def _known(figure: int | None) -> int | str:
    return "" if figure is None else figure
