"""Throughput over connections with the fitted scalability law, and the knee where it lies among the loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dbdyno.report import words
from dbdyno.report.figure import HEIGHT, WIDTH, Figure, chart_of, color, dash, shape
from dbdyno.report.level_chart import axis_values, level_scale, medians
from dbdyno.report.model import Report, Trial


def scaling(
    report: Report, workload: str, trials: Sequence[Trial], entries: Sequence[Mapping[str, Any]]
) -> Figure:
    """The medians as marks, the law as a line, the knee as a diamond with its interval as a bar."""
    curves = [
        {"variant": entry["variant"], "x": n, "value": throughput}
        for entry in entries
        for n, throughput in entry["curve"]
    ]
    knees = [
        {"variant": entry["variant"], "x": entry["knee_connections"], "value": entry["knee_throughput"]}
        | dict(zip(("low", "high"), _bar(entry), strict=True))
        for entry in entries
        if entry["knee_connections"] is not None
    ]
    scale = level_scale(trials)
    x = alt.X(
        "x:Q",
        scale=scale,
        axis=alt.Axis(values=axis_values(trials), format=",~f", title="connections", grid=False),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=True, nice=True),
        axis=alt.Axis(title="transactions per second", tickCount=6),
    )
    layers = [
        chart_of(curves)
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=color(report), strokeDash=dash(report)),
        chart_of(medians(report, trials, "throughput", dodged=False))
        .mark_point(filled=True, size=50, opacity=0.8)
        .encode(x=x, y=y, color=color(report), shape=shape(report)),
    ]
    if knees:
        marks = chart_of(knees)
        layers += [
            marks.mark_rule(strokeWidth=5, opacity=0.3).encode(
                x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=color(report)
            ),
            marks.mark_point(filled=True, size=170, shape="diamond", opacity=1).encode(
                x=x, y=y, color=color(report)
            ),
        ]
    told = "; ".join(f"{entry['variant']}: knee {words.knee(entry)}" for entry in entries)
    return Figure(
        name=f"scaling-{workload}",
        title=f"How {workload} scales with connections",
        description=f"Throughput over connections with the universal scalability law. {told}.",
        caption="Marks: medians of the blocks; lines: the universal scalability law fitted to them; "
        "diamonds: its knee, where throughput is highest, with the 95 % interval from the blocks as a bar.",
        chart=alt.layer(*layers).properties(width=WIDTH - 60, height=HEIGHT + 40),
    )


def _bar(entry: Mapping[str, Any]) -> tuple[float, float]:
    """The interval of a knee; an open end reaches to the edge of what was measured."""
    if entry["knee_interval"] is None:
        return entry["knee_connections"], entry["knee_connections"]
    low, high = entry["knee_interval"]
    first, last = entry["levels"]
    return first if low is None else low, last if high is None else high
