"""Opens a page in the user's browser."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path


def open_page(address: str) -> None:
    """Open an address or a file; prints on standard error if there is no browser to open it in."""
    try:
        is_open = webbrowser.open(address)
    except webbrowser.Error:
        is_open = False
    if not is_open:
        print(f"no browser was found to open {address} (the variable BROWSER names one)", file=sys.stderr)


@contextmanager
def page_to(address: str) -> Iterator[Path]:
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
