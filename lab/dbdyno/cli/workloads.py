"""The command line of `dbdyno workloads`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.completion import bundled_workloads
from dbdyno.commands.choices import TextFormat


def workloads(
    show: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Print this workload in full, as a start for your own file.",
            autocompletion=bundled_workloads,
        ),
    ] = None,
    format: Annotated[TextFormat, typer.Option(help="Output format.")] = TextFormat.TEXT,  # noqa: A002 — the option's name
) -> None:
    """List the bundled workloads, or print one."""
    from dbdyno.commands.workloads import print_list, print_one

    if show is None:
        print_list(format)
    else:
        print_one(show, format)
