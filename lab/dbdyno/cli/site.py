"""The command line of `dbdyno site`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Language


def site(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to.", show_default=False)],
    results: Annotated[Path, typer.Argument(help="Folder in which runs are stored.")] = RESULTS,
    language: Language = "en",
) -> None:
    """Write a folder for publishing: all reports and an index."""
    from dbdyno.commands.report import site as work

    work(results, out, language)
