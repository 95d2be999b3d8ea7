"""The charts of a report as Altair specifications: the same ones become SVG in the page, SVG files and PNG files.

Colours are the ones Okabe & Ito (2008, Color Universal Design) chose to be told apart by colour-blind readers, and
every variant has a shape or a dash of its own besides, for prints without colour.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from dbdyno.report import words
from dbdyno.report.model import Report, Trial

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#a6761d")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "wedge")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1], [3, 5])
# The page's style sheet replaces these in the dark (report.css): change both together.
INK, MUTED, GRID, SHADE, PAPER = "#1f2933", "#5f6b7a", "#e3e8ee", "#eef1f5", "#fffffe"
FONT = "Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif"

WIDTH, HALF_WIDTH, HEIGHT = 900, 400, 240
PANELS_PER_ROW = 3
# Ratio of largest to smallest throughput from which panels get scales of their own.
OWN_SCALES_FROM = 3.0
# Share of the axis by which the variants stand apart at one load level.
DODGE = 0.03


@dataclass(frozen=True)
class Figure:
    """A chart with the words that go with it."""

    # Name of its files.
    name: str
    title: str
    # What a reader who cannot see the chart is told.
    description: str
    caption: str
    chart: Any
    # Its place on the page: the whole width, or half of it.
    shape: Literal["whole", "half"] = "whole"


def figures(report: Report) -> list[Figure]:
    """Every chart of the report in the order of the page; levels without results leave theirs out."""
    found: list[Figure] = []
    for number, comparison in enumerate(report.verdict["comparisons"]):
        found += _effects(report, comparison, report.blocks[number], number)
    for workload in report.workloads:
        trials = [trial for trial in report.trials if trial.workload == workload and trial.figures]
        if trials:
            found.append(_levels(report, workload, trials, "throughput"))
            found.append(_levels(report, workload, trials, "latency_p95_us"))
            found.append(_seconds(report, workload, trials))
    return found


def finished(chart: Any) -> Any:
    """The chart with the house style: thin axes, no frame, one font."""
    return (
        chart.properties(background=PAPER, padding=8)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED, titleColor=INK, gridColor=GRID, domainColor=MUTED, tickColor=MUTED,
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titlePadding=8, aria=False,
        )
        .configure_legend(
            labelColor=INK, titleColor=INK, labelFontSize=12, orient="top", title=None, symbolSize=70,
            labelLimit=400, aria=False,
        )
        .configure_title(color=INK, fontSize=13, fontWeight="bold", anchor="start", aria=False)
        .configure_mark(aria=False)
    )  # fmt: skip


def _color(report: Report, legend: Any = alt.Undefined) -> Any:
    names = report.variants
    colors = [PALETTE[index % len(PALETTE)] for index in range(len(names))]
    return alt.Color("variant:N", scale=alt.Scale(domain=names, range=colors), sort=names, legend=legend)


def _shape(report: Report) -> Any:
    names = report.variants
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
    return alt.Shape("variant:N", scale=alt.Scale(domain=names, range=shapes), sort=names)


def _dash(report: Report) -> Any:
    names = report.variants
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    return alt.StrokeDash("variant:N", scale=alt.Scale(domain=names, range=dashes), sort=names)


def _effects(report: Report, comparison: Any, blocks: Any, number: int) -> list[Figure]:
    """A forest plot: the effect at every point and over the curve, with interval, blocks and the zone of ±delta."""
    rows, dots = _effect_rows(comparison, blocks)
    if not rows:
        return []
    order = [row["label"] for row in rows]
    delta = comparison["points"][0]["delta_percent"]
    bounds = [v for row in rows for v in (row["low"], row["high"], row["effect"]) if v is not None]
    bounds += [dot["effect"] for dot in dots] + [-delta, delta]
    margin = 0.04 * (max(bounds) - min(bounds))
    scale = alt.Scale(domain=[min(bounds) - margin, max(bounds) + margin], nice=False)
    metric = words.METRICS[comparison["curve"]["metric"]]
    axis = alt.Axis(
        labelExpr="datum.value === 0 ? '0' : format(datum.value, '+~f')",
        title=f"change of {metric} against {report.variants[0]}, percent",
        tickCount=8,
    )
    x, y = (
        alt.X("effect:Q", scale=scale, axis=axis),
        alt.Y("label:N", sort=order, axis=_row_axis(), title=None),
    )
    color = PALETTE[report.variants.index(comparison["variant"]) % len(PALETTE)]
    base = alt.Chart(alt.Data(values=rows))
    zone = alt.Chart(alt.Data(values=[{"from": -delta, "to": delta}])).mark_rect(color=SHADE)
    nothing = alt.Chart(alt.Data(values=[{"effect": 0}])).mark_rule(color=MUTED)
    chart = alt.layer(
        zone.encode(x=alt.X("from:Q", scale=scale, axis=axis), x2="to:Q"),
        nothing.encode(x=x),
        alt.Chart(alt.Data(values=dots))
        .mark_tick(color=color, opacity=0.45, thickness=1.5, size=12)
        .encode(x=x, y=y),
        base.transform_filter("datum.low !== null")
        .mark_rule(color=color, strokeWidth=2.5)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y),
        base.transform_filter("datum.kind === 'point'")
        .mark_point(color=color, filled=True, size=80, opacity=1)
        .encode(x=x, y=y),
        base.transform_filter("datum.kind === 'curve'")
        .mark_point(color=color, filled=True, size=150, opacity=1, shape="diamond")
        .encode(x=x, y=y),
        base.mark_text(align="left", color=INK, fontSize=12).encode(x=alt.value(572), y=y, text="size:N"),
        base.mark_text(align="left", color=INK, fontSize=12, fontWeight="bold").encode(
            x=alt.value(714), y=y, text="word:N"
        ),
    ).properties(width=560, height=alt.Step(34))
    told = "; ".join(f"{row['label']}: {row['size']}, {row['word']}" for row in rows)
    return [
        Figure(
            name=f"effect-{comparison['workload']}-{number + 1}",
            title=f"Effect of {comparison['variant']} against {report.variants[0]} on {comparison['workload']}",
            description=f"Change of {metric} with its interval. {told}.",
            caption=f"Marks: estimate; bars: 95 % interval, held for all points together; small strokes: single "
            f"blocks; grey zone: ±{delta:g} %, inside which a difference is called equivalent.",
            chart=chart,
        )
    ]


def _row_axis() -> Any:
    return alt.Axis(
        domain=False, ticks=False, labelFontSize=13, labelColor=INK, labelPadding=12, labelLimit=260
    )


def _effect_rows(comparison: Any, blocks: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One row per point and one for the curve, and one dot per row and block."""
    rows: list[dict[str, Any]] = []
    dots: list[dict[str, Any]] = []

    def add(label: str, kind: str, entry: Any, percent: dict[str, float]) -> None:
        if entry["effect_percent"] is None:
            return
        low, high = entry["interval_percent"] or (None, None)
        rows.append(
            {
                "label": label,
                "kind": kind,
                "effect": entry["effect_percent"],
                "low": low,
                "high": high,
                "size": f"{words.change(entry['effect_percent'])} {words.interval(entry['interval_percent'])}",
                "word": words.VERDICTS[entry["verdict"]],
            }
        )
        dots.extend({"label": label, "effect": effect} for effect in percent.values())

    for point, single in zip(comparison["points"], blocks["points"], strict=True):
        ((unit, value),) = point["at"].items()
        add(words.level(unit, value), "point", point, single["percent"])
    if len(comparison["points"]) > 1:
        add("whole curve", "curve", comparison["curve"], blocks["curve"]["percent"])
    return rows, dots


