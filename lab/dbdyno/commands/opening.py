"""Opens a page in the user's browser."""

from __future__ import annotations

import sys
import webbrowser


def open_page(address: str) -> None:
    """Open an address or a file; prints on standard error if there is no browser to open it in."""
    try:
        is_open = webbrowser.open(address)
    except webbrowser.Error:
        is_open = False
    if not is_open:
        print(f"no browser was found to open {address} (the variable BROWSER names one)", file=sys.stderr)
