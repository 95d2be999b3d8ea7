"""`dbdyno report RUN`: a stored run once more, as a page, as pictures, or as text for other programs.

A run that was not judged (it was interrupted, or copied without its verdict) is judged first; one that was
keeps its verdict. md, csv and json go to standard output; html, svg and png are files in the run's folder,
whose paths are printed.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dbdyno import report as reporting
from dbdyno.judge import judge
from dbdyno.report import tables
from dbdyno.store import Run


class Format(StrEnum):
    """What a run can be shown as."""

    HTML = "html"
    MD = "md"
    PNG = "png"
    SVG = "svg"
    CSV = "csv"
    JSON = "json"


def report(
    run: Annotated[Path, typer.Argument(help="The run's folder.", metavar="RUN", show_default=False)],
    format: Annotated[Format, typer.Option(help="As what.")] = Format.HTML,  # noqa: A002 — the option's name
) -> None:
    """Show a stored run again."""
    stored = Run.open(run)
    if stored.verdict() is None or not (stored.path / "measured.json").exists():
        stored.write_verdict(judge(stored))
    match format:
        case Format.HTML:
            print(reporting.write(stored))
        case Format.SVG | Format.PNG:
            for path in reporting.write_charts(stored, "svg" if format is Format.SVG else "png"):
                print(path)
        case Format.MD:
            print(tables.as_markdown(stored))
        case Format.CSV:
            print(tables.as_csv(stored))
        case Format.JSON:
            print(tables.as_json(stored))
