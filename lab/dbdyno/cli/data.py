"""The command line of `dbdyno data`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import PasswordFile, ShareMachine
from dbdyno.commands.choices import Action


def data(
    action: Annotated[
        Action, typer.Argument(metavar="list|drop", help="Show the tables, or drop them.", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL of the server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Drop the tables without asking.")] = False,
    password_file: PasswordFile = None,
    share_machine: ShareMachine = False,
) -> None:
    """List or drop the tables that dbdyno has left on a server."""
    from dbdyno.commands.data import data as work

    work(action, target, password_file, yes=yes, share=share_machine)
