"""`dbdyno ui`: stored runs and runs in progress in a browser."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

from dbdyno.commands.choices import require_language
from dbdyno.commands.init import example
from dbdyno.listening import listener
from dbdyno.problem import Problem
from dbdyno.terminal.messages import open_page


def ui(
    results: Path, listen: str, token_file: Path | None, language: str, *, allow_run: bool, open_browser: bool
) -> None:
    """Serve the pages until interrupted; print the address with its token. Raises Problem."""
    require_language(language)
    what = "read the runs and start experiments" if allow_run else "read the runs"
    place = listener(listen, token_file, what, needs_token=True)
    try:
        from dbdyno.ui.app import Site, serve  # noqa: PLC0415 — an optional dependency.
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"nicegui", "fastapi", "uvicorn"}:
            raise
        raise Problem(
            "dbdyno ui needs the Python package nicegui, which is not installed", "pip install 'dbdyno[ui]'"
        ) from error
    from dbdyno.ui.pages import Pages  # noqa: PLC0415 — after the error about the missing package.

    with contextlib.ExitStack() as stack:

        def started(address: str) -> None:
            print(address, flush=True)
            if open_browser:
                open_page(stack.enter_context(_page_to(address)).as_uri())

        site = Site(Pages(results, language), Path(), example(), allow_run=allow_run)
        _serve(lambda: serve(site, place, started), listen)


def _serve(work: Callable[[], None], listen: str) -> None:
    try:
        work()
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
