"""A judged run as text for other programs and other pages: Markdown, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json

from dbdyno.report import words
from dbdyno.report.model import Report, gather
from dbdyno.store import Run

COLUMNS = (
    "trial", "block", "variant", "workload", "unit", "level", "status", "failure", "throughput_per_s",
    "latency_mean_us", "latency_p50_us", "latency_p90_us", "latency_p95_us", "latency_p99_us",
    "latency_p999_us", "latency_max_us", "more_than", "events", "errors_per_1000", "dropped", "backlog",
)  # fmt: skip
_FIGURES = {"throughput_per_s": "throughput"}
# What a cell of a Markdown table or a line of its text could be taken for something else by.
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def as_json(run: Run) -> str:
    """verdict.json as it stands. Raises StoreProblem where the run was not judged."""
    return json.dumps(gather(run).verdict, indent=1, ensure_ascii=False)


def as_csv(run: Run) -> str:
    """One line per planned trial; figures are empty where a trial has none. Times are microseconds."""
    report = gather(run)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in report.trials:
        place = [trial.index, trial.block, trial.variant, trial.workload, trial.unit, f"{trial.level:g}"]
        figures = trial.figures or {}
        # Which of the latencies are lower bounds.
        figures = {**figures, "more_than": " ".join(figures.get("censored", ()))}
        values = [figures.get(_FIGURES.get(column, column), "") for column in COLUMNS[8:]]
        writer.writerow([*place, "failed" if trial.failure else "done", trial.failure or "", *values])
    return text.getvalue().rstrip("\n")


def as_markdown(run: Run) -> str:
    """Verdicts, findings and the table of every comparison, ready for a release note."""
    report = gather(run)
    lines = [f"# {_plain(report.experiment.name)}", ""]
    if report.experiment.question:
        lines += [_plain(report.experiment.question), ""]
    for comparison in report.verdict["comparisons"]:
        lines += [f"**{_plain(comparison['curve']['sentence'])}**", ""]
    for number in range(len(report.verdict["comparisons"])):
        lines += [*_comparison(report, number), ""]
    reasons = [
        f"- {_plain(reason['sentence'])}"
        for comparison in report.verdict["comparisons"]
        for reason in report.reasons(comparison)[:3]
    ]
    lines += ["Why:", "", *reasons, ""] if reasons else []
    factors = [f"- {_plain(row['sentence'])}" for row in report.verdict.get("factors", ())]
    lines += ["Factors:", "", *factors, ""] if factors else []
    if report.checks:
        lines += ["Findings:", ""]
        for check in report.checks:
            about = f"{check['subject']}: " if check.get("subject") else ""
            reason = f" (overridden: {check['override']})" if check["override"] else ""
            lines.append(f"- {check['level']} {check['code']}: {_plain(about + check['text'] + reason)}")
        lines.append("")
    lines.append(f"Run {report.run_id}, {report.experiment.design.blocks} blocks planned.")
    return "\n".join(lines)


def _comparison(report: Report, number: int) -> list[str]:
    comparison = report.verdict["comparisons"][number]
    baseline, variant = _plain(report.verdict["baseline"]), _plain(comparison["variant"])
    metric = words.METRICS[comparison["curve"]["metric"]]
    lines = [
        f"{_plain(comparison['workload'])}, {metric}, medians of the blocks:",
        "",
        f"| load | {baseline} | {variant} | change | 95 % interval | blocks | verdict |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for point in comparison["points"]:
        ((unit, level),) = point["at"].items()
        values = [
            words.metric_value(point["metric"], point[arm], censored=words.censored(point, arm))
            for arm in ("baseline", "variant")
        ]
        lines.append(f"| {words.level(unit, level)} | {values[0]} | {values[1]} | {_effect(point)} |")
    if len(comparison["points"]) > 1:
        lines.append(f"| whole curve | | | {_effect(comparison['curve'])} |")
    return lines


def _effect(entry: dict[str, object]) -> str:
    interval = entry["interval_percent"]
    assert interval is None or isinstance(interval, list)
    word = words.VERDICTS[str(entry["verdict"])]
    return f"{words.bounded_change(entry)} | {words.interval(interval)} | {entry['blocks']} | {word}"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return " ".join(text.split()).translate(_MARKDOWN)
