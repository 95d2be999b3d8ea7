"""A judged run as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from urllib.parse import quote

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.report import formatting
from dbdyno.report.chart import Chart
from dbdyno.report.load_table import COLUMNS as COLUMNS_OF_LOADS
from dbdyno.report.load_table import load_rows
from dbdyno.report.model import Report, gather, value
from dbdyno.report.page import design_rows
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Comparison, Effect

COLUMNS = (
    "trial", "block", "variant", "workload", "unit", "level", "status", "failure", "failed_by",
    "throughput_per_s", "latency_mean_us", "latency_p50_us", "latency_p90_us", "latency_p95_us",
    "latency_p99_us", "latency_p999_us", "latency_max_us", "lower_bound_of", "events", "errors_per_1000",
    "dropped", "backlog",
)  # fmt: skip
# Special characters of Markdown.
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def as_json(run: Run) -> str:
    """verdict.json. Raises StoreProblem if the run was not judged."""
    return json.dumps(gather(run).verdict.model_dump(mode="json"), indent=1, ensure_ascii=False)


def as_csv(run: Run) -> str:
    """One line per planned trial. Times are in microseconds.

    The columns of a trial without a result are empty. If its server failed, its throughput is 0, so that an
    average over the column includes the failure.
    """
    report = gather(run)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    # Metrics of design.metrics that no column has.
    further = [one for one in report.experiment.metrics if one not in (THROUGHPUT, *COLUMNS)]
    columns = (*COLUMNS, *further)
    writer.writerow(columns)
    for trial in report.trials:
        plan = [trial.index + 1, trial.block + 1, trial.variant, trial.workload]
        load = [trial.point.unit, f"{trial.point.value:g}"]
        status = [_status(trial), trial.failure or "", trial.failed_by or ""]
        throughput = value(trial, "throughput")
        figures = {
            **({**asdict(trial.figures), **trial.figures.percentiles} if trial.figures else {}),
            "throughput_per_s": "" if throughput is None else throughput,
            "lower_bound_of": " ".join(trial.figures.censored) if trial.figures else "",
        }
        values = [figures.get(column, "") for column in columns[len(plan) + len(load) + len(status) :]]
        writer.writerow([*plan, *load, *status, *values])
    return text.getvalue().rstrip("\n")


def _status(trial: MeasuredTrial) -> str:
    if trial.failure is None:
        return "done"
    return "not-run" if trial.failed_by == "not-run" else "failed"


def as_markdown(report: Report, pictures: Sequence[Chart] = ()) -> str:
    """Design, verdicts, a table for each comparison, and findings, for a ticket or a release note; it
    mentions those of the `pictures` in the folder charts/ that show effects.
    """
    lines = [f"# {_escaped(report.experiment.name)}", ""]
    if report.experiment.question:
        lines += [_escaped(report.experiment.question), ""]
    for judged, entry in report.verdict.sentences:
        lines += [f"**{_escaped(judged.sentence)}**", ""]
        lines += [f"- {_escaped(sentence)}" for sentence in formatting.further_sentences(entry)]
        lines += [""] if formatting.further_sentences(entry) else []
    for gated in report.verdict.gate.comparisons if report.verdict.gate else ():
        lines += [_escaped(gated.sentence), ""]
    lines += [_escaped(report.verdict.family.text), ""] if report.verdict.family.text else []
    for chart in pictures:
        if chart.name.startswith("effect-"):
            lines += [f"![{_escaped(chart.title)}](charts/{quote(chart.name)}.png)", ""]
    for comparison in report.verdict.comparisons:
        lines += [*_comparison(report, comparison), "", *_metrics(report, comparison)]
        lines += _second_lines(report, comparison)
    if report.has_tied_latency:
        lines += [_escaped(formatting.TIED), ""]
    for workload in report.workloads:
        lines += _loads(report, workload)
    reasons = [
        f"- {_escaped(change.sentence)}"
        for comparison in report.verdict.comparisons
        for change in report.changes(comparison)[:3]
    ]
    lines += ["Why:", "", *reasons, ""] if reasons else []
    if report.checks:
        lines += ["Warnings:", ""]
        for check in report.checks:
            reason = f" (overridden: {check.override})" if check.override else ""
            lines.append(f"- {formatting.SEVERITIES[check.level]} {_escaped(check.summary + reason)}")
        lines.append("")
    lines += ["Design:", "", *(f"- {_escaped(f'{name}: {text}')}" for name, text in design_rows(report)), ""]
    lines.append(f"Run {report.run_id}, blocks: {report.blocks_text}.")
    return "\n".join(lines)


def _comparison(report: Report, comparison: Comparison) -> list[str]:
    baseline, variant = _escaped(report.verdict.baseline), _escaped(comparison.variant)
    metric = formatting.metric_name(comparison.points[0].metric)
    ci = formatting.ci_heading(comparison.points)
    lines = [
        f"{_escaped(comparison.workload)}, {metric}, medians of the blocks ({formatting.CHANGE_NOTE}):",
        "",
        f"| load | {baseline} | {variant} | change | {ci} | blocks | verdict |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for point in comparison.points:
        ((unit, value),) = point.at.items()
        values = f"{formatting.median(point, 'baseline')} | {formatting.median(point, 'variant')}"
        lines.append(
            f"| {formatting.load(unit, value)} | {values} | {_effect(report, point, point.confidence)} |"
        )
    if len(comparison.points) > 1:
        effect = _effect(report, comparison.curve, comparison.points[0].confidence)
        cells = " ".join(f"| {cell}".rstrip() for cell in formatting.combined(comparison))
        lines.append(f"{cells} | {effect} |")
    if comparison.order:
        lines += [
            "",
            _escaped(formatting.order_effect(comparison, report.verdict.baseline)),
        ]
    return lines


def _loads(report: Report, workload: str) -> list[str]:
    rows = list(load_rows(report, workload))
    if not rows:
        return []
    blocks = ", medians of the blocks" if report.experiment.design.blocks > 1 else ""
    lines = [
        f"{_escaped(workload)}, every variant at every load{blocks}:",
        "",
        f"| variant | load | {' | '.join(COLUMNS_OF_LOADS)} |",
        f"|---|---|{'---:|' * len(COLUMNS_OF_LOADS)}",
    ]
    for row in rows:
        note = f" ({_escaped(row.failure)})" if row.failure else ""
        lines.append(f"| {_escaped(row.variant)} | {row.load}{note} | {' | '.join(row.cells)} |")
    return [*lines, ""]


def _metrics(report: Report, comparison: Comparison) -> list[str]:
    if not comparison.metrics:
        return []
    baseline, variant = _escaped(report.verdict.baseline), _escaped(comparison.variant)
    ci = formatting.ci_heading([one.curve for one in comparison.metrics])
    return [
        f"Further metrics on {_escaped(comparison.workload)}:",
        "",
        f"| metric | load | {baseline} | {variant} | change | {ci} | blocks | verdict |",
        "|---|---|---:|---:|---:|---:|---:|---|",
        *(f"| {' | '.join(row)} |" for row, _ in formatting.metric_rows(comparison, report.checks)),
        "",
    ]


def _second_lines(report: Report, comparison: Comparison) -> list[str]:
    if not comparison.second_lines:
        return []
    baseline, variant = _escaped(report.verdict.baseline), _escaped(comparison.variant)
    ci = formatting.ci_heading(comparison.second_lines)
    return [
        f"Second lines on {_escaped(comparison.workload)} (lower is better):",
        "",
        f"| load | metric | {baseline} | {variant} | change | {ci} | {variant} is |",
        "|---|---|---:|---:|---:|---:|---|",
        *(f"| {' | '.join(row)} |" for row in formatting.second_lines(comparison)),
        "",
    ]


def _effect(report: Report, effect: Effect, confidence: float) -> str:
    """The last four columns of a row; `confidence` is the one in the heading."""
    interval = formatting.interval(effect, confidence)
    verdict = formatting.verdict(effect.verdict, report.checks)
    return f"{formatting.estimate(effect)} | {interval} | {effect.blocks} | {verdict}"


def _escaped(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return " ".join(text.split()).translate(_MARKDOWN)
