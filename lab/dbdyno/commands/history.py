"""`dbdyno history EXPERIMENT`: when an effect has changed over the stored runs of an experiment.

Standard output gets a table and the changes of each variant under each workload; standard error the runs that
have no value. The exit code is 1 if a change is an alert: a comparison has confirmed it since the newest run.
Else it is that of the first comparison that had no answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from dbdyno import result_text
from dbdyno.commands.choices import TextFormat
from dbdyno.commands.compare import Source, measure
from dbdyno.commands.disclosure import agree
from dbdyno.commands.option_document import as_toml
from dbdyno.commands.stored_run import judge_if_needed, open_run
from dbdyno.design.confirming import confirming_document, confirming_experiment
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.languages import Translator, translator
from dbdyno.problem import ExitCode, Problem
from dbdyno.report import formatting
from dbdyno.run.stopping import finished_blocks
from dbdyno.runs.comparable import side
from dbdyno.runs.history import CONFIRMING_RUNS, SUFFIX, Night, confirmed_runs
from dbdyno.runs.history import history as make_history
from dbdyno.store import Run, StoreProblem
from dbdyno.store.listing import began, is_running, list_runs
from dbdyno.store.run import run_order
from dbdyno.store.several_runs import ExcludedRun, History, HistoryChange, HistorySeries
from dbdyno.terminal.console import Column, SafeConsole, fit, heading, line, print_text, result_console
from dbdyno.terminal.messages import Output, print_problem
from dbdyno.terminal.streams import on_standard_error
from dbdyno.text import compose, join

# Rows of a table; a spark line shows all runs.
ROWS = 12
_HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    results: Path
    limit: int
    confirm: bool
    # Do not ask before a stored experiment runs.
    yes: bool
    resume: bool
    share: bool
    accept_changes: bool
    language: str
    output: TextFormat


@dataclass(frozen=True)
class Stored:
    """The judged runs of an experiment and of its confirmations, the oldest first, and their history."""

    runs: dict[int, Run]
    history: History


def history(name: str, options: Options) -> None:
    """Print the history of an experiment; with `confirm`, compare the servers around each candidate first.
    Raises Problem; exits with 1 if a change is an alert.
    """
    for name_of_option, is_set in (("--resume", options.resume), ("--yes", options.yes)):
        if is_set and not options.confirm:
            raise Problem(f"{name_of_option} has no effect without --confirm", "Add --confirm")
    stored = _read(name, options)
    code: int = ExitCode.DONE
    if options.confirm:
        with on_standard_error():
            code = _confirm_all(stored, options)
        stored = _read(name, options)
    translate = translator(options.language)
    if options.output is TextFormat.JSON:
        document = stored.history.model_dump(mode="json")
        print(json.dumps(translate.inside(document), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _show(stored.history, translate)
    sys.stdout.flush()
    raise typer.Exit(ExitCode.WORSE if stored.history.is_alert else code)


def _read(name: str, options: Options) -> Stored:
    """The history of the stored runs. Raises Problem."""
    runs, excluded = _runs(name, options, limit=options.limit)
    if not runs:
        raise Problem(
            f"there is no finished run of {name} below {options.results}",
            "Choose a folder with --results DIR (dbdyno list shows the runs)",
        )
    nights = [_night(number, run) for number, run in runs.items()]
    experiment = nights[-1].side.experiment
    if len(experiment.variants) < 2 or experiment.factors:
        raise Problem(
            f"{name} does not compare variants with a baseline",
            "A history needs an experiment whose first variant is the reference version",
        )
    of_neighbours, _ = _runs(f"{name}{SUFFIX}", options, limit=None)
    try:
        document = make_history(nights, [_night(number, run) for number, run in of_neighbours.items()])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "otava":
            raise
        raise Problem(
            "dbdyno history needs the Python package apache-otava, which is not installed",
            "pip install 'dbdyno[history]'",
        ) from error
    listed = sorted([*excluded, *document.excluded], key=lambda one: one.run)
    return Stored(runs, document.model_copy(update={"excluded": listed}))


def _runs(name: str, options: Options, *, limit: int | None) -> tuple[dict[int, Run], list[ExcludedRun]]:
    """Number -> run, the oldest first, of the newest runs that have ended, judged; and the others."""
    runs: dict[int, Run] = {}
    excluded: list[ExcludedRun] = []
    for path in reversed(list_runs(options.results, name)[:limit]):
        number, _ = run_order(path)
        try:
            run = open_run(options.results, path, accept_changes=options.accept_changes)
            if is_running(run):
                excluded.append(ExcludedRun(run=number, reason=compose("running")))
                continue
            with run.reading():
                judge_if_needed(run, options.language)
            runs[number] = run
        except StoreProblem as problem:
            reason = compose("cannot be read: {text}", text=problem.text)
            excluded.append(ExcludedRun(run=number, reason=reason))
    return runs, excluded


def _night(number: int, run: Run) -> Night:
    time = began(run.path)
    with run.reading():
        of_run = side(run, compose("run {number}", number=number))
    return Night(number, "" if time is None else f"{time:%Y-%m-%dT%H:%M:%S}", of_run)


def _confirm_all(stored: Stored, options: Options) -> int:
    """Compare the servers around each candidate. Returns the exit code of the first comparison that has no
    answer; 0 if all have one.
    """
    codes: list[int] = []
    for series in stored.history.series:
        for change in series.changes:
            if change.state != "candidate":
                continue
            try:
                codes.append(_confirm(series, change, stored.runs, options))
            except Problem as problem:
                print_problem(problem)
                codes.append(problem.exit_code)
            except typer.Exit as ended:
                # The reason is printed.
                if ended.exit_code == ExitCode.INTERRUPTED:
                    raise
                codes.append(ended.exit_code)
    return next(filter(None, codes), ExitCode.DONE)


def _confirm(series: HistorySeries, change: HistoryChange, runs: dict[int, Run], options: Options) -> int:
    """Compare the servers around a candidate in so many runs as the confirmation lacks. Returns the exit code
    of the first one without a result; 0 if all have one.
    """
    before, after = runs[change.surely_before], runs[change.surely_after]
    recent = [run for number, run in runs.items() if number in {point.run for point in series.points}]
    experiment = confirming_experiment(series, change, before, after, recent)
    document = confirming_document(experiment, before, after)
    begun = _begun(experiment, options.results) if options.resume else None
    print(change.sentence, file=sys.stderr)
    # Another user who can write to the folder of results may have written this experiment.
    agree(begun or experiment, str(after.path / "experiment.toml"), yes=options.yes)
    source = Source(Path(f"{experiment.name}.toml"), content=as_toml(document).encode())
    code: int = ExitCode.DONE
    for number in range(len(change.confirming_runs) + 1, CONFIRMING_RUNS + 1):
        print(f"confirmation: run {number} of {CONFIRMING_RUNS}", file=sys.stderr)
        _, code = measure(
            source,
            begun or experiment,
            options.results,
            share=options.share,
            output=Output(language=options.language),
            resume=begun is not None,
        )
        if code != ExitCode.DONE:
            break
        begun = None
    return code


def _begun(experiment: Experiment, results: Path) -> Experiment | None:
    """The experiment of the newest confirmation, if it compares the same servers and is not finished: since
    it began, other runs may have changed the number of its blocks.
    """
    stored = (path for path in list_runs(results, experiment.name) if (path / "experiment.json").is_file())
    if (path := next(stored, None)) is None:
        return None
    run = Run.open(path)
    with run.reading():
        begun = run.experiment()
        is_finished = len(finished_blocks(run)) >= begun.design.blocks
    titles = [[one.title for one in of.workloads] for of in (begun, experiment)]
    is_same = confirmed_runs(begun) == confirmed_runs(experiment) and titles[0] == titles[1]
    return begun if is_same and not is_finished else None


def _show(made: History, translate: Translator) -> None:
    err = SafeConsole(stderr=True, highlight=False)
    for one in made.excluded:
        text = compose("not used: run {run}: {reason}", run=one.run, reason=one.reason)
        print_text(err, translate(text), indent=2)
    console = result_console()
    for series in made.series:
        _show_series(console, made, series, translate)
    changes = [change for series in made.series for change in series.changes]
    for change in changes:
        print_text(console, translate(change.sentence), "bold" if change.state == "confirmed" else "")
        for also in change.also:
            print_text(console, translate(compose("  also: {text}", text=also)), indent=4)
    if not changes:
        print_text(console, translate(compose("No change was found.")), "bold")
    elif any(change.state == "candidate" for change in changes):
        text = compose(
            "A candidate is no alert until dbdyno history {name} --confirm has compared both sides.",
            name=made.experiment,
        )
        print_text(console, translate(text))


def _show_series(console: Console, made: History, series: HistorySeries, translate: Translator) -> None:
    """The heading, a spark line of all runs, and a table of the newest."""
    reference = join("", (made.baseline, f" ({made.reference})" if made.reference else ""))
    title = compose(
        "{variant} against {reference}, {workload}, {metric}: {number} runs",
        variant=series.variant,
        reference=reference,
        workload=series.workload,
        metric=metric_text(series.metric),
        number=len(series.points),
    )
    print_text(console, translate(title))
    console.print(f"  {spark_line([point.effect_percent or 0.0 for point in series.points])}", soft_wrap=True)
    marks = {change.after for change in series.changes}
    columns = [
        Column(translate(compose("run")), right=True),
        Column(translate(compose("date"))),
        Column(translate(compose("change")), right=True),
        Column(translate(compose("server"))),
    ]
    rows = [
        (
            f"{'*' if point.run in marks else ''}{point.run}",
            point.began[:10] or result_text.MISSING,
            translate(formatting.estimate_and_interval(point)),
            point.server or result_text.MISSING,
        )
        for point in series.points[-ROWS:]
    ]
    fit(columns, rows)
    for text in (heading(columns), *(line(columns, row) for row in rows)):
        console.print(f"  {text}", soft_wrap=True)
    if marks:
        print_text(console, translate(compose("  * first run after a change")))


def spark_line(values: Sequence[float]) -> str:
    """A block for each value, whose height is its place between the smallest and the largest."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    scale = (len(_HEIGHTS) - 1) / (high - low) if high > low else 0.0
    return "".join(_HEIGHTS[round((value - low) * scale)] for value in values)
