"""The effect of a variant against the baseline as a forest plot: estimate, interval, individual blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import altair as alt

from dbdyno.report import words
from dbdyno.report.encoding import chart_of
from dbdyno.report.figure import INK, MUTED, PALETTE, PAPER, SHADE, Figure
from dbdyno.report.model import Report
from dbdyno.store.measured import ComparisonBlocks
from dbdyno.store.verdict import Comparison, JudgedEffect

Row: TypeAlias = dict[str, Any]
# Label, effect, and percent of each block.
Entry: TypeAlias = tuple[str, JudgedEffect, Mapping[str, float | None]]

# Width of the plot, and the x positions of the result and verdict columns at its right.
EFFECT_WIDTH, RESULT_X, WORD_X = 540, 552, 740
# Changes beyond these, in percent, are shown on a logarithmic axis of ratios.
FAR_BELOW, FAR_ABOVE = -50.0, 100.0
# Margin at both ends, as a share of the axis.
MARGIN = 0.04
# Half of the axis in percent if no number is known.
EMPTY_AXIS = 10.0


@dataclass(frozen=True)
class _Axis:
    """The horizontal axis: percent, or ratios if some changes are large."""

    ratios: bool
    low: float
    high: float

    def at(self, percent: float) -> float:
        """The x value of a change, clipped to the axis."""
        value = 1.0 + percent / 100.0 if self.ratios else percent
        return min(max(value, self.low), self.high)


def effects(report: Report, comparison: Comparison, blocks: ComparisonBlocks, number: int) -> list[Figure]:
    """One comparison's effects with intervals, blocks and the declared zone of ±delta; [] without results."""
    entries = _entries(comparison, blocks)
    if not any(entry.blocks for _, entry, _ in entries):
        return []
    baseline, variant, workload = report.variants[0], comparison.variant, comparison.workload
    delta = comparison.curve.delta_percent
    metric = words.METRICS[comparison.curve.metric]
    color = PALETTE[report.variants.index(variant) % len(PALETTE)]
    axis = _axis(entries, delta)
    rows = [_row(label, entry, axis, color) for label, entry, _ in entries]
    ticks = [
        {"label": label, "x": axis.at(effect)}
        for label, _, percent in entries
        for effect in percent.values()
        if effect is not None
    ]
    details = "; ".join(f"{row['label']}: {row['size']}, {row['word']}" for row in rows)
    unit = (
        f"{metric} as a multiple of {baseline}'s"
        if axis.ratios
        else f"change of {metric} against {baseline}, %"
    )
    return [
        Figure(
            name=f"effect-{workload}-{number + 1}",
            title=f"Effect of {variant} against {baseline} on {workload}",
            description=f"Change of {metric} with its confidence interval. {details}.",
            caption=_caption(comparison, entries, rows),
            chart=_plot(rows, ticks, axis, delta, (color, unit)),
        )
    ]


def _entries(comparison: Comparison, blocks: ComparisonBlocks) -> list[Entry]:
    """One entry per load and, if there are several loads, one for all loads combined."""
    entries: list[Entry] = []
    for point, single in zip(comparison.points, blocks.points, strict=True):
        ((unit, value),) = point.at.items()
        entries.append((words.level(unit, value), point, single.percent))
    if len(entries) > 1:
        entries.append((words.ALL_LOADS, comparison.curve, blocks.curve.percent))
    return entries


def _axis(entries: Sequence[Entry], delta: float | None) -> _Axis:
    """Wide enough for every finite end of an interval, every block and the zone."""
    values = [0.0] if delta is None else [0.0, -delta, delta]
    for _, entry, percent in entries:
        ends = entry.interval_percent or ()
        values += [
            v for v in (entry.effect_percent, *ends, *percent.values()) if v is not None and v > -100.0
        ]
    low, high = min(values), max(values)
    if low == high:
        low, high = -EMPTY_AXIS, EMPTY_AXIS
    if low < FAR_BELOW or high > FAR_ABOVE:
        first, last = 1.0 + low / 100.0, 1.0 + high / 100.0
        margin = (last / first) ** MARGIN
        return _Axis(True, first / margin, last * margin)
    margin = MARGIN * (high - low)
    return _Axis(False, low - margin, high + margin)


