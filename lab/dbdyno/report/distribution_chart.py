"""The chart of the latency distribution: a panel per load, a line per variant, both axes logarithmic."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from dbdyno.report import formatting
from dbdyno.report.chart import HALF_WIDTH, HEIGHT, Chart
from dbdyno.report.chart_parts import band_and_line, each_load, layered
from dbdyno.report.model import Report
from dbdyno.store.measured import DISTRIBUTION_PERCENTS, MeasuredTrial
from dbdyno.text import compose, join

# Percentiles with a label on the axis.
LABELLED = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


def distribution_charts(report: Report, workload: str, trials: Sequence[MeasuredTrial]) -> Iterator[Chart]:
    """A chart for each load; none for a load whose trials have too few transactions."""
    for number, of_load in each_load(trials):
        if rows := _rows(of_load):
            at = formatting.load(*of_load[0].point)
            yield _chart(
                report,
                join(", ", (workload, at)),
                rows,
                f"distribution-{workload}-{number}",
            )


def _rows(trials: Sequence[MeasuredTrial]) -> list[dict[str, Any]]:
    """For each variant and percentile the median over the blocks, in milliseconds, and the lowest and
    highest block.
    """
    rows: list[dict[str, Any]] = []
    for variant in dict.fromkeys(trial.variant for trial in trials):
        distributions = [
            trial.distribution_us for trial in trials if trial.variant == variant and trial.distribution_us
        ]
        # A percentile that some blocks do not know is left out: another set of blocks would be compared.
        for index in range(min(map(len, distributions), default=0)):
            values = [entry[index] / 1000.0 for entry in distributions]
            percent = DISTRIBUTION_PERCENTS[index]
            rows.append(
                {
                    "variant": variant,
                    "percent": percent,
                    "x": _x(percent),
                    "ms": statistics.median(values),
                    "low": min(values),
                    "high": max(values),
                }
            )
    return rows


def _x(percent: float) -> float:
    """The place of a percentile on the logarithmic axis: 1 for 0 %, 10 for 90 %, 100 for 99 %."""
    return 100.0 / (100.0 - percent)


def _chart(report: Report, where: str, rows: list[dict[str, Any]], name: str) -> Chart:
    last = max(row["x"] for row in rows)
    values = [_x(percent) for percent in LABELLED if _x(percent) <= last * 1.01]
    labels = "format(100 - 100 / datum.value, '~r') + ' %'"
    axis = alt.Axis(values=values, labelExpr=labels, title=compose("share of the transactions"), grid=False)
    x = alt.X("x:Q", scale=alt.Scale(type="log", domain=[1.0, last], nice=False), axis=axis)
    y_axis = alt.Axis(title=compose("latency, milliseconds"), format="~g", tickCount=5, minExtent=48)
    layers = band_and_line(report, rows, "ms", x=x, scale=alt.Scale(type="log", nice=True), axis=y_axis)
    details = join(
        "; ",
        (
            compose(
                "{variant} p{percent:g}: {ms:.3g} ms",
                variant=row["variant"],
                percent=row["percent"],
                ms=row["ms"],
            )
            for row in rows
            if row["percent"] in (50.0, 95.0, 99.0, 99.9)
        ),
    )
    return Chart(
        name=name,
        title=compose("Latency distribution of {where}", where=where),
        description=compose("Latency by percentile. {details}.", details=details),
        caption=compose(
            "Lines: medians of the blocks; areas: from the lowest to the highest block. Both axes "
            "are logarithmic."
        ),
        specification=layered(layers, HALF_WIDTH, HEIGHT),
        width="half",
    )
