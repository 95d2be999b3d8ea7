"""The effect of a variant against the baseline as a forest plot: estimate, interval, every single block."""

from __future__ import annotations

from typing import Any, TypeAlias

import altair as alt

from dbdyno.report import words
from dbdyno.report.figure import INK, MUTED, PALETTE, SHADE, Figure, chart_of
from dbdyno.report.model import Report

Row: TypeAlias = dict[str, Any]

# The plot, and the columns of figures and words beside it.
EFFECT_WIDTH, RESULT_X, WORD_X = 560, 572, 762


def effects(report: Report, comparison: Any, blocks: Any, number: int) -> list[Figure]:
    """One comparison's effects with intervals, blocks and the zone of ±delta; [] without results."""
    rows, dots = _effect_rows(comparison, blocks)
    if not rows:
        return []
    baseline, variant, workload = report.variants[0], comparison["variant"], comparison["workload"]
    delta = comparison["points"][0]["delta_percent"]
    metric = words.METRICS[comparison["curve"]["metric"]]
    told = "; ".join(f"{row['label']}: {row['size']}, {row['word']}" for row in rows)
    return [
        Figure(
            name=f"effect-{workload}-{number + 1}",
            title=f"Effect of {variant} against {baseline} on {workload}",
            description=f"Change of {metric} with its interval. {told}.",
            caption="Marks: estimate; bars: 95 % interval, held for all points together; small strokes: "
            f"single blocks; grey zone: ±{delta:g} %, inside which a difference is called equivalent.",
            chart=_plot(
                rows,
                dots,
                delta,
                PALETTE[report.variants.index(variant) % len(PALETTE)],
                f"change of {metric} against {baseline}, percent",
            ),
        )
    ]


def _plot(rows: list[Row], dots: list[Row], delta: float, color: str, title: str) -> Any:
    scale = _scale(rows, dots, delta)
    axis = alt.Axis(
        labelExpr="datum.value === 0 ? '0' : format(datum.value, '+~f')", title=title, tickCount=8
    )
    x = alt.X("effect:Q", scale=scale, axis=axis)
    y = alt.Y("label:N", sort=[row["label"] for row in rows], axis=_row_axis(), title=None)
    base = chart_of(rows)
    zone = chart_of([{"from": -delta, "to": delta}]).mark_rect(color=SHADE)
    nothing = chart_of([{"effect": 0}]).mark_rule(color=MUTED)
    strokes = chart_of(dots).mark_tick(color=color, opacity=0.45, thickness=1.5, size=12)
    bars = base.transform_filter("datum.low !== null").mark_rule(color=color, strokeWidth=2.5)
    points = base.transform_filter("datum.kind === 'point'").mark_point(
        color=color, filled=True, size=80, opacity=1
    )
    curve = base.transform_filter("datum.kind === 'curve'").mark_point(
        color=color, filled=True, size=150, opacity=1, shape="diamond"
    )
    text = base.mark_text(align="left", color=INK, fontSize=12)
    bold = base.mark_text(align="left", color=INK, fontSize=12, fontWeight="bold")
    return alt.layer(
        zone.encode(x=alt.X("from:Q", scale=scale, axis=axis), x2="to:Q"),
        nothing.encode(x=x),
        strokes.encode(x=x, y=y),
        bars.encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y),
        points.encode(x=x, y=y),
        curve.encode(x=x, y=y),
        text.encode(x=alt.value(RESULT_X), y=y, text="size:N"),
        bold.encode(x=alt.value(WORD_X), y=y, text="word:N"),
    ).properties(width=EFFECT_WIDTH, height=alt.Step(34))


def _scale(rows: list[Row], dots: list[Row], delta: float) -> Any:
    """Wide enough for every interval, every block and the zone."""
    bounds = [row[key] for row in rows for key in ("low", "high", "effect") if row[key] is not None]
    bounds += [dot["effect"] for dot in dots] + [-delta, delta]
    margin = 0.04 * (max(bounds) - min(bounds))
    return alt.Scale(domain=[min(bounds) - margin, max(bounds) + margin], nice=False)


def _row_axis() -> Any:
    return alt.Axis(
        domain=False, ticks=False, labelFontSize=13, labelColor=INK, labelPadding=12, labelLimit=260
    )


def _effect_rows(comparison: Any, blocks: Any) -> tuple[list[Row], list[Row]]:
    """One row per point and one for the curve, and one dot per row and block."""
    rows: list[Row] = []
    dots: list[Row] = []

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
                "size": words.effect(entry),
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
