"""The chart of throughput over connections, with the fitted scalability law and its peak, or with the
plateau.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.report import formatting
from dbdyno.report.chart import HEIGHT, WIDTH, Chart
from dbdyno.report.chart_parts import chart_of, color, dash, layered, shape
from dbdyno.report.load_chart import axis_values, load_scale, medians
from dbdyno.report.model import Report
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Scaling
from dbdyno.text import Text, compose, compose_count, join


def scaling_chart(
    report: Report, workload: str, trials: Sequence[MeasuredTrial], entries: Sequence[Scaling]
) -> Chart:
    """The medians as marks, the law as a line, its peak as a diamond, the peak's interval or the plateau as a
    bar.
    """
    fitted = [entry for entry in entries if entry.model is not None]
    flat = [entry for entry in entries if entry.model is None]
    curves = [
        {"variant": entry.variant, "x": n, "value": throughput}
        for entry in fitted
        for n, throughput in entry.curve
    ]
    peaks = [
        {"variant": entry.variant, "x": entry.knee_connections, "value": entry.knee_throughput}
        for entry in fitted
        if entry.knee_connections is not None
    ]
    bars = [_peak_bar(entry) for entry in fitted if entry.knee_connections is not None]
    bars += [_plateau_bar(entry) for entry in flat if entry.plateau]
    scale = load_scale(trials)
    x = alt.X(
        "x:Q",
        scale=scale,
        axis=alt.Axis(values=axis_values(trials), format=",~f", title=compose("connections"), grid=False),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=True, nice=True),
        axis=alt.Axis(title=compose("transactions/s"), tickCount=6),
    )
    layers = [
        chart_of(medians(report, trials, "throughput", side_by_side=False))
        .mark_point(filled=True, size=50, opacity=0.8)
        .encode(x=x, y=y, color=color(report), shape=shape(report))
    ]
    if curves:
        lines = chart_of(curves).mark_line(strokeWidth=2)
        layers.insert(0, lines.encode(x=x, y=y, color=color(report), strokeDash=dash(report)))
    if bars:
        rules = chart_of(bars).mark_rule(strokeWidth=5, opacity=0.3)
        layers.append(rules.encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=color(report)))
    if peaks:
        marks = chart_of(peaks).mark_point(filled=True, size=170, shape="diamond", opacity=1)
        layers.append(marks.encode(x=x, y=y, color=color(report)))
    return Chart(
        name=f"scaling-{workload}",
        title=compose("How {workload} scales with connections", workload=workload),
        description=join("; ", [compose("Throughput over connections"), *_details(fitted, flat)]) + ".",
        caption=_caption(fitted, flat),
        specification=layered(layers, WIDTH - 60, HEIGHT + 40),
    )


def _details(fitted: Sequence[Scaling], flat: Sequence[Scaling]) -> list[Text]:
    """The peak or the plateau of each variant as text."""
    details = [
        compose("{variant}: peak {peak}", variant=entry.variant, peak=formatting.peak(entry))
        for entry in fitted
        if entry.knee is not None
    ]
    details += [
        compose_count(
            1 if entry.plateau == (1.0, 1.0) else 2,
            "{variant}: within 2 % of the highest {plateau} connection",
            "{variant}: within 2 % of the highest {plateau} connections",
            variant=entry.variant,
            plateau=formatting.plateau(entry),
        )
        for entry in flat
        if entry.plateau
    ]
    return details


def _caption(fitted: Sequence[Scaling], flat: Sequence[Scaling]) -> str:
    parts = [compose("Marks: medians of the blocks")]
    if fitted:
        parts.append(compose("lines: the universal scalability law fitted to them"))
    if any(entry.knee_connections is not None for entry in fitted):
        parts.append(
            compose(
                "diamonds: its peak, where throughput is highest; bars: 95 % CI of the peak, from the blocks"
            )
        )
    text = join("; ", parts) + "."
    misfits = [entry for entry in flat if entry.fit_error_percent is not None]
    if misfits:
        text += compose(" The law does not fit {names}: no line and no peak", names=_names(misfits))
        is_flat = any(entry.plateau for entry in misfits)
        text += compose("; bar: loads within 2 % of the highest throughput.") if is_flat else "."
    if with_failures := [entry for entry in flat if entry.fit_error_percent is None]:
        text += compose(
            " The server failed in trials of {names}, which count as 0: no line and no peak.",
            names=_names(with_failures),
        )
    return text


def _names(entries: Sequence[Scaling]) -> str:
    return ", ".join(entry.variant for entry in entries)


def _peak_bar(entry: Scaling) -> dict[str, Any]:
    """The interval of a peak as a bar; an unknown end is drawn at the lowest or highest load."""
    low = high = entry.knee_connections
    if entry.knee_interval is not None:
        low, high = (
            limit if end is None else end
            for end, limit in zip(entry.knee_interval, entry.levels, strict=True)
        )
    return {"variant": entry.variant, "low": low, "high": high, "value": entry.knee_throughput}


def _plateau_bar(entry: Scaling) -> dict[str, Any]:
    """The loads with nearly the highest throughput as a bar."""
    assert entry.plateau is not None, "the caller checked"
    low, high = entry.plateau
    value = entry.highest.throughput
    return {"variant": entry.variant, "low": low, "high": high, "value": value}
