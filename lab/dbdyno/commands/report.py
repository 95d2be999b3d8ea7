"""`dbdyno report RUN`: renders a stored run as a page, as charts, or as text for other programs.

If the run has no verdict, or one of an older dbdyno, it is judged first. md, csv and json go to standard
output; html, svg and png are files in the run's folder, and their paths are printed.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dbdyno import report as reporting
from dbdyno.commands.comparison_output import warn_missing_charts
from dbdyno.commands.completion import stored_runs
from dbdyno.judge import judge
from dbdyno.report import tables
from dbdyno.store import Run

# Exit code if requested charts cannot be rendered.
NOT_RENDERED = 1


class Format(StrEnum):
    """The output formats."""

    HTML = "html"
    MD = "md"
    PNG = "png"
    SVG = "svg"
    CSV = "csv"
    JSON = "json"


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="Folder of the run.", metavar="RUN", show_default=False, autocompletion=stored_runs
        ),
    ],
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.HTML,  # noqa: A002 — the option's name
) -> None:
    """Render a stored run as HTML, Markdown, CSV, JSON, SVG or PNG."""
    stored = Run.open(run)
    if stored.judge_files() is None:
        judge(stored)
    match format:
        case Format.HTML:
            print(reporting.write(stored, warn_missing_charts))
        case Format.SVG | Format.PNG:
            _write_charts(stored, format)
        case Format.MD:
            print(tables.as_markdown(stored))
        case Format.CSV:
            print(tables.as_csv(stored))
        case Format.JSON:
            print(tables.as_json(stored))


def _write_charts(stored: Run, image_format: Format) -> None:
    try:
        for path in reporting.write_charts(stored, "svg" if image_format is Format.SVG else "png"):
            print(path)
    except reporting.RenderingError as error:
        print(f"error: charts cannot be rendered: {error}", file=sys.stderr)
        raise typer.Exit(NOT_RENDERED) from error
