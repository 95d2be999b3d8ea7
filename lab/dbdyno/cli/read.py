"""The command line of `dbdyno read`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import Language
from dbdyno.commands.choices import ReadFormat, require_language


def read(
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
    language: Language = "en",
    output_format: Annotated[ReadFormat, typer.Option("--format", help="Output format.")] = ReadFormat.TEXT,
) -> None:
    """Read results, scripts and pages of others; name mistakes."""
    from dbdyno.commands.read import read as work

    work(files, to_experiment, output_format, require_language(language))
