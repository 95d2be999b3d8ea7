"""`dbdyno ui`: stored runs and runs in progress in a browser."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from dbdyno.commands.choices import require_language
from dbdyno.commands.init import example
from dbdyno.commands.opening import open_page, page_to
from dbdyno.listening import listener
from dbdyno.problem import Problem


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
                open_page(stack.enter_context(page_to(address)).as_uri())

        site = Site(Pages(results, language), Path(), example(), allow_run=allow_run)
        _serve(lambda: serve(site, place, started), listen)


def _serve(work: Callable[[], None], listen: str) -> None:
    try:
        work()
    except OSError as error:
        raise Problem(
            f"cannot listen on {listen}: {error.strerror or error}", "Choose another port"
        ) from error
