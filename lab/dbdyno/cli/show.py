"""The command line of `dbdyno show`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, AcceptChanges, AnyRun, Results


def show(
    run: AnyRun = None,
    results: Results = RESULTS,
    accept_changes: AcceptChanges = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict alone.")] = False,
) -> None:
    """Print the result of a stored run again."""
    from dbdyno.commands.show import show as work

    work(run, results, accept_changes=accept_changes, quiet=quiet)
