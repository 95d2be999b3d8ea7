"""The command line of `dbdyno list`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Results
from dbdyno.commands.choices import TextFormat

SHOWN = 20


def list(  # noqa: A001 — the command's name
    experiment: Annotated[
        str | None,
        typer.Argument(metavar="EXPERIMENT", help="Only the runs of this experiment.", show_default=False),
    ] = None,
    results: Results = RESULTS,
    limit: Annotated[int, typer.Option(help="Show at most this many runs, the newest.", min=1)] = SHOWN,
    everything: Annotated[bool, typer.Option("--all", help="Show all runs.")] = False,
    format: Annotated[TextFormat, typer.Option(help="Output format.")] = TextFormat.TEXT,  # noqa: A002 — the option's name
) -> None:
    """List stored runs with their verdicts, the newest first."""
    from dbdyno.commands.list import list as work

    work(results, experiment, None if everything else limit, format)
