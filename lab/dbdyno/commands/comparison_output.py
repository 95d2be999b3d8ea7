"""Prints the design of a comparison before the run, and its result after the run."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno import report
from dbdyno.commands.console import result_console
from dbdyno.commands.plan import design_text
from dbdyno.commands.resource_limits import exhausted_resource
from dbdyno.experiment.differences import describe_differences
from dbdyno.experiment.metrics import is_latency, metric_text
from dbdyno.experiment.model import Experiment, ServerSpec, Workload
from dbdyno.experiment.slices import describe_slices
from dbdyno.finding import Finding
from dbdyno.judge.wording import join_words
from dbdyno.problem import Problem
from dbdyno.report import formatting
from dbdyno.report.load_table import median_text
from dbdyno.run.pilot import describe_plan
from dbdyno.run.warmup import describe_probe, has_warmup_trials, length_s
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import Effect, VerdictFile

# Maximum number of significant cost changes printed per comparison.
MAX_REASONS = 3
_TRANSPORTS = {"tcp": "TCP", "unix": "a Unix socket"}
# State of the data -> what happens before each group or trial.
_STATES = {
    "restore": "data restored",
    "restart": "server restarted with the data of earlier trials",
    "reset": "tables loaded again",
    "preserve": "data not restored",
}


def describe(
    console: Console, experiment: Experiment, profile: str | None, workers: int | None = None
) -> None:
    """Print the design of the experiment in a few lines; `workers` are those that a pilot has chosen."""
    load, design = experiment.load, experiment.design
    levels = [point.rate or point.connections for point in load.points()]
    unit = "transactions/s" if load.is_open else "connection" if levels == [1] else "connections"
    points = f"{join_words([f'{value:g}' for value in levels])} {unit}"
    if load.needs_probe and not load.has_rates:
        points = "rates of a probe"
    promise = f", to find the capacity while {load.promise.text()}" if load.promise else ""
    warmup = f"warm-up {load.warmup_allowance_s():g} s" + (" (auto)" if load.warmup_s is None else "")
    if has_warmup_trials(experiment):
        warmup = f"warm-up determined by one trial of {length_s(experiment):g} s per variant"
    shape = f", {load.shape.text()}" if load.shape else ""
    read = "all tables are read before each trial, " if load.prewarm == "scan" else ""
    groups = "trial" if design.state_per == "trial" else "group of trials"
    lines = [
        f"{experiment.name}" + (f" ({profile})" if profile else ""),
        *([experiment.question] if experiment.question else []),
        *(f"  workload  {_workload(workload)}" for workload in experiment.workloads),
        f"  load      {points} over {_TRANSPORTS[load.transport]}{shape}{promise}; "
        f"{read}{warmup}, measurement {load.duration_s:g} s",
        *([f"  rates     {describe_probe(experiment)}"] if load.needs_probe and not load.has_rates else []),
        f"  design    {design_text(experiment)}, balanced random order "
        f"(order seed {design.effective_order_seed}); {_STATES[design.state]} before each {groups}; "
        f"workload seed {design.seed}",
        *(
            [f"  slices    {describe_slices(experiment)} in turn, in random order"]
            if design.pairing == "slices"
            else []
        ),
        f"  client    CPUs {experiment.client.cpus or 'any'}, {describe_plan(experiment, workers)}",
        *(f"  variant   {variant.name}: {_server(variant.server)}" for variant in experiment.variants),
        *(f"  differs   {name}: {texts}" for name, texts in _differences(experiment, server=False)),
    ]
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def show(run: Run, experiment: Experiment) -> None:
    """Print the result of a judged run on standard output; the last lines are the verdict sentences."""
    judged = run.judge_files()
    assert judged is not None, "the caller has judged the run"
    verdict, measured, explained = judged
    console = result_console()
    for workload in experiment.workloads:
        console.print(_table(measured, experiment, verdict, workload.title))
    show_findings(verdict)
    for comparison in explained.comparisons:
        changed = [one.sentence for one in comparison.measures if one.significant]
        for sentence in changed[:MAX_REASONS]:
            console.print(Text(f"why ({comparison.workload}): {sentence}"), soft_wrap=True)
    for name, texts in _differences(experiment, server=True):
        console.print(Text(f"what differs: {name}: {texts}"), soft_wrap=True)
    if verdict.family.text:
        console.print(Text(verdict.family.text), soft_wrap=True)
    for gated in verdict.gate.comparisons if verdict.gate else ():
        print(gated.sentence)
    if experiment.ties_latency and any(map(is_latency, experiment.metrics)):
        console.print(Text(formatting.TIED), soft_wrap=True)
    for _, entry in verdict.sentences:
        for sentence in formatting.further_sentences(entry):
            print(sentence)
    show_verdict(verdict)


def show_findings(verdict: VerdictFile) -> None:
    """Print the stops and warnings of a judged run, and the number of notes, on standard output."""
    console = result_console()
    # The report has the other notes.
    shown = [one for one in verdict.checks if one.level != "note" or one.evidence.get("what") == "unchecked"]
    for finding in shown:
        _print_finding(console, finding)
    notes = len(verdict.checks) - len(shown)
    if notes:
        console.print(f"{notes} note{'s' if notes > 1 else ''} in the report")


def show_verdict(verdict: VerdictFile) -> None:
    """Print the verdict sentences of a judged run on standard output."""
    for one, _ in verdict.sentences:
        print(one.sentence)
    # Flush before the report is written, whose charts may fail.
    sys.stdout.flush()


def write_report(run: Run) -> None:
    """Write the report and print its path, or why there is none, on standard error."""
    try:
        path = report.write(run, warn_missing_charts)
    except Problem as problem:
        print(f"error: no report: {problem.text}", file=sys.stderr)
    except Exception as error:
        resource = exhausted_resource(error)
        why = f"no more {resource}" if resource else f"internal error, {type(error).__name__}"
        print(f"error: no report: {why}: {error}", file=sys.stderr)
    else:
        print(f"report: {path}", file=sys.stderr)


def warn_missing_charts(reason: str) -> None:
    """Print on standard error why charts are missing."""
    print(f"warning: report.html lacks charts: {reason}", file=sys.stderr)


def _differences(experiment: Experiment, *, server: bool) -> list[tuple[str, str]]:
    """Every variant that differs from the baseline, and what it has and the baseline has not."""
    return [
        (variant.name, "; ".join(texts))
        for variant in experiment.variants[1:]
        if (texts := describe_differences(experiment, variant, server=server))
    ]


def _workload(workload: Workload) -> str:
    name = f"{workload.label} ({workload.name})" if workload.label else workload.name
    return f"{name}, {workload.data_text()}"


def _server(server: ServerSpec) -> str:
    settings = [f"{name} = {_setting(value)}" for name, value in server.variables.items()]
    settings += [*server.arguments, *([str(server.config)] if server.config else [])]
    where = server.url or f"{server.product} on CPUs {server.cpus or 'any'}"
    return ", ".join([where, *settings])


def _setting(value: str | int | float | bool) -> str:
    return ("ON" if value else "OFF") if isinstance(value, bool) else str(value)


def _table(measured: MeasuredFile, experiment: Experiment, verdict: VerdictFile, workload: str) -> Table:
    """A row for each variant and load: medians over the blocks, and the effect with its interval."""
    title = workload if len(experiment.workloads) > 1 else None
    comparisons = {entry.variant: entry for entry in verdict.comparisons if entry.workload == workload}
    caption = formatting.CHANGE_NOTE if comparisons else None
    if caption and experiment.design.metrics:
        caption = caption.replace("change", f"change of {metric_text(experiment.metrics[0])}", 1)
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", caption=caption, caption_justify="left"
    )
    table.add_column("variant")
    confidence = next((formatting.ci_heading(entry.points) for entry in comparisons.values()), "CI")
    promise = experiment.load.promise
    metric, percentile = (promise.metric, promise.percentile) if promise else ("latency_p95_us", "p95")
    load = "rate/s" if experiment.load.is_open else "connections"
    for name in (load, "transactions/s", f"{percentile} ms", "change", confidence):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    trials = [trial for trial in measured.trials if trial.workload == workload]
    for variant in experiment.variants:
        comparison = comparisons.get(variant.name)
        of_variant = [trial for trial in trials if trial.variant == variant.name]
        for point in experiment.load.points():
            at = point.as_dict()
            of_point = [trial for trial in of_variant if trial.at == at]
            medians = [median_text(of_point, figure) for figure in ("throughput", metric)]
            entry = next((one for one in comparison.points if one.at == at), None) if comparison else None
            effect = _effect(entry, entry, verdict) if entry else ("baseline", "", "")
            table.add_row(Text(variant.name), f"{next(iter(at.values())):g}", *medians, *effect)
        one = comparison or next(iter(comparisons.values()), None)
        title, *values = formatting.combined(one) if one else ("", "", "")
        capacity_a, capacity_b = (value.removesuffix(" /s") for value in values)
        if comparison and len(comparison.points) > 1:
            effect = _effect(comparison.curve, comparison.points[0], verdict)
            table.add_row(Text(variant.name), title, capacity_b, "", *effect)
        elif not comparison and capacity_a:
            table.add_row(Text(variant.name), title, capacity_a, "", "baseline", "", "")
    return table


def _effect(entry: Effect, default: Effect, judged: VerdictFile) -> tuple[str, str, str]:
    """Change, interval and verdict; with ASCII hyphens as minus signs, for scripts that parse them."""
    change, interval = formatting.estimate(entry), formatting.interval(entry, default.confidence)
    word = formatting.verdict(entry.verdict, judged.checks)
    return change.replace(formatting.MINUS, "-"), interval.replace(formatting.MINUS, "-"), word


def _print_finding(console: Console, finding: Finding) -> None:
    text = f"{formatting.SEVERITIES[finding.level]} {finding.summary}"
    console.print(Text(text, style="bold red" if finding.is_blocking else "yellow"), soft_wrap=True)
    if finding.override:
        console.print(Text(f"  overridden: {finding.override}"), soft_wrap=True)
