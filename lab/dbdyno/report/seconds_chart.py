"""Throughput over time: a panel per load level, a line per trial, warm-up shaded."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.report import words
from dbdyno.report.encoding import chart_of, color, levels_of
from dbdyno.report.figure import HALF_WIDTH, MUTED, SHADE, WIDTH, Figure
from dbdyno.report.model import Report, value
from dbdyno.store.measured import MeasuredTrial

PANELS_PER_ROW = 3
# Ratio of largest to smallest throughput from which each panel gets its own scale.
OWN_SCALES_FROM = 3.0


def seconds(report: Report, workload: str, trials: Sequence[MeasuredTrial]) -> Figure:
    """Throughput per second, a panel per load level, a thin line per block, the warm-up shaded.

    Every trial must have a series.
    """
    levels = levels_of(trials)
    medians = [
        statistics.median(
            tps for t in trials if t.place.level[1] == at and (tps := value(t, "throughput")) is not None
        )
        for at in levels
    ]
    own = max(medians) >= OWN_SCALES_FROM * min(medians)
    panels = [_panel(report, [t for t in trials if t.place.level[1] == at], len(levels)) for at in levels]
    chart = alt.concat(*panels, columns=PANELS_PER_ROW, spacing=24).resolve_scale(
        y="independent" if own else "shared"
    )
    return Figure(
        name=f"seconds-{workload}",
        title=f"Throughput of {workload} over time (1 s)",
        description=f"Throughput over time in {len(levels)} panels, one per load level, one line per trial; "
        "the warm-up at the left is shaded and is not counted.",
        caption="Lines: individual blocks; shaded: warm-up, not counted."
        + (" Each panel has its own scale." if own else ""),
        chart=chart,
    )


def _panel(report: Report, trials: Sequence[MeasuredTrial], panels: int) -> Any:
    rows: list[dict[str, Any]] = [
        {
            "variant": trial.place.variant,
            "trial": trial.place.index,
            "s": (start_us + end_us) / 2e6,
            "tps": events / ((end_us - start_us) / 1e6),
        }
        for trial in trials
        for start_us, end_us, events in trial.seconds
    ]
    starts = [trial.window.start_us / 1e6 for trial in trials if trial.window]
    start = statistics.median(starts) if starts else 0.0
    end = max(row["s"] for row in rows)
    unit, level = trials[0].place.level
    width = {1: WIDTH - 60, 2: HALF_WIDTH}.get(panels, 250)
    scale = alt.Scale(domain=[0, math.ceil(end)], nice=False)
    axis = alt.Axis(title="seconds", grid=False, tickCount=6)
    x = alt.X("s:Q", scale=scale, axis=axis)
    y = alt.Y("tps:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title="transactions/s", tickCount=5))
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
    return alt.layer(*layers).properties(width=width, height=190, title=words.level(unit, level))
