"""A judged run as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict

from dbdyno.report import words
from dbdyno.report.model import Report, gather, value
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
    """One line per planned trial. Times are microseconds.

    A trial without figures has empty columns, except that its throughput is 0 if its server failed, so that
    an average over the column includes failures.
    """
    report = gather(run)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in report.trials:
        where, (unit, level) = trial.place, trial.place.level
        place = [where.index, where.block, where.variant, where.workload, unit, f"{level:g}"]
        status = [_status(trial), trial.failure or "", trial.failed_by or ""]
        throughput = value(trial, "throughput")
        figures = {
            **(asdict(trial.figures) if trial.figures else {}),
            "throughput_per_s": "" if throughput is None else throughput,
            "lower_bound_of": " ".join(trial.figures.censored) if trial.figures else "",
        }
        values = [figures.get(column, "") for column in COLUMNS[len(place) + len(status) :]]
        writer.writerow([*place, *status, *values])
    return text.getvalue().rstrip("\n")


def _status(trial: MeasuredTrial) -> str:
    if trial.failure is None:
        return "done"
    return "not-run" if trial.failed_by == "not-run" else "failed"


def as_markdown(run: Run) -> str:
    """Verdicts, findings and the table of every comparison, ready for a release note."""
    report = gather(run)
    lines = [f"# {_plain(report.experiment.name)}", ""]
    if report.experiment.question:
        lines += [_plain(report.experiment.question), ""]
    for one, _ in report.verdict.sentences:
        lines += [f"**{_plain(one.sentence)}**", ""]
    lines += [_plain(report.verdict.family.text), ""]
    for comparison in report.verdict.comparisons:
        lines += [*_comparison(report, comparison), ""]
    reasons = [
        f"- {_plain(one.sentence)}"
        for comparison in report.verdict.comparisons
        for one in report.changes(comparison)[:3]
    ]
    lines += ["Why:", "", *reasons, ""] if reasons else []
    if report.checks:
        lines += ["Warnings:", ""]
        for check in report.checks:
            reason = f" (overridden: {check.override})" if check.override else ""
            lines.append(f"- {words.LEVELS[check.level]} {_plain(check.line + reason)}")
        lines.append("")
    lines.append(f"Run {report.run_id}, {report.experiment.design.blocks} blocks planned.")
    return "\n".join(lines)


def _comparison(report: Report, comparison: Comparison) -> list[str]:
    baseline, variant = _plain(report.verdict.baseline), _plain(comparison.variant)
    metric = words.METRICS[comparison.curve.metric]
    lines = [
        f"{_plain(comparison.workload)}, {metric}, medians of the blocks:",
        "",
        f"| load | {baseline} | {variant} | change | {words.ci(comparison.points)} | blocks | verdict |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for point in comparison.points:
        ((unit, level),) = point.at.items()
        values = f"{words.median(point, 'baseline')} | {words.median(point, 'variant')}"
        lines.append(f"| {words.level(unit, level)} | {values} | {_effect(point, point.confidence)} |")
    if len(comparison.points) > 1:
        effect = _effect(comparison.curve, comparison.points[0].confidence)
        lines.append(f"| {words.ALL_LOADS} | | | {effect} |")
    if comparison.order:
        lines += [
            "",
            _plain(words.order_effect(comparison, report.verdict.baseline)),
        ]
    return lines


def _effect(entry: Effect, confidence: float) -> str:
    interval, word = words.interval(entry, confidence), words.verdict(entry.verdict)
    return f"{words.change(entry)} | {interval} | {entry.blocks} | {word}"


def _plain(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return " ".join(text.split()).translate(_MARKDOWN)
