"""The commands about servers and hosts: servers, probe, data, clean and fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, OptionalFile, PasswordFile, Results, ShareMachine
from dbdyno.commands.choices import Action, FleetAction, ServersAction
from dbdyno.problem import ExitCode, Problem


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


def probe(
    file: OptionalFile = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of a server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ] = None,
    results: Results = RESULTS,
    password_file: PasswordFile = None,
    share_machine: ShareMachine = False,
) -> None:
    """Say what a server that speaks the protocol of MySQL or PostgreSQL can do, or each variant of a file.

    Loads 200 rows into a table of its own, runs short loads, and drops the table.
    """
    if (file is None) == (target is None):
        fix = "Write dbdyno probe FILE.toml, or dbdyno probe --target URL"
        raise Problem("probe needs an experiment file or the URL of a server", fix, ExitCode.USAGE)

    from dbdyno.commands.probe import probe_target, probe_variants

    if target is not None:
        probe_target(target, password_file, share=share_machine)
    elif file is not None:
        from dbdyno.experiment.reading import read

        probe_variants(read(file, None, []), results, share=share_machine)


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


def clean(
    results: Results = RESULTS,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Remove all loaded data except those in use and the N used last.", min=0
        ),
    ] = None,
) -> None:
    """Show the loaded data that runs have left in the cache, or remove them with --keep."""
    from dbdyno.commands.clean import clean as work

    work(results, keep)


def fleet(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    action: Annotated[
        FleetAction,
        typer.Argument(
            metavar="up|down|doctor",
            help="Start or stop Ray on this machine, or check all hosts.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE.toml]", help="With doctor: also check the way to the servers of an experiment."
        ),
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="With up: join the cluster with this head."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="With up: this machine's address for the other hosts."),
    ] = None,
    port: Annotated[int, typer.Option(help="With up: the port of the head.")] = 6379,
    cpus: Annotated[
        int | None,
        typer.Option(help="With up: load generators that fit on this machine (default: its CPUs)."),
    ] = None,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT|auto", help="With doctor: the head of the cluster.")
    ] = "auto",
) -> None:
    """Start, stop or check the hosts of several load generators ([fleet] in an experiment)."""
    from dbdyno.commands.fleet import fleet as work
    from dbdyno.fleet.cluster import NodeOptions

    work(action, NodeOptions(join, host, port, cpus), address, file)
