"""The command line of `dbdyno read`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Language, Results
from dbdyno.commands.choices import ReadFormat, require_language


def read(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…", help="Outputs, scripts or pages; - is standard input.", show_default=False
        ),
    ],
    to_experiment: Annotated[
        Path | None,
        typer.Option(
            "--to-experiment",
            metavar="FILE",
            help="Write the experiment file that measures the same.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Store the documents next to the runs, for list, show and diff.")
    ] = False,
    results: Results = RESULTS,
    language: Language = "en",
    output_format: Annotated[ReadFormat, typer.Option("--format", help="Output format.")] = ReadFormat.TEXT,
) -> None:
    """Read results, scripts and pages of others; name mistakes."""
    from dbdyno.commands.read import read as work

    work(files, to_experiment, results if store else None, output_format, require_language(language))
