"""The command line of `dbdyno data`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import PasswordFile, ShareMachine
from dbdyno.commands.choices import Action


def data(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    action: Annotated[
        Action,
        typer.Argument(
            metavar="list|drop|restore",
            help="Show tables and changed settings, drop the tables, or restore the settings.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL of the server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Drop or restore without asking.")] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="With restore: keep the server's values, and forget the earlier ones."),
    ] = False,
    password_file: PasswordFile = None,
    share_machine: ShareMachine = False,
) -> None:
    """List or drop the tables that dbdyno has left on a server, or restore settings that it has changed."""
    from dbdyno.commands.data import data as work

    work(action, target, password_file, yes=yes, forget=forget, share=share_machine)
