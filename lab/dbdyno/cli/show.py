"""The command line of `dbdyno show`."""

from __future__ import annotations

from dbdyno.cli.options import RESULTS, AcceptChanges, AnyRun, Language, Quiet, ResultFormat, Results
from dbdyno.commands.choices import Output, TextFormat, require_language


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
