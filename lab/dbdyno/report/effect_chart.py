"""The chart of a variant's effect against the baseline (a forest plot): estimate, interval, individual
blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import altair as alt

from dbdyno import result_text
from dbdyno.experiment.metrics import CPU, HIGHER_IS_BETTER
from dbdyno.report import formatting
from dbdyno.report.chart import INK, MUTED, PALETTE, PAPER, SHADE, Chart
from dbdyno.report.chart_parts import chart_of
from dbdyno.report.model import Report
from dbdyno.result_text import RATIO_ABOVE, RATIO_BELOW
from dbdyno.store.measured import ComparisonBlockEffects
from dbdyno.store.verdict import CombinedEffect, Comparison, Point
from dbdyno.text import compose, join

Row: TypeAlias = dict[str, Any]
# Label, effect, and block -> change in percent.
LabelledEffect: TypeAlias = tuple[str, Point | CombinedEffect, Mapping[str, float | None]]

# Width of the plot, and the x positions of the columns at its right: effect as text, and verdict. In pixels.
PLOT_WIDTH, EFFECT_X, VERDICT_X = 540, 552, 740
# Width of the plot on narrow screens.
NARROW_WIDTH = 340
# Between the words of the axis title; SVG merges ordinary spaces.
GAP = 6 * "\N{NO-BREAK SPACE}"
# Margin at both ends, as a share of the axis.
MARGIN = 0.04
# Both ends of the axis, in percent, if no change is known.
DEFAULT_END = 10.0


@dataclass(frozen=True)
class _Axis:
    """The horizontal axis: changes in percent, or ratios if a change is large."""

    has_ratios: bool
    low: float
    high: float

    def x(self, percent: float) -> float:
        """The x value of a change, clipped to the axis."""
        value = 1.0 + percent / 100.0 if self.has_ratios else percent
        return min(max(value, self.low), self.high)


def effect_charts(
    report: Report, comparison: Comparison, blocks: ComparisonBlockEffects, number: int
) -> list[Chart]:
    """The chart of one comparison, with the zone of equivalence if one is declared; [] without results."""
    effects = _labelled_effects(comparison, blocks)
    if not any(effect.blocks for _, effect, _ in effects):
        return []
    baseline, variant, workload = report.variants[0], comparison.variant, comparison.workload
    delta = comparison.curve.delta_percent
    metric = formatting.metric_name(comparison.curve.metric)
    color = PALETTE[report.variants.index(variant) % len(PALETTE)]
    axis = _axis(effects, delta)
    rows = [_row(label, effect, axis, color) for label, effect, _ in effects]
    ticks = [
        {"label": label, "x": axis.x(change)}
        for label, _, changes in effects
        for change in changes.values()
        if change is not None
    ]
    details = join(
        "; ",
        (
            compose(
                "{label}: {effect}, {verdict}", **{key: row[key] for key in ("label", "effect", "verdict")}
            )
            for row in rows
        ),
    )
    unit = (
        compose("{metric} as a multiple of {baseline}'s", metric=metric, baseline=baseline)
        if axis.has_ratios
        else compose("change of {metric}, %", metric=metric)
    )
    left, right = _directions(comparison.curve.metric)
    plot = partial(_plot, rows, ticks, axis, delta, color=color)
    return [
        Chart(
            name=f"effect-{workload}-{number + 1}",
            title=compose(
                "Effect of {variant} against {baseline} on {workload}",
                variant=variant,
                baseline=baseline,
                workload=workload,
            ),
            description=compose(
                "Change of {metric} with its confidence interval. {details}.", metric=metric, details=details
            ),
            caption=_caption(comparison, effects, rows),
            specification=plot(x_title=join("", ("← ", left, GAP, unit, GAP, right, " →")), form=_WIDE),
            narrow=plot(x_title=[unit, join("", ("← ", left, GAP, right, " →"))], form=_NARROW),
        )
    ]


def _directions(metric: str) -> tuple[str, str]:
    """What a variant at the left and at the right of the baseline is."""
    if metric == CPU:
        return compose("less"), compose("more")
    slower, faster = result_text.VERDICTS["slower"], result_text.VERDICTS["faster"]
    return (slower, faster) if metric in HIGHER_IS_BETTER else (faster, slower)


def _labelled_effects(comparison: Comparison, blocks: ComparisonBlockEffects) -> list[LabelledEffect]:
    """One effect per load and, if there are several loads, one for all loads combined."""
    if comparison.capacity is not None:
        return [(formatting.metric_name("capacity"), comparison.curve, blocks.curve.percent)]
    effects: list[LabelledEffect] = []
    for point, single in zip(comparison.points, blocks.points, strict=True):
        ((unit, value),) = point.at.items()
        effects.append((formatting.load(unit, value), point, single.percent))
    if len(effects) > 1:
        effects.append((formatting.ALL_LOADS, comparison.curve, blocks.curve.percent))
    return effects


def _axis(effects: Sequence[LabelledEffect], delta: float | None) -> _Axis:
    """An axis that contains every finite end of an interval, every block and the zone of equivalence."""
    values = [0.0] if delta is None else [0.0, -delta, delta]
    for _, effect, changes in effects:
        ends = effect.interval_percent or ()
        values += [
            v for v in (effect.effect_percent, *ends, *changes.values()) if v is not None and v > -100.0
        ]
    low, high = min(values), max(values)
    if low == high:
        low, high = -DEFAULT_END, DEFAULT_END
    if low < RATIO_BELOW or high > RATIO_ABOVE:
        # The axis shows ratios and is logarithmic.
        first, last = 1.0 + low / 100.0, 1.0 + high / 100.0
        margin = (last / first) ** MARGIN
        return _Axis(True, first / margin, last * margin)
    margin = MARGIN * (high - low)
    return _Axis(False, low - margin, high + margin)


def _row(label: str, effect: Point | CombinedEffect, axis: _Axis, color: str) -> Row:
    """One row of the plot. `left` and `right` are the arrows at the edge for unknown ends of the interval."""
    estimate, interval = effect.effect_percent, effect.interval_percent
    low, high = interval or (None, None)
    left = axis.low if interval and (low is None or low <= -100.0) else None
    right = axis.high if interval and high is None else None
    return {
        "label": label,
        "x": None if estimate is None or estimate <= -100.0 else axis.x(estimate),
        "low": left if low is None or left is not None else axis.x(low),
        "high": right if high is None else axis.x(high),
        "left": left,
        "right": right,
        "fill": PAPER if effect.bound else color,
        "shape": "diamond" if label == formatting.ALL_LOADS else "circle",
        "area": 130 if label == formatting.ALL_LOADS else 65,
        "effect": formatting.estimate_and_interval(effect),
        "verdict": formatting.verdict(effect.verdict),
    }


def _caption(comparison: Comparison, effects: Sequence[LabelledEffect], rows: Sequence[Row]) -> str:
    curve = comparison.curve
    points = comparison.points if comparison.capacity is None else [curve]
    bars: str = (
        compose("bars: simultaneous {ci}; ", ci=formatting.ci_heading(points))
        if len(points) > 1
        else compose("bars: {ci}; ", ci=formatting.ci_heading(points))
    )
    if all(row["low"] is None for row in rows):
        bars = ""
    parts = [compose("Dots: estimates; {bars}ticks: individual blocks", bars=bars)]
    if len(points) > 1:
        confidence = (
            ""
            if curve.confidence == points[0].confidence
            else compose(" ({ci})", ci=formatting.ci_heading([curve]))
        )
        parts.append(
            compose("diamond: {all_loads}{confidence}", all_loads=formatting.ALL_LOADS, confidence=confidence)
        )
    if any(row["fill"] == PAPER and row["x"] is not None for row in rows):
        parts.append(compose("hollow: only a bound of the estimate is known"))
    if any(row["left"] is not None or row["right"] is not None for row in rows):
        parts.append(compose("arrows: the interval extends beyond the axis"))
    if curve.delta_percent is not None:
        parts.append(
            compose(
                "grey zone: ±{delta_percent:g} %, declared as equivalent", delta_percent=curve.delta_percent
            )
        )
    text = join("; ", parts) + "."
    per_load = [changes for label, _, changes in effects if label != formatting.ALL_LOADS]
    total = sum(len(changes) for changes in per_load)
    unknown = sum(change is None for changes in per_load for change in changes.values())
    if unknown:
        text += compose(
            " {unknown} of {total} blocks have no tick: their ratio is unknown or infinite.",
            unknown=unknown,
            total=total,
        )
    return text


@dataclass(frozen=True)
class _Form:
    """The sizes of a drawing in pixels."""

    width: int
    # Height of a row.
    step: int
    ticks: int
    # The x positions of effect and verdict as text, at the right of the plot; None puts them and the label
    # above the row, for narrow screens.
    text_x: tuple[int, int] | None


_WIDE = _Form(PLOT_WIDTH, 34, 8, (EFFECT_X, VERDICT_X))
_NARROW = _Form(NARROW_WIDTH, 58, 5, None)


def _plot(
    rows: list[Row],
    ticks: list[Row],
    axis: _Axis,
    delta: float | None,
    *,
    color: str,
    x_title: str | list[str],
    form: _Form,
) -> Any:
    """The plot as an Altair chart."""
    scale = alt.Scale(type="log" if axis.has_ratios else "linear", domain=[axis.low, axis.high], nice=False)
    percent = "datum.value === 0 ? '0' : format(datum.value, '+~f')"
    labels = "format(datum.value, '~g')" if axis.has_ratios else percent
    x_axis = alt.Axis(labelExpr=labels, title=x_title, tickCount=form.ticks)
    x = alt.X("x:Q", scale=scale, axis=x_axis)
    row_axis = alt.Axis(
        domain=False, ticks=False, labelFontSize=13, labelColor=INK, labelPadding=12, labelLimit=260
    )
    y = alt.Y(
        "label:N",
        sort=[row["label"] for row in rows],
        axis=row_axis if form.text_x else None,
        title=None,
    )
    base = chart_of(rows)

    def arrows(side: str) -> Any:
        mark = base.transform_filter(f"datum.{side} !== null")
        return mark.mark_point(color=color, filled=True, size=70, opacity=1, shape=f"triangle-{side}").encode(
            x=alt.X(f"{side}:Q", scale=scale, axis=x_axis), y=y
        )

    layers = [
        chart_of([{"x": axis.x(0.0)}]).mark_rule(color=MUTED).encode(x=x),
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
        *_texts(base, y, form),
    ]
    if delta is not None:
        zone = chart_of([{"from": axis.x(-delta), "to": axis.x(delta)}]).mark_rect(color=SHADE)
        layers.insert(0, zone.encode(x=alt.X("from:Q", scale=scale, axis=x_axis), x2="to:Q"))
    return alt.layer(*layers).properties(width=form.width, height=alt.Step(form.step))


def _texts(base: Any, y: Any, form: _Form) -> list[Any]:
    """Effect and verdict of each row; in the narrow form the label too, all above the row."""
    text = {"color": INK, "fontSize": 12}
    if form.text_x is not None:
        effect_x, verdict_x = form.text_x
        return [
            base.mark_text(**text, align="left").encode(x=alt.value(effect_x), y=y, text="effect:N"),
            base.mark_text(**text, align="left", fontWeight="bold").encode(
                x=alt.value(verdict_x), y=y, text="verdict:N"
            ),
        ]
    above = base.transform_calculate(both="datum.effect + '  ' + datum.verdict")
    return [
        base.mark_text(**text, align="left", fontWeight="bold", dy=-19).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
        above.mark_text(**text, align="right", dy=-19).encode(x=alt.value(form.width), y=y, text="both:N"),
    ]
