"""The charts over the load: throughput or latency, with a line per variant and a mark per trial; and
throughput over connections, with the fitted scalability law and its peak, or with the plateau.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dbdyno import result_text
from dbdyno.report import formatting
from dbdyno.report.chart import HALF_WIDTH, HEIGHT, WIDTH, Chart
from dbdyno.report.chart_parts import chart_of, color, dash, layered, loads_of, shape
from dbdyno.report.model import Report, value
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Scaling
from dbdyno.text import Text, compose, compose_count, join

# Horizontal distance between the marks of different variants at one load, as a share of the axis.
VARIANT_DISTANCE = 0.03
# The same if there is only one load.
ONE_LOAD_DISTANCE = 0.15
_LINES = compose("Lines: medians of the blocks; marks: individual blocks.")
_BARS = compose("Bars: medians of the blocks; marks: individual blocks.")
# Minimum distance between two axis labels, as a share of the axis.
LABEL_DISTANCE_MIN = 0.06


def load_chart(report: Report, workload: str, trials: Sequence[MeasuredTrial], metric: str) -> Chart:
    """The chart of one metric: the medians over the blocks as a line, every trial as a mark."""
    points: list[dict[str, Any]] = [
        {"variant": t.variant, "load": t.point.value, "x": _x(report, trials, t), "value": y_value}
        for t in trials
        if (y_value := _y(metric, t)) is not None
    ]
    middle_values = _medians(report, trials, metric)
    unit = compose("offered transactions/s") if report.is_open_loop else compose("connections")
    name, objective = formatting.metric_name(metric), report.experiment.load.latency_objective
    limit = objective if objective and metric == objective.metric else None
    title = (
        compose("transactions/s") if metric == "throughput" else compose("{name}, milliseconds", name=name)
    )
    x = alt.X(
        "x:Q",
        scale=_load_scale(trials),
        axis=alt.Axis(values=_axis_values(trials), format=",~f", title=unit, grid=False),
    )
    y = alt.Y(
        "value:Q",
        # Beyond the capacity the latency is many times as high.
        scale=alt.Scale(type="log", nice=True) if limit else alt.Scale(zero=True, nice=True),
        axis=alt.Axis(title=title, tickCount=6, minExtent=48),
    )
    is_line = len(loads_of(trials)) > 1
    middle = chart_of(middle_values)
    # A line needs two loads.
    lines = (
        middle.mark_line(strokeWidth=2)
        if is_line
        else middle.mark_tick(orient="horizontal", thickness=3, size=36)
    )
    marks = chart_of(points).mark_point(filled=True, size=42, opacity=0.6)
    layers = [
        lines.encode(x=x, y=y, color=color(report), **({"strokeDash": dash(report)} if is_line else {})),
        marks.encode(x=x, y=y, color=color(report), shape=shape(report)),
    ]
    if limit:
        layers.append(chart_of([{"value": limit.limit_s * 1e3}]).mark_rule(strokeDash=[6, 3]).encode(y=y))
    metric_name = compose("Throughput") if metric == "throughput" else name
    return Chart(
        name=f"{metric.removesuffix('_us').replace('_', '-')}-{workload}",
        title=compose("{metric_name} of {workload}", metric_name=metric_name, workload=workload),
        description=compose(
            "{metric_name} ({title}) over {unit}, medians of the blocks. {details}.",
            metric_name=metric_name,
            title=title,
            unit=unit,
            details=_details(middle_values),
        ),
        caption=(_LINES if is_line else _BARS)
        + (compose(" Dashed: {text}.", text=limit.text()) if limit else "")
        + _failures(trials, metric),
        specification=layered(layers, HALF_WIDTH, HEIGHT),
        width="half",
    )


def _details(middle_values: Sequence[Mapping[str, Any]]) -> Text:
    """The medians as text."""
    return join(
        "; ",
        (
            compose(
                "{variant} at {load:g}: {rate}",
                variant=m["variant"],
                load=m["load"],
                rate=result_text.rate(m["value"]),
            )
            for m in sorted(middle_values, key=lambda m: (m["variant"], m["load"]))
        ),
    )


def _medians(
    report: Report, trials: Sequence[MeasuredTrial], metric: str, *, side_by_side: bool = True
) -> list[dict[str, Any]]:
    """The median over the blocks for every variant and load, in the chart's units.

    If `side_by_side`, the x values of the variants at one load differ a little.
    """
    groups: dict[tuple[str, float, float], list[float]] = {}
    for trial in trials:
        load = trial.point.value
        x = _x(report, trials, trial) if side_by_side else load
        if (y_value := _y(metric, trial)) is not None:
            groups.setdefault((trial.variant, load, x), []).append(y_value)
    return [
        {"variant": name, "load": load, "x": x, "value": statistics.median(values)}
        for (name, load, x), values in groups.items()
    ]


def _y(metric: str, trial: MeasuredTrial) -> float | None:
    """The metric of a trial: transactions/s or milliseconds."""
    y_value = value(trial, metric)
    return y_value if y_value is None or metric == "throughput" else y_value / 1000.0


def _failures(trials: Sequence[MeasuredTrial], metric: str) -> str:
    """The sentence of the caption about trials in which the server failed; "" without such trials."""
    failed = sum(trial.figures is None for trial in trials)
    if not failed:
        return ""
    numbers = {"failed": failed, "number": len(trials)}
    if metric == "throughput":
        return compose(
            " {failed} of {number} trials failed because of their server and are shown as 0.", **numbers
        )
    return compose(
        " {failed} of {number} trials failed because of their server and have no latency.", **numbers
    )


def _x(report: Report, trials: Sequence[MeasuredTrial], trial: MeasuredTrial) -> float:
    """The load of a trial, shifted a little along the logarithmic axis so that the variants do not
    overlap.
    """
    loads = loads_of(trials)
    is_one = len(loads) == 1
    span = math.log(4.0) if is_one else math.log(loads[-1] / loads[0])
    distance = min(ONE_LOAD_DISTANCE, 0.9 / len(report.variants)) if is_one else VARIANT_DISTANCE
    offset = report.variants.index(trial.variant) - (len(report.variants) - 1) / 2
    return trial.point.value * math.exp(offset * distance * span)


def _load_scale(trials: Sequence[MeasuredTrial]) -> Any:
    """A logarithmic axis over all loads, with a margin at both ends."""
    loads = loads_of(trials)
    margin = (loads[-1] / loads[0]) ** 0.1 if len(loads) > 1 else 2.0
    return alt.Scale(type="log", domain=[loads[0] / margin, loads[-1] * margin], nice=False)


def _axis_values(trials: Sequence[MeasuredTrial]) -> list[float]:
    """The loads to label, without those whose labels would overlap."""
    loads = loads_of(trials)
    span = math.log(loads[-1] / loads[0]) or 1.0
    labelled = [loads[0]]
    for load in loads[1:]:
        if math.log(load / labelled[-1]) > LABEL_DISTANCE_MIN * span:
            labelled.append(load)
    return labelled


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
    scale = _load_scale(trials)
    x = alt.X(
        "x:Q",
        scale=scale,
        axis=alt.Axis(values=_axis_values(trials), format=",~f", title=compose("connections"), grid=False),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=True, nice=True),
        axis=alt.Axis(title=compose("transactions/s"), tickCount=6),
    )
    layers = [
        chart_of(_medians(report, trials, "throughput", side_by_side=False))
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
        description=join("; ", [compose("Throughput over connections"), *_fitted_details(fitted, flat)])
        + ".",
        caption=_caption(fitted, flat),
        specification=layered(layers, WIDTH - 60, HEIGHT + 40),
    )


def _fitted_details(fitted: Sequence[Scaling], flat: Sequence[Scaling]) -> list[Text]:
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
