"""What a command prints on standard error: its steps and problems; with `--quiet` no steps, with `--verbose`
everything, with its time.

The modules of the lab write to the loggers of the standard library below `dbdyno`, to which nothing listens
without `--verbose`. No message contains a password.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

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
    from dbdyno.terminal.console import SafeConsole, print_text

    console = SafeConsole(stderr=True, highlight=False)
    _LOG.addHandler(_Handler(partial(print_text, console, indent=_TIME)))
    _LOG.setLevel(logging.DEBUG)


def is_verbose() -> bool:
    """Whether the command was called with --verbose."""
    return _LOG.isEnabledFor(logging.DEBUG)


def announce(text: str) -> None:
    """Print a step, unless the command is quiet."""
    if is_verbose():
        _LOG.info("%s", text)
    elif _LOG.level != logging.CRITICAL:
        print_message(text)


def print_message(text: str) -> None:
    """Print a text at once."""
    print(text, file=sys.stderr, flush=True)


def print_problem(problem: Problem) -> None:
    """Print a problem and its fix."""
    print(f"dbdyno: {problem.text}", file=sys.stderr)
    if problem.fix:
        print(f"  {problem.fix}", file=sys.stderr)


def exhausted_resource(error: Exception) -> str:
    """The resource of this process or machine whose limit caused an error; empty if none did."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return "file handles (ulimit -n)"
    # Python's only error of a thread that cannot start.
    if isinstance(error, MemoryError) or number == errno.ENOMEM or str(error) == "can't start new thread":
        return "memory or threads (ulimit -v, ulimit -u)"
    return ""


def open_page(address: str) -> None:
    """Open an address or a file in the user's browser; prints if there is no browser to open it in."""
    import webbrowser

    try:
        is_open = webbrowser.open(address)
    except webbrowser.Error:
        is_open = False
    if not is_open:
        print_message(f"no browser was found to open {address} (the variable BROWSER names one)")


@dataclass(frozen=True)
class Output:
    """What a command prints of a result, and whether it shows progress."""

    # The verdict alone, and on standard error only errors.
    quiet: bool = False
    # verdict.json on standard output.
    as_json: bool = False
    # The language of the result, of `dbdyno.languages`.
    language: str = "en"
    # Open report.html in a browser.
    opens_report: bool = False
    writes_report: bool = True
    # Where the report is written; None: into the run's folder.
    report_folder: Path | None = None

    def __post_init__(self) -> None:
        options = {"--open": self.opens_report, "--output": self.report_folder is not None}
        if not self.writes_report and any(options.values()):
            wrong = " and ".join(name for name, is_given in options.items() if is_given)
            raise Problem(f"{wrong}: --no-report was given too", "Leave out one of them")
