"""The commands that render stored runs: report and site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import (
    RESULTS,
    AcceptChanges,
    AnyRun,
    Language,
    MaxLoss,
    OpenReport,
    Results,
    UndecidedAs,
)
from dbdyno.commands.choices import Format


def report(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    run: AnyRun = None,
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.HTML,  # noqa: A002 — the option's name
    max_loss: MaxLoss = None,
    undecided: UndecidedAs = None,
    accept_changes: AcceptChanges = False,
    language: Language = "en",
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write the files to (default: that of the run)."),
    ] = None,
    open_report: OpenReport = False,
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
    results: Results = RESULTS,
) -> None:
    """Render a stored run as HTML, Markdown, CSV, JSON, SVG or PNG, or in a format of another program."""
    from dbdyno.commands.report import Target
    from dbdyno.commands.report import report as work
    from dbdyno.commands.stored_run import Choices

    target = Target(format, language, output, open_report)
    choices = Choices(assignments or (), omissions or (), reason)
    work(
        run,
        results,
        target,
        max_loss=max_loss,
        undecided=undecided,
        choices=choices,
        accept_changes=accept_changes,
    )


def site(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to.", show_default=False)],
    results: Annotated[Path, typer.Argument(help="Folder in which runs are stored.")] = RESULTS,
    language: Language = "en",
) -> None:
    """Write a folder for publishing: all reports and an index."""
    from dbdyno.commands.report import site as work

    work(results, out, language)
