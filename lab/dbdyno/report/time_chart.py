"""The charts over time, one per load: throughput with the median of the blocks and their range; and stalls,
in steps of 100 ms with the longest gap of each variant.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import altair as alt

from dbdyno.report import formatting
from dbdyno.report.chart import HALF_WIDTH, MUTED, SHADE, Chart
from dbdyno.report.chart_parts import band_and_line, chart_of, color, dash, each_load, layered
from dbdyno.report.model import Report
from dbdyno.report.tables import STALLS, longest_gaps
from dbdyno.result_text import blocks_count
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

HEIGHT = 190


def time_charts(report: Report, workload: str, trials: Sequence[MeasuredTrial]) -> Iterator[Chart]:
    """The charts of one workload. Every trial must have recorded intervals."""
    for number, of_load in each_load(trials):
        yield _chart(report, workload, of_load, number)


def _chart(report: Report, workload: str, trials: Sequence[MeasuredTrial], number: int) -> Chart:
    rows = _rows(trials)
    blocks = max(row["blocks"] for row in rows)
    starts = [trial.window.start_us / 1e6 for trial in trials if trial.window]
    start, end = statistics.median(starts) if starts else 0.0, max(row["s"] for row in rows)
    scale = alt.Scale(domain=[0, math.ceil(end)], nice=False)
    axis = alt.Axis(title=compose("seconds"), grid=False, tickCount=6)
    x = alt.X("s:Q", scale=scale, axis=axis)
    y_axis = alt.Axis(title=compose("transactions/s"), tickCount=5, minExtent=48)
    curves = band_and_line(report, rows, "tps", x=x, scale=alt.Scale(zero=True), axis=y_axis)
    shade = (
        chart_of([{"from": 0, "to": start}])
        .mark_rect(color=SHADE)
        .encode(x=alt.X("from:Q", axis=axis, scale=scale), x2="to:Q")
    )
    label = (
        chart_of([{"s": 0}])
        .mark_text(
            align="left", baseline="top", dx=4, dy=4, color=MUTED, fontSize=11, text=compose("warm-up")
        )
        .encode(x=x, y=alt.value(0))
    )
    at = formatting.load(*trials[0].point)
    warmup = compose("; shaded: warm-up, not counted") if start > 0 else ""
    return Chart(
        name=f"seconds-{workload}-{number}",
        title=compose("Throughput of {workload} over time, {at}", workload=workload, at=at),
        description=compose(
            "Throughput in every second at {at}, the median over {blocks} of each variant{detail}{warmup}.",
            at=at,
            blocks=blocks_count(blocks),
            detail=compose(" and their range") if blocks > 1 else "",
            warmup=warmup,
        ),
        caption=compose("Lines: medians of the blocks; areas: from the lowest to the highest block")
        + warmup
        + ".",
        specification=layered([*([shade, label] if start > 0 else []), *curves], HALF_WIDTH, HEIGHT),
        width="half",
    )


def _rows(trials: Sequence[MeasuredTrial]) -> list[dict[str, Any]]:
    """For each variant and interval the median over the blocks, and the lowest and highest block.

    Trials have the same intervals, up to some milliseconds, so they are matched by their number.
    """
    rows: list[dict[str, Any]] = []
    for variant in dict.fromkeys(trial.variant for trial in trials):
        series = [trial.seconds for trial in trials if trial.variant == variant]
        for number in range(max(map(len, series))):
            of_block = [entry[number] for entry in series if number < len(entry)]
            rates = [events / ((end_us - start_us) / 1e6) for start_us, end_us, events in of_block]
            rows.append(
                {
                    "variant": variant,
                    "s": statistics.median((start_us + end_us) / 2e6 for start_us, end_us, _ in of_block),
                    "tps": statistics.median(rates),
                    "low": min(rates),
                    "high": max(rates),
                    "blocks": len(rates),
                }
            )
    return rows


def stall_charts(report: Report, workload: str, trials: Sequence[MeasuredTrial]) -> Iterator[Chart]:
    """The charts of one workload. Every trial must have ticks."""
    for number, of_load in each_load(trials):
        yield _stall_chart(report, workload, of_load, number)


def _stall_chart(report: Report, workload: str, trials: Sequence[MeasuredTrial], number: int) -> Chart:
    rows = [row for variant in report.variants for row in _step_rows(variant, trials)]
    width_s = max(trial.ticks.width_us for trial in trials if trial.ticks) / 1e6
    end = max(row["s"] for row in rows)
    axis = alt.Axis(title=compose("seconds of the measurement"), grid=False, tickCount=6)
    x = alt.X("s:Q", scale=alt.Scale(domain=[0, math.ceil(end)], nice=False), axis=axis)
    y_axis = alt.Axis(title=compose("transactions/s"), tickCount=5, minExtent=48)
    y = alt.Y("tps:Q", scale=alt.Scale(zero=True), axis=y_axis)
    low = alt.Y("low:Q", scale=alt.Scale(zero=True), axis=y_axis)
    encodings = {"x": x, "color": color(report), "strokeDash": dash(report)}
    lowest = chart_of(rows).mark_line(strokeWidth=1, opacity=0.45).encode(y=low, **encodings)
    line = chart_of(rows).mark_line(strokeWidth=1.5).encode(y=y, **encodings)
    gaps = list(_gap_rows(trials))
    marks = (
        chart_of(gaps)
        .mark_rule(strokeWidth=6, opacity=0.7)
        .encode(x=alt.X("s:Q", axis=axis), x2="end:Q", y=alt.datum(0), color=color(report))
    )
    at = formatting.load(*trials[0].point)
    return Chart(
        name=f"{STALLS}{workload}-{number}",
        title=compose("Stalls of {workload}, {at}", workload=workload, at=at),
        description=compose(
            "Throughput in steps of {width:g} s at {at}: the median and the lowest of the blocks of each "
            "variant; the longest gap without a completed transaction is marked.",
            width=width_s,
            at=at,
        ),
        caption=compose(
            "Steps of {width:g} s. Lines: median of the blocks; thin lines: lowest block; thick marks at 0: "
            "the longest gap of each variant without a completed transaction.",
            width=width_s,
        ),
        specification=layered([lowest, line, *([marks] if gaps else [])], HALF_WIDTH, HEIGHT),
        width="half",
    )


def _step_rows(variant: str, trials: Sequence[MeasuredTrial]) -> Iterator[dict[str, Any]]:
    """For each step of a variant the median and the lowest of its blocks."""
    series = [trial.ticks for trial in trials if trial.variant == variant and trial.ticks]
    for number in range(min((len(entry.events) for entry in series), default=0)):
        rates = [entry.events[number] / (entry.width_us / 1e6) for entry in series]
        yield {
            "variant": variant,
            "s": (number + 0.5) * series[0].width_us / 1e6,
            "tps": median(rates),
            "low": min(rates),
        }


def _gap_rows(trials: Sequence[MeasuredTrial]) -> Iterator[dict[str, Any]]:
    for variant, (trial, gap_us) in longest_gaps(trials).items():
        start_us = trial.figures.longest_gap_start_us if trial.figures else None
        if start_us is not None and trial.ticks is not None:
            start_s = max(0, start_us - trial.ticks.start_us) / 1e6
            yield {"variant": variant, "s": start_s, "end": start_s + gap_us / 1e6}
