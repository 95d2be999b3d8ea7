"""The command line of `dbdyno fleet`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.commands.choices import FleetAction


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
