"""How much a command prints of what it does: `--quiet` nothing, `--verbose` everything, with its time.

The modules of the lab write to the loggers of the standard library below `dbdyno`, to which nothing listens
without `--verbose`. No message contains a password.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import partial

from dbdyno.problem import Problem

_LOG = logging.getLogger("dbdyno")
# Cells of the time.
_TIME = 12


class _Handler(logging.Handler):
    def __init__(self, show: Callable[[str, str], None]) -> None:
        """`show` prints a text in a style."""
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        seconds = f"{record.relativeCreated / 1000:{_TIME - 4}.3f} s  "
        style = "dim" if record.levelno < logging.INFO else ""
        self._show(seconds + record.getMessage(), style)


def set_verbosity(option: str) -> None:
    """Obey --quiet or --verbose for the rest of the process. Raises Problem if both are given."""
    if _LOG.level != logging.NOTSET:
        raise Problem("--quiet and --verbose exclude each other", "Leave out one of them")
    if option == "--quiet":
        _LOG.setLevel(logging.CRITICAL)
        return
    # Without this option, a mistake in a file is reported before rich is imported.
    from dbdyno.commands.console import SafeConsole, print_text  # noqa: PLC0415

    console = SafeConsole(stderr=True, highlight=False)
    _LOG.addHandler(_Handler(partial(print_text, console, indent=_TIME)))
    _LOG.setLevel(logging.DEBUG)


def is_verbose() -> bool:
    """Whether the command was called with --verbose."""
    return _LOG.isEnabledFor(logging.DEBUG)


def announce(text: str) -> None:
    """Print a step on standard error, unless the command is quiet."""
    if is_verbose():
        _LOG.info("%s", text)
    elif _LOG.level != logging.CRITICAL:
        print(text, file=sys.stderr, flush=True)
