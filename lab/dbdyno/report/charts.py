"""All charts of a report, in the order of the page, and its card. A chart is one file and one line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode
from rich.cells import cell_len

from dbdyno import result_text
from dbdyno.languages import IN_ENGLISH, Translate
from dbdyno.report import formatting
from dbdyno.report.chart import INK, MUTED, Chart
from dbdyno.report.chart_parts import chart_of, loads_of
from dbdyno.report.distribution_chart import distribution_charts
from dbdyno.report.effect_chart import effect_charts
from dbdyno.report.load_chart import load_chart, scaling_chart
from dbdyno.report.model import LOADS_MAX, Report, value
from dbdyno.report.time_chart import stall_charts, time_charts
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, compose_count

# Half of the size in pixels, because pictures have two pixels for each unit.
WIDTH, HEIGHT = 600, 315
MARGIN = 34
# The colours of report.css: tone and background.
TONES = {
    "faster": ("#00614a", "#e3f4ee"),
    "slower": ("#a03c00", "#fdeee4"),
    "equivalent": ("#004f80", "#e4f0f8"),
    "not-comparable": ("#8c1d40", "#fae8ee"),
    "neutral": ("#4b5563", "#eef1f5"),
}
# Cells in a line of the sentence, of which a wide letter takes two, and lines of it.
LINE, LINES = 70, 4


@debug_mode(False)
def all_charts(report: Report, translate: Translate = IN_ENGLISH) -> list[Chart]:
    """Every chart of the report; of a suite only the card, and a workload without results has none.

    Rendering translates their texts, `translate` those whose length matters.
    """
    if report.verdict.is_summed_up:
        # Hundreds of charts of single tests would say less than the tables of the suite.
        return card(report, translate)
    charts: list[Chart] = []
    for number, comparison in enumerate(report.verdict.comparisons):
        charts += effect_charts(report, comparison, report.blocks[number], number)
    for workload in report.workloads:
        results = [
            trial
            for trial in report.trials
            if trial.workload == workload and value(trial, "throughput") is not None
        ]
        for metric in ("throughput", report.experiment.latency_metric):
            if any(value(trial, metric) is not None for trial in results):
                charts.append(load_chart(report, workload, results, metric))
        if results and (entries := report.scaling_rows(workload)):
            charts.append(scaling_chart(report, workload, results, entries))
        charts += distribution_charts(report, workload, some_loads(results))
        if with_intervals := some_loads([trial for trial in results if trial.seconds]):
            charts += time_charts(report, workload, with_intervals)
        if with_ticks := some_loads([trial for trial in results if trial.ticks]):
            charts += stall_charts(report, workload, with_ticks)
    return [*charts, *card(report, translate)]


def some_loads(trials: Sequence[MeasuredTrial]) -> list[MeasuredTrial]:
    """The trials at no more than LOADS_MAX loads: the lowest, the highest, and some between them."""
    loads = loads_of(trials)
    if len(loads) > LOADS_MAX:
        loads = [loads[round(index * (len(loads) - 1) / (LOADS_MAX - 1))] for index in range(LOADS_MAX)]
    return [trial for trial in trials if trial.point.value in loads]


def card(report: Report, translate: Translate) -> list[Chart]:
    """The verdict as a picture for chats: question, word, change with its interval, and the sentence. Its
    size is the one that previews of links show uncut, 1,200 x 630 pixels.

    It has the first verdict, or the first suite, and counts the further ones; [] without one.
    `translate` is needed because the length of a translation decides where lines break.
    """
    sentences = report.verdict.sentences
    if not sentences or sentences[0][0].verdict == "unfinished":
        return []
    judged, entry = sentences[0]
    factors = getattr(judged, "factors", ())
    suites = report.verdict.suites if report.verdict.is_summed_up else None
    # A suite has no verdict of its own.
    tone, soft = TONES["neutral" if suites else formatting.css_class(judged.verdict, factors)]
    estimate = formatting.estimate(judged)
    has_effect = (
        estimate != result_text.MISSING and judged.verdict not in result_text.WITHOUT_EFFECT and not suites
    )
    statement = suites[0].sentence if suites else judged.statement
    text = translate(statement)
    if more := len(suites or sentences) - 1:
        text += translate(
            compose_count(more, " (and {number} more verdict)", " (and {number} more verdicts)")
        )
    interval = compose(
        "{metric_name}, {confidence} interval {interval}",
        metric_name=formatting.metric_name(judged.metric),
        confidence=formatting.confidence(judged.confidence),
        interval=formatting.interval(judged),
    )
    title, *more_lines = _wrapped(report.experiment.question or report.experiment.name, 66)
    title = f"{title} …" if more_lines else title
    layers = [
        chart_of([{}])
        .mark_rect(color=soft, cornerRadius=0)
        .encode(x=alt.value(0), x2=alt.value(WIDTH), y=alt.value(0), y2=alt.value(HEIGHT)),
        chart_of([{}])
        .mark_rect(color=tone)
        .encode(x=alt.value(0), x2=alt.value(9), y=alt.value(0), y2=alt.value(HEIGHT)),
        _text(title, 44, 15, MUTED),
        *([] if suites else [_text(translate(formatting.heading(entry)).upper(), 86, 17, tone, bold=True)]),
        *([_text(estimate, 142, 54, tone, bold=True), _text(interval, 172, 14, MUTED)] if has_effect else []),
        _text(_wrapped(text), 208, 15, INK),
        _text("dbdyno", HEIGHT - 16, 12, MUTED),
    ]
    return [
        Chart(
            name="card",
            title=compose("Verdict"),
            description=statement,
            caption="",
            specification=alt.layer(*layers).properties(width=WIDTH, height=HEIGHT),
            in_page=False,
            padding=0,
        )
    ]


def _wrapped(text: str, width: int = LINE) -> list[str]:
    """The text in lines of at most `width` cells; the last one says whether more follows."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], f"{lines[LINES - 1]} …"]


def _text(text: str | list[str], y: int, size: int, color: str, *, bold: bool = False) -> Any:
    return (
        chart_of([{}])
        .mark_text(
            align="left",
            baseline="alphabetic",
            fontSize=size,
            color=color,
            fontWeight="bold" if bold else "normal",
            text=text,
            lineHeight=21,
        )
        .encode(x=alt.value(MARGIN), y=alt.value(y))
    )
