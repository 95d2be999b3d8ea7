"""The commands about stored runs as text: list, show, diff and history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.completion import stored_runs
from dbdyno.cli.options import (
    RESULTS,
    AcceptChanges,
    AnyRun,
    Language,
    Quiet,
    ResultFormat,
    Results,
    ShareMachine,
)
from dbdyno.commands.choices import TextFormat, require_language
from dbdyno.terminal.messages import Output

# Defaults of --limit.
SHOWN, RUNS = 20, 50


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


def show(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    run: AnyRun = None,
    results: Results = RESULTS,
    accept_changes: AcceptChanges = False,
    quiet: Quiet = False,
    language: Language = "en",
    result_format: ResultFormat = TextFormat.TEXT,
) -> None:
    """Print the result of a stored run again."""
    from dbdyno.commands.show import show as work

    work(
        run,
        results,
        accept_changes=accept_changes,
        output=Output(quiet, result_format is TextFormat.JSON, require_language(language)),
    )


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