def _row(label: str, entry: JudgedEffect, axis: _Axis, color: str) -> Row:
    """One row of the plot. An unknown end of the interval is an arrow at the edge."""
    effect, bounds = entry.effect_percent, entry.interval_percent
    low, high = bounds or (None, None)
    left = axis.low if bounds and (low is None or low <= -100.0) else None
    right = axis.high if bounds and high is None else None
    return {
        "label": label,
        "x": None if effect is None or effect <= -100.0 else axis.at(effect),
        "low": left if low is None or left is not None else axis.at(low),
        "high": right if high is None else axis.at(high),
        "left": left,
        "right": right,
        "fill": PAPER if entry.bound else color,
        "shape": "diamond" if label == words.ALL_LOADS else "circle",
        "area": 130 if label == words.ALL_LOADS else 65,
        "size": words.effect(entry),
        "word": words.verdict(entry.verdict),
    }


def _caption(comparison: Comparison, entries: Sequence[Entry], rows: Sequence[Row]) -> str:
    points, curve = comparison.points, comparison.curve
    together = "simultaneous " if len(points) > 1 else ""
    bars = f"bars: {together}{words.ci(points)}; " if any(row["low"] is not None for row in rows) else ""
    parts = [f"Dots: estimates; {bars}ticks: individual blocks"]
    if len(points) > 1:
        own = "" if curve.confidence == points[0].confidence else f" ({words.ci([curve])})"
        parts.append(f"diamond: {words.ALL_LOADS}{own}")
    if any(row["fill"] == PAPER and row["x"] is not None for row in rows):
        parts.append("hollow: only a bound of the estimate is known")
    if any(row["left"] is not None or row["right"] is not None for row in rows):
        parts.append("arrows: the interval extends beyond the axis")
    if curve.delta_percent is not None:
        parts.append(f"grey zone: ±{curve.delta_percent:g} %, declared as equivalent")
    text = f"{'; '.join(parts)}."
    of_points = [percent for label, _, percent in entries if label != words.ALL_LOADS]
    total = sum(len(percent) for percent in of_points)
    unknown = sum(effect is None for percent in of_points for effect in percent.values())
    if unknown:
        text += f" {unknown} of {total} blocks have no tick: their ratio is unknown or infinite."
    return text


def _plot(rows: list[Row], ticks: list[Row], axis: _Axis, delta: float | None, look: tuple[str, str]) -> Any:
    """`look` is the variant's colour and the title of the horizontal axis."""
    color, title = look
    scale = alt.Scale(type="log" if axis.ratios else "linear", domain=[axis.low, axis.high], nice=False)
    percent = "datum.value === 0 ? '0' : format(datum.value, '+~f')"
    labels = "format(datum.value, '~g')" if axis.ratios else percent
    x_axis = alt.Axis(labelExpr=labels, title=title, tickCount=8)
    x = alt.X("x:Q", scale=scale, axis=x_axis)
    row_axis = alt.Axis(
        domain=False, ticks=False, labelFontSize=13, labelColor=INK, labelPadding=12, labelLimit=260
    )
    y = alt.Y("label:N", sort=[row["label"] for row in rows], axis=row_axis, title=None)
    base = chart_of(rows)

    def arrows(side: str) -> Any:
        mark = base.transform_filter(f"datum.{side} !== null")
        return mark.mark_point(color=color, filled=True, size=70, opacity=1, shape=f"triangle-{side}").encode(
            x=alt.X(f"{side}:Q", scale=scale, axis=x_axis), y=y
        )

    text = {"align": "left", "color": INK, "fontSize": 12}
    layers = [
        chart_of([{"x": axis.at(0.0)}]).mark_rule(color=MUTED).encode(x=x),
        chart_of(ticks).mark_tick(color=color, opacity=0.45, thickness=1.5, size=12).encode(x=x, y=y),
        base.transform_filter("datum.low !== null")
        .mark_rule(color=color, strokeWidth=2.5)
        .encode(x=alt.X("low:Q", scale=scale, axis=x_axis), x2="high:Q", y=y),
        arrows("left"),
        arrows("right"),
        base.transform_filter("datum.x !== null")
        .mark_point(stroke=color, strokeWidth=1.5, opacity=1)
        .encode(
            x=x,
            y=y,
            fill=alt.Fill("fill:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
            size=alt.Size("area:Q", scale=None),
        ),
        base.mark_text(**text).encode(x=alt.value(RESULT_X), y=y, text="size:N"),
        base.mark_text(**text, fontWeight="bold").encode(x=alt.value(WORD_X), y=y, text="word:N"),
    ]
    if delta is not None:
        zone = chart_of([{"from": axis.at(-delta), "to": axis.at(delta)}]).mark_rect(color=SHADE)
        layers.insert(0, zone.encode(x=alt.X("from:Q", scale=scale, axis=x_axis), x2="to:Q"))
    return alt.layer(*layers).properties(width=EFFECT_WIDTH, height=alt.Step(34))
