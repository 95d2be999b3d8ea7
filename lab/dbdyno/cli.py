"""The command line: which command there is, and what its failure looks like. A table of contents.

A command's module is imported when the command is called and not before, so that `dbdyno --help` stays fast.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from dbdyno import __version__
from dbdyno.commands.formatting import print_problem
from dbdyno.commands.interrupts import was_interrupted
from dbdyno.drop_ins import DROP_INS
from dbdyno.problem import ExitCode, Problem

# Command -> what `dbdyno --help` says of it. Its function has its name and lies in the module of that name.
COMMANDS = {
    "compare": "Compare all variants of an experiment: table, verdict, report.",
    "run": "Put one server under load, from few connections to many, and print the table.",
    "check": "Make every check that needs no load.",
    "report": "Render a saved run as HTML, Markdown, CSV, JSON, SVG or PNG.",
    "sysbench": "Be sysbench: same commands, scripts and output; all that follows is sysbench's.",
    "slap": "Be mysqlslap: same options, reports and CSV; all that follows is mysqlslap's.",
    "shims": "Make links under which scripts find the drop-ins by the originals' names.",
}
# Set to anything to see where an unexpected error came from.
TRACEBACK_VARIABLE = "DBDYNO_TRACEBACK"


def _version(asked: bool) -> None:
    if asked:
        print(f"dbdyno {__version__}")
        raise typer.Exit


def _dbdyno(
    _asked: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A dynamometer for databases: a known load, two or more set-ups, one sentence with an interval."""


def _app(arguments: Sequence[str]) -> typer.Typer:
    """The command line for these arguments: the command they call for real, the others by name and help."""
    app = typer.Typer(
        no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    app.callback()(_dbdyno)
    called = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, text in COMMANDS.items():
        # `__main__` hands a drop-in over before this module is imported: here it is but a line of the help.
        real = name == called and name not in DROP_INS
        app.command(name, help=text)(_command(name) if real else _not_called)
    return app


def _command(name: str) -> Callable[..., None]:
    function: Callable[..., None] = getattr(importlib.import_module(f"dbdyno.commands.{name}"), name)

    @functools.wraps(function)
    def call(*arguments: object, **options: object) -> None:
        try:
            function(*arguments, **options)
        except KeyboardInterrupt:
            # typer would end without a word.
            print("dbdyno: interrupted", file=sys.stderr)
            raise typer.Exit(ExitCode.INTERRUPTED) from None

    return call


def _not_called() -> None:
    raise AssertionError("the command that is called is the one that was imported")


def main() -> None:
    """Run the command line and exit with its code. What a user can mend is told without a traceback."""
    # A terminal that cannot show a sign gets a question mark, and the verdict all the same.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        _app(sys.argv[1:])(prog_name="dbdyno")
    except Problem as problem:
        print_problem(problem)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        # The reader of our output has had enough; Python would complain once more while closing it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.DONE)
    except Exception as error:
        if was_interrupted():
            # A library that is interrupted while it loads raises an error of its own.
            raise KeyboardInterrupt from error
        _unexpected(error)
        sys.exit(ExitCode.NOT_COMPARABLE)


def _unexpected(error: Exception) -> None:
    """A fault of ours: short, unless asked for more."""
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    print(f"dbdyno: a fault of dbdyno itself: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"  Please report it with what {TRACEBACK_VARIABLE}=1 adds to this message", file=sys.stderr)
