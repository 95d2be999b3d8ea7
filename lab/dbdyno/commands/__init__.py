"""The command line: the list of commands, and the messages and exit codes of failures.

Each module of this package that is named after a command declares its options and does its work. It imports
nothing slow before its function runs, so `--help` stays fast, and so does the report of a mistake in an
experiment file, which is read first. The others have what several commands need; their functions import them.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection
from typing import Annotated

import typer

from dbdyno import __version__
from dbdyno.binary import DROP_INS
from dbdyno.commands.completion import words_to_complete
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.interrupts import was_interrupted
from dbdyno.terminal.messages import exhausted_resource, print_message, print_problem
from dbdyno.terminal.streams import guard_streams
from dbdyno.waiting import reported_by

# Command -> its line in `dbdyno --help`. Its function has the same name, and so has its module in this
# package.
COMMANDS = {
    "compare": "Compare the variants of an experiment; print the verdict.",
    "capacity": "Find how many transactions/s a server can serve.",
    "bisect": "Find the first version or commit that is slower.",
    "run": "Benchmark one server at several loads; print a table.",
    "init": "Write an experiment file from questions, commands or a run.",
    "check": "Validate an experiment; show what it needs on this machine.",
    "plan": "Show what a comparison will cost and how precise it will be.",
    "workloads": "List the bundled workloads, or print one.",
    "servers": "List, install or remove versions of servers.",
    "fleet": "Start, stop or check the hosts of several load generators.",
    "probe": "Say what a server that speaks a protocol can do.",
    "data": "List and remove what dbdyno has left on a server.",
    "report": "Render a stored run as HTML, Markdown, CSV, JSON, SVG or PNG.",
    "read": "Read results, scripts and pages of others; name mistakes.",
    "list": "List stored runs with their verdicts, the newest first.",
    "watch": "Follow a run in progress in a terminal.",
    "ui": "Show runs in a browser; edit and start experiments.",
    "show": "Print the result of a stored run again.",
    "diff": "Show whether the effects of one run replicate in another one.",
    "history": "Find when an effect changed over the runs of an experiment.",
    "replicate": "Repeat the comparison of a report on this machine.",
    "metrics": "Serve the values of a run in progress as OpenMetrics.",
    "site": "Write a folder for publishing: all reports and an index.",
    "clean": "Show the loaded data in the cache, or remove them with --keep.",
    "docs": "Print a page of the documentation; list the pages.",
    "schema": "Print the JSON Schema of the experiment file or a result file.",
    "sysbench": "sysbench-compatible command line.",
    "slap": "mysqlslap-compatible command line.",
    "shims": "Create sysbench, mysqlslap and mariadb-slap symlinks in DIR.",
    "completion": "Print the completion script of a shell.",
}
# If this environment variable is not empty, an internal error prints its traceback.
TRACEBACK_VARIABLE = "DBDYNO_TRACEBACK"
# URLs in an argument, and a whole argument that may be a URL without a scheme.
_URL = re.compile(r"\w+://[^\s'\"]+|^[^\s'\"=]+@[^\s'\"]*$")


def _version(requested: bool) -> None:
    if requested:
        print(f"dbdyno {__version__}")
        raise typer.Exit


def _dbdyno(
    _requested: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Run a defined load on two or more variants of a database server, and say which is faster."""


def app(called: Collection[str | None]) -> typer.Typer:
    """The command line: the called commands in full, the others by name and help."""
    line = typer.Typer(
        no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    line.callback()(_dbdyno)
    for name, text in COMMANDS.items():
        # Drop-ins never get here, because `__main__` starts them; they are listed for the help.
        is_called = name in called and name not in DROP_INS
        line.command(name, help=text)(_command(name) if is_called else _not_called)
    return line


def _command(name: str) -> Callable[..., None]:
    function: Callable[..., None] = getattr(importlib.import_module(f"dbdyno.commands.{name}"), name)

    @functools.wraps(function)
    def call(*arguments: object, **options: object) -> None:
        try:
            function(*arguments, **options)
        except KeyboardInterrupt:
            # typer would exit without a message.
            print("dbdyno: interrupted", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None

    return call


def _not_called() -> None:
    raise AssertionError("only the requested command is imported and called")


def main() -> None:
    """Run the command line and exit with its code. A problem that the user can fix has no traceback."""
    with guard_streams(), reported_by(print_message):
        _run_command_line()


def _run_command_line() -> None:
    words = words_to_complete()
    arguments = sys.argv[1:] if words is None else words
    called = next((argument for argument in arguments if not argument.startswith("-")), None)
    try:
        if words is None:
            _refuse_passwords(arguments)
        app([called])(prog_name="dbdyno")
    except Problem as problem:
        print_problem(problem)
        sys.exit(problem.exit_code)
    except Exception as error:
        if was_interrupted():
            # A library that is interrupted while it loads may raise another error.
            raise KeyboardInterrupt from error
        if resource := exhausted_resource(error):
            fix = "Finished trials are kept. Raise the limit, then repeat the command with --resume"
            print_problem(Problem(f"no more {resource}: {str(error) or 'the limit is reached'}", fix))
        else:
            _report_internal_error(error)
        sys.exit(ExitCode.NOT_COMPARABLE)


def _refuse_passwords(arguments: list[str]) -> None:
    """Refuse arguments with a server's password, because messages and stored runs quote arguments. Raises
    Problem.
    """
    suspicious = [argument for argument in arguments if "@" in argument or "://" in argument]
    # The parser of the target has its own message.
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if argument not in suspicious or before == "--target" or argument.startswith("--target="):
            continue
        from dbdyno.experiment.server import has_password

        if any(has_password(url) for url in _URL.findall(argument)):
            raise Problem(
                "an argument contains a password (user:password@host), which every user here can read",
                "Leave it out of the URL; put it into the variable DBDYNO_PASSWORD, or into a file",
            )


def _report_internal_error(error: Exception) -> None:
    """Report an internal error in one line; with the traceback only on request."""
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    print(f"dbdyno: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    print(
        f"  Repeat the command with {TRACEBACK_VARIABLE}=1 and report this bug with the output",
        file=sys.stderr,
    )
