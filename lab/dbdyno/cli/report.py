"""The command line of `dbdyno report`."""

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
    results: Results = RESULTS,
) -> None:
    """Render a stored run as HTML, Markdown, CSV, JSON, SVG or PNG, or in a format of another program."""
    from dbdyno.commands.report import Target
    from dbdyno.commands.report import report as work

    target = Target(format, language, output, open_report)
    work(run, results, target, max_loss, undecided, accept_changes=accept_changes)
