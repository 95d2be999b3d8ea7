"""`dbdyno report RUN`: renders a stored run as a page, as charts, or as text for other programs.

If the run has no verdict, or one of an older dbdyno, it is judged first. html, svg, png and parquet are files
in the run's folder, and their paths are printed; the others go to standard output. With --max-loss, or with
design.max_loss_percent in the experiment, the gate has the exit code, and its sentences go to standard error.

With --set or --leave-out the run is judged again, and that judgement is rendered; its sentences go to
standard error too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.messages import open_page

if TYPE_CHECKING:
    from dbdyno.store import Run
    from dbdyno.store.verdict import Gate

# Exit code if requested charts cannot be rendered; 4 with a gate, because 1 is one of its results.
NOT_RENDERED = 1


# The output formats of `dbdyno report`.
Format = Literal[
    "html", "md", "png", "svg", "csv", "json", "parquet", "bencher", "benchstat", "openmetrics", "otava"
]


def report(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    run: options.AnyRun = None,
    format: Annotated[Format, typer.Option(help="Output format.")] = "html",  # noqa: A002 — the option's name
    max_loss: options.MaxLoss = None,
    undecided: options.UndecidedAs = None,
    accept_changes: options.AcceptChanges = False,
    language: options.Language = "en",
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write the files to (default: that of the run)."),
    ] = None,
    open_report: options.OpenReport = False,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Judge the run again with another delta_percent, max_loss_percent, metrics or override, "
            "such as design.delta_percent=3, and store that next to the planned judgement. Can be repeated.",
        ),
    ] = None,
    omissions: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out",
            metavar="WHAT",
            help="Judge the run again without block=N, connections=N, rate=N or workload=TITLE. Can be "
            "repeated.",
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why the run is judged again; --leave-out needs it."),
    ] = None,
    results: options.Results = options.RESULTS,
) -> None:
    """Render a stored run as HTML, Markdown, CSV, JSON, SVG or PNG, or in a format of another program."""
    from dbdyno.commands.stored_run import judge_again, judge_if_needed, open_run, show_chosen
    from dbdyno.decide.gate import require_gate

    if reason is not None and not (assignments or omissions):
        raise Problem("--reason has no effect without --set or --leave-out", "Leave it out")
    limit = None if max_loss is None else options.parse_max_loss(max_loss)
    stored = open_run(results, run, accept_changes=accept_changes)
    with stored.reading():
        if limit is not None:
            require_gate(stored.experiment())
        judge_if_needed(stored, options.require_language(language))
        shown: Run = stored
        if assignments or omissions:
            shown = judge_again(stored, assignments or (), omissions or (), reason, language)
            show_chosen(shown, language)
        experiment = shown.experiment()
        max_loss_percent = experiment.design.max_loss_percent if limit is None else limit
        options.require_max_loss(undecided, max_loss_percent)
        if max_loss_percent is not None:
            require_gate(experiment)
        not_rendered = NOT_RENDERED if max_loss_percent is None else ExitCode.NOT_COMPARABLE
        _render(shown, format, language, output, not_rendered, opens=open_report)
        # The document on standard output must be whole before the gate's sentences.
        sys.stdout.flush()
        if max_loss_percent is not None:
            gate = _gate(shown, max_loss_percent)
            for sentence in gate.sentences:
                print(sentence, file=sys.stderr)
            raise typer.Exit(options.exit_code(gate, undecided))


def _render(
    run: Run, output_format: Format, language: str, folder: Path | None, not_rendered: int, *, opens: bool
) -> None:
    """Print the run in a format, or the paths of its files in `folder` or in the run's folder."""
    from dbdyno.report import tables
    from dbdyno.report import writing as reporting
    from dbdyno.report.writing import ImageFormat, refuse_links
    from dbdyno.terminal.result import warn_missing_charts

    match output_format:
        case "html":
            path = reporting.write(run, warn_missing_charts, language, folder)
            print(path)
            if opens:
                open_page(path.resolve().as_uri())
        case "svg" | "png":
            image: ImageFormat = "svg" if output_format == "svg" else "png"
            try:
                for path in reporting.write_charts(run, image, language, folder):
                    print(path)
            except reporting.RenderingError as error:
                print(f"error: charts cannot be rendered: {error}", file=sys.stderr)
                raise typer.Exit(not_rendered) from error
        case "md":
            from dbdyno.report.markdown import as_markdown
            from dbdyno.report.model import gather

            print(as_markdown(gather(run), language=language))
        case "csv":
            print(tables.as_csv(run))
        case "json":
            print(tables.as_json(run))
        case "parquet":
            from dbdyno.analysis import Results as Frames

            files = (folder or run.judged_path) / "parquet"
            refuse_links(run, files)
            for path in Frames(run).write_parquet(files):
                print(path)
        case other:
            from dbdyno.exports import WRITERS

            print(WRITERS[other](run))


def _gate(run: Run, max_loss_percent: float) -> Gate:
    """The result of a gate with this limit."""
    from dbdyno.decide.gate import gate
    from dbdyno.say.caveats import mark_gate

    verdict = run.verdict()
    assert verdict is not None, "the run has been judged"
    if verdict.gate is not None and verdict.gate.max_loss_percent == max_loss_percent:
        return verdict.gate
    return mark_gate(gate(verdict, max_loss_percent), verdict.chosen_afterwards or ())
