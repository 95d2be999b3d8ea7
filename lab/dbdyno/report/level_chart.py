"""Throughput or latency over the load, one line per variant and one mark per block."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.report import words
from dbdyno.report.encoding import chart_of, color, dash, layered, levels_of, shape
from dbdyno.report.figure import HALF_WIDTH, HEIGHT, Figure
from dbdyno.report.model import Report, value
from dbdyno.store.measured import MeasuredTrial

# Horizontal distance between the variants at one load level, as a share of the axis.
DODGE = 0.03
# Minimum distance between two axis labels, as a share of the axis.
LABEL_ROOM = 0.06


def levels(report: Report, workload: str, trials: Sequence[MeasuredTrial], metric: str) -> Figure:
    """Throughput or latency over the load: the median of the blocks as a line, every block as a mark."""
    dots: list[dict[str, Any]] = [
        {"variant": t.place.variant, "at": t.place.level[1], "x": _dodged(report, trials, t), "value": shown}
        for t in trials
        if (shown := _shown(metric, t)) is not None
    ]
    middle = medians(report, trials, metric)
    unit = "offered transactions/s" if report.open_loop else "connections"
    title = "transactions/s" if metric == "throughput" else "p95 latency, milliseconds"
    x = alt.X(
        "x:Q",
        scale=level_scale(trials),
        axis=alt.Axis(values=axis_values(trials), format=",~f", title=unit, grid=False),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(title=title, tickCount=6, minExtent=48),
    )
    lines = chart_of(middle).mark_line(strokeWidth=2)
    marks = chart_of(dots).mark_point(filled=True, size=42, opacity=0.6)
    layers = [
        lines.encode(x=x, y=y, color=color(report), strokeDash=dash(report)),
        marks.encode(x=x, y=y, color=color(report), shape=shape(report)),
    ]
    what = "Throughput" if metric == "throughput" else "p95 latency"
    details = "; ".join(
        f"{m['variant']} at {m['at']:g}: {words.rate(m['value'])}"
        for m in sorted(middle, key=lambda m: (m["variant"], m["at"]))
    )
    return Figure(
        name=f"{'throughput' if metric == 'throughput' else 'latency-p95'}-{workload}",
        title=f"{what} of {workload}",
        description=f"{what} ({title}) over {unit}, medians of the blocks. {details}.",
        caption="Lines: medians of the blocks; marks: individual blocks. "
        "The vertical axis may not begin at zero." + _failures(trials, metric),
        chart=layered(layers, HALF_WIDTH, HEIGHT),
        shape="half",
    )


def medians(
    report: Report, trials: Sequence[MeasuredTrial], metric: str, *, dodged: bool = True
) -> list[dict[str, Any]]:
    """The median over the blocks of every variant at every level, in the chart's units."""
    groups: dict[tuple[str, float, float], list[float]] = {}
    for trial in trials:
        at = trial.place.level[1]
        x = _dodged(report, trials, trial) if dodged else at
        if (shown := _shown(metric, trial)) is not None:
            groups.setdefault((trial.place.variant, at, x), []).append(shown)
    return [
        {"variant": name, "at": at, "x": x, "value": statistics.median(values)}
        for (name, at, x), values in groups.items()
    ]


def _shown(metric: str, trial: MeasuredTrial) -> float | None:
    shown = value(trial, metric)
    return shown if shown is None or metric == "throughput" else shown / 1000.0


def _failures(trials: Sequence[MeasuredTrial], metric: str) -> str:
    """How the chart shows trials in which the server failed."""
    failed = sum(trial.figures is None for trial in trials)
    if not failed:
        return ""
    shown = "are shown as 0" if metric == "throughput" else "have no latency"
    return f" {failed} of {len(trials)} trials failed because of their server and {shown}."


def _dodged(report: Report, trials: Sequence[MeasuredTrial], trial: MeasuredTrial) -> float:
    """The level, shifted a little along the logarithmic axis so that variants do not overlap."""
    levels = levels_of(trials)
    span = math.log(levels[-1] / levels[0]) or math.log(4.0)
    place = report.variants.index(trial.place.variant) - (len(report.variants) - 1) / 2
    return trial.place.level[1] * math.exp(place * DODGE * span)


def level_scale(trials: Sequence[MeasuredTrial]) -> Any:
    """A logarithmic axis with room at both ends."""
    levels = levels_of(trials)
    room = (levels[-1] / levels[0]) ** 0.1 if len(levels) > 1 else 2.0
    return alt.Scale(type="log", domain=[levels[0] / room, levels[-1] * room], nice=False)


def axis_values(trials: Sequence[MeasuredTrial]) -> list[float]:
    """The levels, without those whose labels would overlap."""
    levels = levels_of(trials)
    span = math.log(levels[-1] / levels[0]) or 1.0
    kept = [levels[0]]
    for level in levels[1:]:
        if math.log(level / kept[-1]) > LABEL_ROOM * span:
            kept.append(level)
    return kept
