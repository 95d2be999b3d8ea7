"""The command line of `dbdyno clean`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Results


def clean(
    results: Results = RESULTS,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Remove all loaded data except those in use and the N used last.", min=0
        ),
    ] = None,
) -> None:
    """Show the loaded data that runs have left in the cache, or remove them with --keep."""
    from dbdyno.commands.clean import clean as work

    work(results, keep)
