"""The command line of `dbdyno ui`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Language, Results


def ui(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Address of the pages; port 0 is any free port.")
    ] = "127.0.0.1:8088",
    allow_run: Annotated[
        bool, typer.Option("--allow-run", help="Let the pages start experiments in the current folder.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token that users must enter, instead of one in the address that is printed; "
            "required unless --listen is a loopback address."
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the pages in a browser.")] = False,
    language: Language = "en",
    results: Results = RESULTS,
) -> None:
    """Show runs in a browser: verdicts, a run in progress, two runs, an experiment editor."""
    from dbdyno.commands.ui import ui as work

    work(results, listen, token_file, language, allow_run=allow_run, open_browser=open_browser)
