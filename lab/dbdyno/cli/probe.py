"""The command line of `dbdyno probe`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import PasswordFile, ShareMachine


def probe(
    target: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL of the server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ],
    password_file: PasswordFile = None,
    share_machine: ShareMachine = False,
) -> None:
    """Say what a server that speaks the protocol of MySQL or PostgreSQL can do.

    Loads 200 rows into a table of its own, runs short loads, and drops the table.
    """
    from dbdyno.commands.probe import probe_target as work

    work(target, password_file, share=share_machine)
