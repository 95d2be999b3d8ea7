"""What `dbdyno compare` shows: before the run what will be done, after it what came out."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.experiment.model import Experiment, ServerSpec, Workload
from dbdyno.store import Run
from dbdyno.store.files import read_json

# Lines about why, per comparison.
REASONS = 3
# Wide enough for every column where there is no terminal to ask.
WIDTH = 160


def describe(console: Console, experiment: Experiment, profile: str | None) -> None:
    """One block that says what will be done."""
    load, design = experiment.load, experiment.design
    levels = ", ".join(f"{value:g}" for value in load.rate or load.connections)
    warmup = f"{load.warmup_allowance_s():g} s" + (" (auto)" if load.warmup_s is None else "")
    read = " and of reading all tables" if load.prewarm == "scan" else ""
    lines = [
        f"{experiment.name}" + (f" ({profile})" if profile else ""),
        *([experiment.question] if experiment.question else []),
        *(f"  workload  {_workload(workload)}" for workload in experiment.workloads),
        f"  load      {levels} {'events per second' if load.rate else 'connections'} over {load.transport}, "
        f"{load.duration_s:g} s after {warmup} of warm-up{read}",
        f"  design    {design.blocks} blocks in random order, data: {design.state}, seed {design.seed}",
        f"  client    CPUs {experiment.client.cpus or 'any'}",
        *(f"  variant   {variant.name}: {_server(variant.server)}" for variant in experiment.variants),
    ]
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def show(run: Run, experiment: Experiment, verdict: dict[str, Any], report: Path | None) -> None:
    """The result on standard output; its last lines are the verdict sentences."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    for workload in experiment.workloads:
        console.print(_table(run, experiment, verdict, workload.title))
    for finding in verdict["checks"]:
        if finding["level"] != "note":
            _finding(console, finding)
    notes = sum(finding["level"] == "note" for finding in verdict["checks"])
    if notes:
        console.print(f"{notes} note{'s' if notes > 1 else ''} in the report")
    _why(console, run)
    console.print(Text(f"report: {report}" if report else f"run: {run.path}"), soft_wrap=True)
    for row in verdict.get("factors", ()):
        console.print(Text(row["sentence"]), soft_wrap=True)
    for comparison in verdict["comparisons"]:
        print(comparison["curve"]["sentence"])


def _why(console: Console, run: Run) -> None:
    """What moved most certainly in each comparison, in a few lines."""
    for comparison in read_json(run.path / "explained.json")["comparisons"]:
        moved = [one["sentence"] for one in comparison["measures"] if one["moved"]]
        for sentence in moved[:REASONS]:
            console.print(Text(f"why ({comparison['workload']}): {sentence}"), soft_wrap=True)


def _workload(workload: Workload) -> str:
    name = f"{workload.label} ({workload.name})" if workload.label else workload.name
    return f"{name}, {workload.data_text()}"


def _server(server: ServerSpec) -> str:
    settings = [f"{name} = {_setting(value)}" for name, value in server.variables.items()]
    settings += [*server.arguments, *([str(server.config)] if server.config else [])]
    return f"{server.product} on CPUs {server.cpus or 'any'}" + (
        f", {', '.join(settings)}" if settings else ""
    )


def _setting(value: str | int | float | bool) -> str:
    return ("ON" if value else "OFF") if isinstance(value, bool) else str(value)


def _table(run: Run, experiment: Experiment, verdict: dict[str, Any], workload: str) -> Table:
    """Variant by point: medians over the blocks, and the effect with its interval."""
    open_loop = bool(experiment.load.rate)
    title = workload if len(experiment.workloads) > 1 else None
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("variant")
    for name in ("rate/s" if open_loop else "connections", "tps", "p95 ms", "effect", "interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    trials = read_json(run.path / "measured.json")["trials"]
    for variant in experiment.variants:
        points = _points(verdict, variant.name, workload)
        for point in experiment.load.points():
            at = point.at()
            found = [
                trial["figures"]
                for trial in trials
                if (place := trial["place"])["variant"] == variant.name
                and place["workload"] == workload
                and place["at"] == at
                and trial["figures"]
            ]
            effect = _effect(points, at) if variant is not experiment.variants[0] else ("baseline", "", "")
            table.add_row(Text(variant.name), f"{next(iter(at.values())):g}", *_levels(found), *effect)
    return table


def _points(verdict: dict[str, Any], variant: str, workload: str) -> list[dict[str, Any]]:
    for comparison in verdict["comparisons"]:
        if (comparison["variant"], comparison["workload"]) == (variant, workload):
            points: list[dict[str, Any]] = comparison["points"]
            return points
    return []


def _levels(figures: list[dict[str, Any]]) -> tuple[str, str]:
    """Throughput and 95th percentile: each the median over the blocks; a dash where there is no result."""
    if not figures:
        return "-", "-"
    throughput = median(figure["throughput"] for figure in figures)
    p95_ms = median(figure["latency_p95_us"] for figure in figures) / 1000
    more = "> " if any("latency_p95_us" in figure["censored"] for figure in figures) else ""
    return f"{throughput:,.1f}", f"{more}{p95_ms:,.2f}"


def _effect(points: list[dict[str, Any]], at: dict[str, int | float]) -> tuple[str, str, str]:
    for point in points:
        if point["at"] == at and point["effect_percent"] is not None:
            interval = point["interval_percent"]
            ends = ["∞" if end is None else f"{end:+.1f}" for end in interval] if interval else []
            sign = {"at-least": "> ", "at-most": "< "}.get(point.get("bound", ""), "")
            shown = f"[{', '.join(ends)}]" if ends else "none"
            return f"{sign}{point['effect_percent']:+.1f} %", shown, str(point["verdict"]).replace("-", " ")
    return "-", "-", "no result"


def _finding(console: Console, finding: dict[str, Any]) -> None:
    about = f" {finding['subject']}:" if finding["subject"] else ""
    text = f"{finding['level']} {finding['code']}:{about} {finding['text']}"
    style = "bold red" if finding["level"] == "stop" and not finding["override"] else "yellow"
    console.print(Text(text, style=style), soft_wrap=True)
    if finding["override"]:
        console.print(Text(f"  overridden: {finding['override']}"), soft_wrap=True)
