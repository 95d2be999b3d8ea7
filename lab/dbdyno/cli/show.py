"""The command line of `dbdyno show`."""

from __future__ import annotations

from dbdyno.cli.options import RESULTS, AcceptChanges, AnyRun, Quiet, ResultFormat, Results
from dbdyno.commands.choices import Output, TextFormat


def show(
    run: AnyRun = None,
    results: Results = RESULTS,
    accept_changes: AcceptChanges = False,
    quiet: Quiet = False,
    result_format: ResultFormat = TextFormat.TEXT,
) -> None:
    """Print the result of a stored run again."""
    from dbdyno.commands.show import show as work

    work(
        run,
        results,
        accept_changes=accept_changes,
        output=Output(quiet=quiet, as_json=result_format is TextFormat.JSON),
    )
