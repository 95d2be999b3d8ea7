"""`dbdyno history EXPERIMENT`: when an effect has changed over the stored runs of an experiment.

Standard output gets a table and the changes of each variant under each workload; standard error the runs that
have no value. The exit code is 1 if a change is an alert: a comparison has confirmed it since the newest run.
Else it is that of the first comparison that had no answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.messages import Output, print_problem
from dbdyno.terminal.streams import on_standard_error

if TYPE_CHECKING:
    from rich.console import Console

    from dbdyno.languages import Translator
    from dbdyno.runs.history import JudgedRun
    from dbdyno.store import Run
    from dbdyno.store.several_runs import ExcludedRun, History, HistoryChange, HistorySeries

# Default of --limit.
RUNS = 50
# Rows of a table; a spark line shows all runs.
ROWS = 12
_HEIGHTS = "▁▂▃▄▅▆▇█"


def history(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="Name of the experiment.", show_default=False)
    ],
    results: options.Results = options.RESULTS,
    limit: Annotated[int, typer.Option(help="Use at most this many runs, the newest.", min=1)] = RUNS,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Compare the servers before and after each candidate change.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="With --confirm: do not ask before a stored experiment runs."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --confirm: continue an interrupted comparison.")
    ] = False,
    share_machine: options.ShareMachine = False,
    accept_changes: options.AcceptChanges = False,
    language: options.Language = "en",
    output_format: options.TextOrJson = "text",
) -> None:
    """Find when an effect changed over the runs of an experiment."""
    from dbdyno.languages import translator

    translate = translator(options.require_language(language))
    for name, is_set in (("--resume", resume), ("--yes", yes)):
        if is_set and not confirm:
            raise Problem(f"{name} has no effect without --confirm", "Add --confirm")
    runs, made = _read(experiment, results, limit, language, accept_changes=accept_changes)
    code: int = ExitCode.DONE
    if confirm:
        confirm_one = partial(
            _confirm,
            runs=runs,
            results=results,
            output=Output(language=language),
            yes=yes,
            resume=resume,
            share=share_machine,
        )
        with on_standard_error():
            code = _confirm_all(made, confirm_one)
        _, made = _read(experiment, results, limit, language, accept_changes=accept_changes)
    if output_format == "json":
        document = made.model_dump(mode="json")
        print(json.dumps(translate.inside(document), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _show(made, translate)
    sys.stdout.flush()
    raise typer.Exit(ExitCode.WORSE if made.is_alert else code)


def _read(
    name: str, results: Path, limit: int, language: str, *, accept_changes: bool
) -> tuple[dict[int, Run], History]:
    """The judged runs of an experiment, the oldest first, and their history. Raises Problem."""
    from dbdyno.runs import history as reading

    runs, excluded = _runs(name, results, limit, language, accept_changes=accept_changes)
    if not runs:
        raise Problem(
            f"there is no finished run of {name} below {results}",
            "Choose a folder with --results DIR (dbdyno list shows the runs)",
        )
    judged_runs = [_judged_run(number, run) for number, run in runs.items()]
    experiment = judged_runs[-1].side.experiment
    if len(experiment.variants) < 2 or experiment.factors:
        raise Problem(
            f"{name} does not compare variants with a baseline",
            "A history needs an experiment whose first variant is the reference version",
        )
    confirming = f"{name}{reading.SUFFIX}"
    of_neighbours, _ = _runs(confirming, results, None, language, accept_changes=accept_changes)
    try:
        document = reading.history(
            judged_runs, [_judged_run(number, run) for number, run in of_neighbours.items()]
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "otava":
            raise
        raise Problem(
            "dbdyno history needs the Python package apache-otava, which is not installed",
            "pip install 'dbdyno[history]'",
        ) from error
    listed = sorted([*excluded, *document.excluded], key=lambda entry: entry.run)
    return runs, document.model_copy(update={"excluded": listed})


def _runs(
    name: str, results: Path, limit: int | None, language: str, *, accept_changes: bool
) -> tuple[dict[int, Run], list[ExcludedRun]]:
    """Number -> run, the oldest first, of the newest runs that have ended, judged; and the others."""
    from dbdyno.commands.stored_run import judge_if_needed, open_run
    from dbdyno.store import StoreProblem
    from dbdyno.store.listing import is_running, list_runs
    from dbdyno.store.run import run_order
    from dbdyno.store.several_runs import ExcludedRun
    from dbdyno.text import compose

    runs: dict[int, Run] = {}
    excluded: list[ExcludedRun] = []
    for path in reversed(list_runs(results, name)[:limit]):
        number, _ = run_order(path)
        try:
            run = open_run(results, path, accept_changes=accept_changes)
            if is_running(run):
                excluded.append(ExcludedRun(run=number, reason=compose("running")))
                continue
            with run.reading():
                judge_if_needed(run, language)
            runs[number] = run
        except StoreProblem as problem:
            reason = compose("cannot be read: {text}", text=problem.text)
            excluded.append(ExcludedRun(run=number, reason=reason))
    return runs, excluded


def _judged_run(number: int, run: Run) -> JudgedRun:
    from dbdyno.runs.comparable import side
    from dbdyno.runs.history import JudgedRun
    from dbdyno.store.listing import began
    from dbdyno.text import compose

    time = began(run.path)
    with run.reading():
        of_run = side(run, compose("run {number}", number=number))
    return JudgedRun(number, "" if time is None else f"{time:%Y-%m-%dT%H:%M:%S}", of_run)


def _confirm_all(made: History, confirm: Callable[[HistorySeries, HistoryChange], int]) -> int:
    """Compare the servers around each candidate. Returns the exit code of the first comparison that has no
    answer; 0 if all have one.
    """
    codes: list[int] = []
    candidates = (
        (entry, change) for entry in made.series for change in entry.changes if change.state == "candidate"
    )
    for series, change in candidates:
        try:
            codes.append(confirm(series, change))
        except Problem as problem:
            print_problem(problem)
            codes.append(problem.exit_code)
        except typer.Exit as ended:
            # The reason is printed.
            if ended.exit_code == ExitCode.INTERRUPTED:
                raise
            codes.append(ended.exit_code)
    return next(filter(None, codes), ExitCode.DONE)


def _confirm(
    series: HistorySeries,
    change: HistoryChange,
    *,
    runs: dict[int, Run],
    results: Path,
    output: Output,
    yes: bool,
    resume: bool,
    share: bool,
) -> int:
    """Compare the servers around a candidate in so many runs as the confirmation lacks. Returns the exit code
    of the first one without a result; 0 if all have one.
    """
    from dbdyno.commands.comparison import Source, agree, measure
    from dbdyno.commands.option_document import as_toml
    from dbdyno.design.confirming import begun_confirmation, confirming_document, confirming_experiment
    from dbdyno.runs.history import CONFIRMING_RUNS

    before, after = runs[change.last_before], runs[change.first_after]
    recent = [run for number, run in runs.items() if number in {point.run for point in series.points}]
    experiment = confirming_experiment(series, change, before, after, recent)
    document = confirming_document(experiment, before, after)
    begun = begun_confirmation(experiment, results) if resume else None
    print(change.sentence, file=sys.stderr)
    # Another user who can write to the folder of results may have written this experiment.
    agree(begun or experiment, str(after.path / "experiment.toml"), yes=yes)
    source = Source(Path(f"{experiment.name}.toml"), content=as_toml(document).encode())
    code: int = ExitCode.DONE
    for number in range(len(change.confirming_runs) + 1, CONFIRMING_RUNS + 1):
        print(f"confirmation: run {number} of {CONFIRMING_RUNS}", file=sys.stderr)
        continues = begun is not None
        _, code = measure(source, begun or experiment, results, share=share, output=output, resume=continues)
        if code != ExitCode.DONE:
            break
        begun = None
    return code


def _show(made: History, translate: Translator) -> None:
    from dbdyno.terminal.console import SafeConsole, print_text, result_console
    from dbdyno.text import compose

    err = SafeConsole(stderr=True, highlight=False)
    for entry in made.excluded:
        text = compose("not used: run {run}: {reason}", run=entry.run, reason=entry.reason)
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
    from dbdyno.experiment.metrics import metric_text
    from dbdyno.report import formatting
    from dbdyno.result_text import MISSING
    from dbdyno.terminal.console import Column, print_text, table_lines
    from dbdyno.text import compose, compose_count, join

    reference = join("", (made.baseline, f" ({made.reference})" if made.reference else ""))
    title = compose_count(
        len(series.points),
        "{variant} against {reference}, {workload}, {metric}: {number} run",
        "{variant} against {reference}, {workload}, {metric}: {number} runs",
        variant=series.variant,
        reference=reference,
        workload=series.workload,
        metric=metric_text(series.metric),
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
            point.began[:10] or MISSING,
            translate(formatting.estimate_and_interval(point)),
            point.server or MISSING,
        )
        for point in series.points[-ROWS:]
    ]
    for text in table_lines(columns, rows):
        console.print(f"  {text}", soft_wrap=True)
    if marks:
        print_text(console, translate(compose("  * first run after a change")))


def spark_line(values: Sequence[float]) -> str:
    """A block for each value, whose height is its place between the smallest and the largest."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    scale = (len(_HEIGHTS) - 1) / (high - low) if high > low else 0.0
    return "".join(_HEIGHTS[round((value - low) * scale)] for value in values)
