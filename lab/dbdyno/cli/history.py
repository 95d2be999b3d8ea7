"""The command line of `dbdyno history`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, AcceptChanges, Language, Results, ShareMachine
from dbdyno.commands.choices import TextFormat, require_language

RUNS = 50


def history(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="Name of the experiment.", show_default=False)
    ],
    results: Results = RESULTS,
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
    share_machine: ShareMachine = False,
    accept_changes: AcceptChanges = False,
    language: Language = "en",
    format: Annotated[TextFormat, typer.Option(help="Output format.")] = TextFormat.TEXT,  # noqa: A002 — the option's name
) -> None:
    """Find when an effect changed over the runs of an experiment."""
    from dbdyno.commands.history import Options
    from dbdyno.commands.history import history as work

    options = Options(
        results,
        limit,
        confirm,
        yes,
        resume,
        share_machine,
        accept_changes,
        require_language(language),
        format,
    )
    work(experiment, options)
