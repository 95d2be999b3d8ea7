"""`dbdyno site`: writes the reports of all stored runs, and a page that lists them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem


def site(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to.", show_default=False)],
    results: Annotated[Path, typer.Argument(help="Folder in which runs are stored.")] = options.RESULTS,
    language: options.Language = "en",
) -> None:
    """Write a folder for publishing: all reports and an index."""
    from dbdyno.report.site import write_site

    if not results.is_dir():
        raise Problem(f"{results} is not a folder", "Name the folder in which runs are stored")
    index, entries = write_site(results, out, _warn, options.require_language(language))
    print(index)
    without = sum(not entry.link for entry in entries)
    if without:
        print(f"{without} of {len(entries)} runs are listed without a report", file=sys.stderr)


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