def _levels(report: Report, workload: str, trials: Sequence[Trial], metric: str) -> Figure:
    """Throughput or latency over the load: the median of the blocks as a line, every block as a mark."""
    dots = [
        {"variant": t.variant, "at": t.level, "x": _dodged(report, trials, t), "value": _shown(metric, t)}
        for t in trials
    ]
    groups = {(dot["variant"], dot["at"], dot["x"]): None for dot in dots}
    medians = [
        {
            "variant": name,
            "at": at,
            "x": x,
            "value": statistics.median(d["value"] for d in dots if (d["variant"], d["at"]) == (name, at)),
        }
        for name, at, x in groups
    ]
    unit = "offered transactions per second" if report.open_loop else "connections"
    title = "transactions per second" if metric == "throughput" else "p95 latency, milliseconds"
    x = alt.X(
        "x:Q",
        scale=_level_scale(trials),
        axis=alt.Axis(values=_axis_values(trials), format="~s", title=unit, grid=False),
    )
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title=title, tickCount=6))
    chart = alt.layer(
        alt.Chart(alt.Data(values=medians))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=_color(report), strokeDash=_dash(report)),
        alt.Chart(alt.Data(values=dots))
        .mark_point(filled=True, size=42, opacity=0.6)
        .encode(x=x, y=y, color=_color(report), shape=_shape(report)),
    ).properties(width=HALF_WIDTH, height=HEIGHT)
    what = "Throughput" if metric == "throughput" else "p95 latency"
    told = "; ".join(
        f"{m['variant']} at {m['at']:g}: {words.rate(m['value'])}"
        for m in sorted(medians, key=lambda m: (m["variant"], m["at"]))
    )
    return Figure(
        name=f"{'throughput' if metric == 'throughput' else 'latency-p95'}-{workload}",
        title=f"{what} of {workload}",
        description=f"{what} ({title}) over {unit}, medians of the blocks. {told}.",
        caption="Lines: median of the blocks; marks: every single block. The vertical axis need not begin at zero.",
        chart=chart,
        shape="half",
    )


