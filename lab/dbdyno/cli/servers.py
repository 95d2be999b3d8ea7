"""The command line of `dbdyno servers`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import ShareMachine
from dbdyno.commands.choices import ServersAction


def servers(
    action: Annotated[
        ServersAction,
        typer.Argument(
            metavar="list|install|remove|path",
            help="List all versions, install or remove one, or print its folder.",
            show_default=False,
        ),
    ],
    product: Annotated[
        str | None,
        typer.Argument(metavar="PRODUCT", help="mariadb, mysql or postgresql.", show_default=False),
    ] = None,
    version: Annotated[
        str | None,
        typer.Argument(metavar="VERSION", help="A version, or how it begins, as in 18.", show_default=False),
    ] = None,
    *,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only from this source: maven, npm, pypi or url."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Install from this tarball: a URL or a path.")
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(metavar="SUM", help="With --url: the SHA-256 that the vendor publishes.")
    ] = None,
    share_machine: ShareMachine = False,
) -> None:
    """List, install or remove versions of servers, for server.version in an experiment."""
    from dbdyno.commands.servers import Choice
    from dbdyno.commands.servers import servers as work

    work(action, Choice(product, version, source, url, sha256), share=share_machine)
