"""The charts of a report, in order. A new chart is one file and one line here."""

from __future__ import annotations

from dbdyno.report.effect_chart import effects
from dbdyno.report.figure import Figure
from dbdyno.report.level_chart import levels
from dbdyno.report.model import Report, value
from dbdyno.report.scaling_chart import scaling
from dbdyno.report.seconds_chart import seconds


def figures(report: Report) -> list[Figure]:
    """Every chart of the report in the order of the page; a workload without results has none."""
    charts: list[Figure] = []
    for number, comparison in enumerate(report.verdict.comparisons):
        charts += effects(report, comparison, report.blocks[number], number)
    for workload in report.workloads:
        trials = [trial for trial in report.trials if trial.place.workload == workload]
        results = [trial for trial in trials if value(trial, "throughput") is not None]
        for metric in ("throughput", "latency_p95_us"):
            if any(value(trial, metric) is not None for trial in results):
                charts.append(levels(report, workload, results, metric))
        if results and (entries := report.scaling_rows(workload)):
            charts.append(scaling(report, workload, results, entries))
        if recorded := [trial for trial in results if trial.seconds]:
            charts.append(seconds(report, workload, recorded))
    return charts
