"""The charts of stalls: throughput in steps of 100 ms, one per load, and the longest gap of each variant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import altair as alt

from dbdyno.report import formatting
from dbdyno.report.chart import HALF_WIDTH, Chart
from dbdyno.report.chart_parts import chart_of, color, dash, layered, loads_of
from dbdyno.report.model import Report
from dbdyno.report.stalls import STALLS, longest_gaps
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose

HEIGHT = 190


def stall_charts(report: Report, workload: str, trials: Sequence[MeasuredTrial]) -> Iterator[Chart]:
    """The charts of one workload. Every trial must have ticks."""
    for number, load in enumerate(loads_of(trials)):
        yield _chart(report, workload, [one for one in trials if one.point.value == load], number)


def _chart(report: Report, workload: str, trials: Sequence[MeasuredTrial], number: int) -> Chart:
    rows = [row for variant in report.variants for row in _rows(variant, trials)]
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
        name=f"{STALLS}{workload}-{number + 1}",
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


def _rows(variant: str, trials: Sequence[MeasuredTrial]) -> Iterator[dict[str, Any]]:
    """For each step of a variant the median and the lowest of its blocks."""
    series = [one.ticks for one in trials if one.variant == variant and one.ticks]
    for number in range(min((len(one.events) for one in series), default=0)):
        rates = [one.events[number] / (one.width_us / 1e6) for one in series]
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
