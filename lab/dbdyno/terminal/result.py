"""Prints the design of a comparison before the run, and its result after the run."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

from dbdyno.experiment.differences import describe_differences
from dbdyno.experiment.metrics import is_latency
from dbdyno.experiment.model import Experiment, ServerSpec, Workload
from dbdyno.experiment.slices import describe_slices
from dbdyno.finding import LEVELS, SEVERITIES, Finding
from dbdyno.languages import IN_ENGLISH, Translator, translator
from dbdyno.problem import Problem
from dbdyno.report import formatting
from dbdyno.report import writing as report
from dbdyno.report.model import judgement_texts
from dbdyno.report.tables import as_json, background_rows
from dbdyno.run.pilot import describe_plan
from dbdyno.run.warmup import describe_probe, has_warmup_trials, length_s
from dbdyno.say.caveats import code_of
from dbdyno.say.wording import join_words
from dbdyno.store import Run
from dbdyno.store.endings import ended_text, read_endings
from dbdyno.store.judgement import has_ended
from dbdyno.store.listing import is_running
from dbdyno.store.run import JudgeFiles
from dbdyno.store.verdict import Suite, VerdictFile, caveats_text
from dbdyno.terminal.console import SafeConsole, print_text, result_console
from dbdyno.terminal.messages import Output, exhausted_resource, is_verbose, open_page
from dbdyno.terminal.tables import result_lines, suite_lines, table_note
from dbdyno.text import compose, compose_count, join

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
    objective = load.latency_objective
    capacity = f", to find the capacity while {objective.text()}" if objective else ""
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
        *(
            f"  with      {workload.title}: background load {background.title}, {background.load_text}"
            for workload in experiment.workloads
            for background in experiment.backgrounds(experiment.variants[0], workload.title)
        ),
        f"  load      {points} over {_TRANSPORTS[load.transport]}{shape}{capacity}; "
        f"{read}per trial {warmup}, measurement {load.duration_s:g} s",
        *([f"  rates     {describe_probe(experiment)}"] if load.needs_probe and not load.has_rates else []),
        f"  design    {design.end_text}, balanced random order "
        f"(order seed {design.effective_order_seed}); {_STATES[design.state]} before each {groups}; "
        f"workload seed {design.seed}",
        *(
            [f"  slices    {describe_slices(experiment)} in turn, in random order"]
            if design.pairing == "slices"
            else []
        ),
        f"  client    CPUs {experiment.client.cpus or 'any'}, {describe_plan(experiment, workers)}",
        *(f"  variant   {variant.name}: {_server(variant.server)}" for variant in experiment.variants),
        *(f"  differs   {name}: {texts}" for name, texts in _differences(experiment, (), server=False)),
    ]
    for line in lines:
        print_text(console, line, indent=12 if line.startswith(" ") else 0)


def show(run: Run, experiment: Experiment, output: Output = Output()) -> None:
    """Print the result of a judged run: on standard output, whose last lines are the verdict sentences, and
    then the findings on standard error.
    """
    judged, translate = run.judge_files(), translator(output.language)
    assert judged is not None, "the caller has judged the run"
    if output.as_json:
        print(as_json(run), flush=True)
    else:
        if not output.quiet:
            _show_result(judged, experiment, translate)
            for text in judgement_texts(run, judged[0]):
                print_text(result_console(), translate(text))
        _show_verdict(judged[0], translate)
    if not output.quiet:
        show_findings(judged[0], translate)


def _show_result(judged: JudgeFiles, experiment: Experiment, translate: Translator) -> None:
    """Everything above the verdict."""
    verdict, measured, _ = judged
    console = result_console()
    if verdict.is_summed_up:
        for line in suite_lines(verdict, translate, console.width):
            console.print(line, soft_wrap=True)
    else:
        for workload in experiment.workloads:
            for line in result_lines(measured, experiment, verdict, workload.title, translate):
                console.print(line, soft_wrap=True)
            for row in background_rows(measured.trials, experiment, workload.title):
                print_text(console, translate(row.sentence), indent=2)
        _show_reasons(judged, experiment, translate)
    if verdict.family.text:
        print_text(console, translate(verdict.family.text))
    for sentence in verdict.gate.sentences if verdict.gate else ():
        print_text(console, translate(sentence))
    if experiment.ties_latency and any(map(is_latency, experiment.metrics)):
        print_text(console, translate(formatting.TIED))
    if not verdict.is_summed_up:
        for _, entry in verdict.sentences:
            for sentence in formatting.further_sentences(entry):
                print_text(console, translate(sentence))


def _show_reasons(judged: JudgeFiles, experiment: Experiment, translate: Translator) -> None:
    """What the column "change" means, why the variants differ, and in what."""
    verdict, _, explained = judged
    console = result_console()
    if verdict.comparisons:
        print_text(console, translate(table_note(experiment, verdict)), "dim")
    for comparison in explained.comparisons:
        changed = [measure.sentence for measure in comparison.measures if measure.significant]
        for sentence in changed[:MAX_REASONS]:
            text = compose("why ({workload}): {sentence}", workload=comparison.workload, sentence=sentence)
            print_text(console, translate(text), indent=2)
    for name, texts in _differences(experiment, verdict.checks, server=True):
        print_text(
            console, translate(compose("what differs: {name}: {texts}", name=name, texts=texts)), indent=2
        )


def _show_verdict(verdict: VerdictFile, translate: Translator) -> None:
    """Print the verdict sentences of a judged run on standard output."""
    console = result_console()
    sentences = [
        (entry.sentence, []) if isinstance(entry, Suite) else (entry.statement, entry.caveats)
        for entry in verdict.summary
    ]
    if verdict.factors and not is_verbose():
        # One line of all factors; each has its sentence with --verbose and in the report.
        notes = dict.fromkeys(caveat for entry in verdict.factors for caveat in entry.caveats)
        sentences = [(formatting.factor_ranking(verdict.factors), [*notes])]
    for statement, caveats in sentences:
        if not console.is_terminal:
            # In a log, a verdict is one line.
            print_text(console, translate(join("", (statement, caveats_text(caveats)))), "bold")
            continue
        print_text(console, translate(statement), "bold")
        if caveats:
            width = 10_000 if is_verbose() else console.width
            print_text(console, f"  {_caveats_line(caveats, translate, width)}", indent=2)
    if verdict.factors:
        for line in suite_lines(verdict, translate, console.width):
            console.print(line, soft_wrap=True)
    # Flush before the report is written, whose charts may fail.
    sys.stdout.flush()


def _caveats_line(caveats: Sequence[str], translate: Translator, width: int) -> str:
    """The caveats that fit into one line of `width` cells, and the codes of the others."""
    for number in range(len(caveats), -1, -1):
        codes = dict.fromkeys(map(code_of, caveats[number:]))
        further = [compose("also {codes}", codes=", ".join(codes))] if number and codes else [*codes]
        line = translate(caveats_text([*caveats[:number], *further])).strip()
        # Two cells are left free at the left.
        if cell_len(line) <= width - 2:
            break
    return line


def show_findings(verdict: VerdictFile, translate: Translator = IN_ENGLISH) -> None:
    """Print the stops and warnings of a judged run, the warnings of a code together, and the number of notes,
    on standard error.
    """
    console = SafeConsole(stderr=True, highlight=False)
    # The report has the other notes.
    shown = [
        check
        for check in verdict.checks
        if check.level != "note" or check.evidence.get("what") == "unchecked"
    ]
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in sorted(shown, key=lambda entry: LEVELS.index(entry.level)):
        # Every stop has a cause of its own, which the user has to remove.
        text_of_stop = finding.summary if finding.level == "stop" else ""
        groups.setdefault((finding.level, finding.code, finding.override or "", text_of_stop), []).append(
            finding
        )
    for alike in groups.values():
        first = alike[0]
        text = join(" ", (SEVERITIES[first.level], first.summary))
        if more := len(alike) - 1:
            text += compose(" (and {number} more of this code in the report)", number=more)
        print_text(console, translate(text), "bold red" if first.is_blocking else "yellow", indent=2)
        if first.override:
            print_text(console, translate(compose("  overridden: {reason}", reason=first.override)), indent=2)
        elif first.is_blocking:
            print_text(console, translate(join("", ("  ", first.how_to_override))), indent=2)
    if notes := len(verdict.checks) - len(shown):
        text = compose_count(notes, "{number} note in the report", "{number} notes in the report")
        print_text(console, translate(text))


def show_early_end(run: Run, language: str) -> None:
    """Print on standard error why a comparison ended before it had its result, if it did."""
    endings = read_endings(run)
    is_comparison = len(run.experiment().variants) > 1
    if is_comparison and not has_ended(run) and not is_running(run):
        why = ended_text(endings[-1] if endings else None, run.findings())
        text = translator(language)(compose("The run has not finished: {why}", why=why))
        print_text(SafeConsole(stderr=True, highlight=False), text, "yellow", indent=2)


def write_report(run: Run, output: Output = Output()) -> None:
    """Write the report and print its path (not if `output` is quiet), or why there is none, on standard
    error.
    """
    try:
        path = report.write(run, warn_missing_charts, output.language, output.report_folder)
    except Problem as problem:
        print(f"error: no report: {problem.text}", file=sys.stderr)
    except Exception as error:
        resource = exhausted_resource(error)
        why = f"no more {resource}" if resource else f"internal error, {type(error).__name__}"
        print(f"error: no report: {why}: {error}", file=sys.stderr)
    else:
        if not output.quiet:
            print(f"report: {path}", file=sys.stderr)
        if output.opens_report:
            open_page(path.resolve().as_uri())


def warn_missing_charts(reason: str) -> None:
    """Print on standard error why charts are missing."""
    print(f"warning: report.html lacks charts: {reason}", file=sys.stderr)


def _differences(
    experiment: Experiment, findings: Sequence[Finding], *, server: bool
) -> list[tuple[str, str]]:
    """Every variant that differs from the baseline, and what it has and the baseline has not."""
    return [
        (variant.name, join("; ", texts))
        for variant in experiment.variants[1:]
        if (texts := describe_differences(experiment, variant, findings, server=server))
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
