"""All charts of a report, in the order of the page. A new chart is one file and one line here."""

from __future__ import annotations

from collections.abc import Sequence

from altair.utils.schemapi import debug_mode

from dbdyno.languages import IN_ENGLISH, Translate
from dbdyno.report.card import card
from dbdyno.report.chart import Chart
from dbdyno.report.chart_parts import loads_of
from dbdyno.report.distribution_chart import distribution_charts
from dbdyno.report.effect_chart import effect_charts
from dbdyno.report.load_chart import load_chart, scaling_chart
from dbdyno.report.model import LOADS_MAX, Report, value
from dbdyno.report.time_chart import stall_charts, time_charts
from dbdyno.store.measured import MeasuredTrial


@debug_mode(False)
def all_charts(report: Report, translate: Translate = IN_ENGLISH) -> list[Chart]:
    """Every chart of the report; of a suite only the card, and a workload without results has none.

    Rendering translates their texts, `translate` those whose length matters.
    """
    if report.verdict.is_summed_up:
        # Hundreds of charts of single tests would say less than the tables of the suite.
        return card(report, translate)
    charts: list[Chart] = []
    for number, comparison in enumerate(report.verdict.comparisons):
        charts += effect_charts(report, comparison, report.blocks[number], number)
    for workload in report.workloads:
        results = [
            trial
            for trial in report.trials
            if trial.workload == workload and value(trial, "throughput") is not None
        ]
        for metric in ("throughput", report.experiment.latency_metric):
            if any(value(trial, metric) is not None for trial in results):
                charts.append(load_chart(report, workload, results, metric))
        if results and (entries := report.scaling_rows(workload)):
            charts.append(scaling_chart(report, workload, results, entries))
        charts += distribution_charts(report, workload, some_loads(results))
        if with_intervals := some_loads([trial for trial in results if trial.seconds]):
            charts += time_charts(report, workload, with_intervals)
        if with_ticks := some_loads([trial for trial in results if trial.ticks]):
            charts += stall_charts(report, workload, with_ticks)
    return [*charts, *card(report, translate)]


def some_loads(trials: Sequence[MeasuredTrial]) -> list[MeasuredTrial]:
    """The trials at no more than LOADS_MAX loads: the lowest, the highest, and some between them."""
    loads = loads_of(trials)
    if len(loads) > LOADS_MAX:
        loads = [loads[round(index * (len(loads) - 1) / (LOADS_MAX - 1))] for index in range(LOADS_MAX)]
    return [trial for trial in trials if trial.point.value in loads]
