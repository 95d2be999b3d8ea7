"""The command line of `dbdyno report`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import MaxLoss, StoredRun, UndecidedAs
from dbdyno.commands.choices import Format


def report(
    run: StoredRun,
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.HTML,  # noqa: A002 — the option's name
    max_loss: MaxLoss = None,
    undecided: UndecidedAs = None,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="Judge a run whose files were changed since it was measured."),
    ] = False,
) -> None:
    """Render a stored run as HTML, Markdown, CSV, JSON, SVG or PNG."""
    from dbdyno.commands.report import report as work

    work(run, format, max_loss, undecided, accept_changes=accept_changes)
