"""Throughput over time, interval by interval: a panel per load level, a line per trial, warm-up shaded."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.report import words
from dbdyno.report.figure import HALF_WIDTH, MUTED, SHADE, WIDTH, Figure, chart_of, color, levels_of
from dbdyno.report.model import Report, Trial

PANELS_PER_ROW = 3
# Ratio of largest to smallest throughput from which panels get scales of their own.
OWN_SCALES_FROM = 3.0


def seconds(report: Report, workload: str, trials: Sequence[Trial]) -> Figure:
    """Throughput second by second, a panel per load level, a thin line per block, the warm-up shaded."""
    levels = levels_of(trials)
    medians = [
        statistics.median(float((t.figures or {})["throughput"]) for t in trials if t.level == at)
        for at in levels
    ]
    own = max(medians) / min(medians) >= OWN_SCALES_FROM
    panels = [_panel(report, [t for t in trials if t.level == at], len(levels)) for at in levels]
    chart = alt.concat(*panels, columns=PANELS_PER_ROW, spacing=24).resolve_scale(
        y="independent" if own else "shared"
    )
    return Figure(
        name=f"seconds-{workload}",
        title=f"Throughput of {workload}, interval by interval",
        description=f"Throughput over time in {len(levels)} panels, one per load level, one line per trial; "
        "the warm-up at the left is shaded and does not count.",
        caption="One thin line per block. The shaded beginning is warm-up and does not count."
        + (" Each panel has its own scale." if own else ""),
        chart=chart,
    )


def _panel(report: Report, trials: Sequence[Trial], panels: int) -> Any:
    rows: list[dict[str, Any]] = [
        {"variant": trial.variant, "trial": trial.index, "s": s, "tps": tps}
        for trial in trials
        for s, tps in trial.series
    ]
    start = statistics.median(trial.window_s[0] for trial in trials if trial.window_s)
    end = max(row["s"] for row in rows)
    unit = trials[0].unit
    width = {1: WIDTH - 60, 2: HALF_WIDTH}.get(panels, 250)
    scale = alt.Scale(domain=[0, math.ceil(end)], nice=False)
    axis = alt.Axis(title="seconds", grid=False, tickCount=6)
    x = alt.X("s:Q", scale=scale, axis=axis)
    y = alt.Y(
        "tps:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title="transactions per second", tickCount=5)
    )
    shade = (
        chart_of([{"from": 0, "to": start}])
        .mark_rect(color=SHADE)
        .encode(x=alt.X("from:Q", axis=axis, scale=scale), x2="to:Q")
    )
    lines = (
        chart_of(rows)
        .mark_line(strokeWidth=1, opacity=0.7)
        .encode(x=x, y=y, color=color(report), detail="trial:N")
    )
    named = (
        chart_of([{"s": 0}])
        .mark_text(align="left", baseline="top", dx=4, dy=4, color=MUTED, fontSize=11, text="warm-up")
        .encode(x=x, y=alt.value(0))
    )
    layers = [shade, named, lines] if start > 0 else [lines]
    return alt.layer(*layers).properties(width=width, height=190, title=words.level(unit, trials[0].level))
