"""`dbdyno ui`: stored runs and runs in progress in a browser."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem


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
    language: options.Language = "en",
    results: options.Results = options.RESULTS,
) -> None:
    """Show runs in a browser: verdicts, a run in progress, two runs, an experiment editor."""
    from dbdyno.commands.init import example
    from dbdyno.listening import listener
    from dbdyno.terminal.messages import open_page

    options.require_language(language)
    what = "read the runs and start experiments" if allow_run else "read the runs"
    place = listener(listen, token_file, what, needs_token=True)
    try:
        # An optional dependency.
        from dbdyno.ui.app import Site, serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"nicegui", "fastapi", "uvicorn"}:
            raise
        raise Problem(
            "dbdyno ui needs the Python package nicegui, which is not installed", "pip install 'dbdyno[ui]'"
        ) from error
    from dbdyno.ui.pages import Pages

    with contextlib.ExitStack() as stack:

        def started(address: str) -> None:
            print(address, flush=True)
            if open_browser:
                open_page(stack.enter_context(_page_to(address)).as_uri())

        site = Site(Pages(results, language), Path(), example(), allow_run=allow_run)
        try:
            serve(site, place, started)
        except OSError as error:
            raise Problem(
                f"cannot listen on {listen}: {error.strerror or error}", "Choose another port"
            ) from error


@contextlib.contextmanager
def _page_to(address: str) -> Iterator[Path]:
    """A file that only this user can read, and that leads a browser to `address`: other users of the machine
    can read a browser's arguments.
    """
    with tempfile.NamedTemporaryFile("w", prefix="dbdyno-", suffix=".html", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={escape(address)}"><title>dbdyno</title>'
        )
        file.flush()
        yield Path(file.name)
