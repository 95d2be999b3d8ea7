"""The command line of `dbdyno diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.completion import stored_runs
from dbdyno.cli.options import RESULTS, AcceptChanges, Results
from dbdyno.commands.choices import TextFormat


def diff(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Folder or number of the first run, or the name of an experiment for its newest run.",
            show_default=False,
            autocompletion=stored_runs,
        ),
    ],
    second: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The second run.", show_default=False, autocompletion=stored_runs),
    ],
    results: Results = RESULTS,
    accept_changes: AcceptChanges = False,
    format: Annotated[TextFormat, typer.Option(help="Output format.")] = TextFormat.TEXT,  # noqa: A002 — the option's name
) -> None:
    """Show whether the effects of one run replicate in another one."""
    from dbdyno.commands.diff import diff as work

    work(first, second, results, format, accept_changes=accept_changes)
