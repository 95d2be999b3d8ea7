"""The chart of throughput over time: a panel per load, a line per trial, the warm-up shaded."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.report import formatting
from dbdyno.report.chart import HALF_WIDTH, MUTED, SHADE, WIDTH, Chart
from dbdyno.report.chart_parts import chart_of, color, loads_of
from dbdyno.report.model import Report, value
from dbdyno.store.measured import MeasuredTrial

PANELS_PER_ROW = 3
# If the highest median throughput is at least this many times the lowest, each panel gets its own scale.
OWN_SCALES_RATIO = 3.0


def time_chart(report: Report, workload: str, trials: Sequence[MeasuredTrial]) -> Chart:
    """The chart of one workload. Every trial must have recorded intervals."""
    loads = loads_of(trials)
    medians = [
        statistics.median(
            tps for t in trials if t.point.value == load and (tps := value(t, "throughput")) is not None
        )
        for load in loads
    ]
    has_own_scales = max(medians) >= OWN_SCALES_RATIO * min(medians)
    panels = [_panel(report, [t for t in trials if t.point.value == load], len(loads)) for load in loads]
    chart = alt.concat(*panels, columns=PANELS_PER_ROW, spacing=24).resolve_scale(
        y="independent" if has_own_scales else "shared"
    )
    return Chart(
        name=f"seconds-{workload}",
        title=f"Throughput of {workload} over time (1 s)",
        description=f"Throughput over time in {len(loads)} panels, one per load, one line per trial; "
        "the warm-up at the left is shaded and is not counted.",
        caption="Lines: individual blocks; shaded: warm-up, not counted."
        + (" Each panel has its own scale." if has_own_scales else ""),
        specification=chart,
    )


def _panel(report: Report, trials: Sequence[MeasuredTrial], panels: int) -> Any:
    """The panel of one load; its width depends on the number of panels."""
    rows: list[dict[str, Any]] = [
        {
            "variant": trial.variant,
            "trial": trial.index,
            "s": (start_us + end_us) / 2e6,
            "tps": events / ((end_us - start_us) / 1e6),
        }
        for trial in trials
        for start_us, end_us, events in trial.seconds
    ]
    starts = [trial.window.start_us / 1e6 for trial in trials if trial.window]
    start = statistics.median(starts) if starts else 0.0
    end = max(row["s"] for row in rows)
    unit, load = trials[0].point
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
    label = (
        chart_of([{"s": 0}])
        .mark_text(align="left", baseline="top", dx=4, dy=4, color=MUTED, fontSize=11, text="warm-up")
        .encode(x=x, y=alt.value(0))
    )
    layers = [shade, label, lines] if start > 0 else [lines]
    return alt.layer(*layers).properties(width=width, height=190, title=formatting.load(unit, load))