def _shown(metric: str, trial: Trial) -> float:
    value = float((trial.figures or {})[metric])
    return value if metric == "throughput" else value / 1000.0


def _levels_of(trials: Iterable[Trial]) -> list[float]:
    return sorted({trial.level for trial in trials})


def _dodged(report: Report, trials: Sequence[Trial], trial: Trial) -> float:
    """The level, moved a little along the logarithmic axis so that variants do not hide one another."""
    levels = _levels_of(trials)
    span = math.log(levels[-1] / levels[0]) or math.log(4.0)
    place = report.variants.index(trial.variant) - (len(report.variants) - 1) / 2
    return trial.level * math.exp(place * DODGE * span)


def _level_scale(trials: Sequence[Trial]) -> Any:
    levels = _levels_of(trials)
    room = (levels[-1] / levels[0]) ** 0.1 if len(levels) > 1 else 2.0
    return alt.Scale(type="log", domain=[levels[0] / room, levels[-1] * room], nice=False)


def _axis_values(trials: Sequence[Trial]) -> list[float]:
    """The levels themselves, thinned where their labels would touch."""
    levels = _levels_of(trials)
    span = math.log(levels[-1] / levels[0]) or 1.0
    kept = [levels[0]]
    for level in levels[1:]:
        if math.log(level / kept[-1]) > 0.06 * span:
            kept.append(level)
    return kept


def _seconds(report: Report, workload: str, trials: Sequence[Trial]) -> Figure:
    """Throughput second by second, a panel per load level, a thin line per block, the warm-up shaded."""
    levels = _levels_of(trials)
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
        description=f"Throughput over time in {len(levels)} panels, one per load level, one line per trial; the warm-up "
        "at the left is shaded and does not count.",
        caption="One thin line per block. The shaded beginning is warm-up and does not count."
        + (" Each panel has its own scale." if own else ""),
        chart=chart,
    )


def _panel(report: Report, trials: Sequence[Trial], panels: int) -> Any:
    rows = [
        {"variant": trial.variant, "trial": trial.index, "s": s, "tps": tps}
        for trial in trials
        for s, tps in trial.series
    ]
    starts = [trial.window_s[0] for trial in trials if trial.window_s]
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
        alt.Chart(alt.Data(values=[{"from": 0, "to": statistics.median(starts)}]))
        .mark_rect(color=SHADE)
        .encode(x=alt.X("from:Q", axis=axis, scale=scale), x2="to:Q")
    )
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1, opacity=0.7)
        .encode(x=x, y=y, color=_color(report), detail="trial:N")
    )
    named = (
        alt.Chart(alt.Data(values=[{"s": 0}]))
        .mark_text(align="left", baseline="top", dx=4, dy=4, color=MUTED, fontSize=11, text="warm-up")
        .encode(x=x, y=alt.value(0))
    )
    return alt.layer(shade, named, lines).properties(
        width=width, height=190, title=words.level(unit, trials[0].level)
    )
