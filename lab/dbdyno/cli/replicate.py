"""The command line of `dbdyno replicate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Assignments, ResultFormat, Results, ShareMachine, Verbose
from dbdyno.commands.choices import TextFormat


def replicate(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    report: Annotated[
        Path, typer.Argument(metavar="REPORT", help="An HTML report of dbdyno compare.", show_default=False)
    ],
    results: Results = RESULTS,
    assignments: Assignments = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. Read the experiment file of the report first.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this experiment.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False,
    share_machine: ShareMachine = False,
    _verbose: Verbose = False,
    result_format: ResultFormat = TextFormat.TEXT,
) -> None:
    """Repeat the comparison of a report on this machine, and say whether its effects replicate."""
    from dbdyno.commands.replicate import Options
    from dbdyno.commands.replicate import replicate as work

    options = Options(results, assignments or [], yes, resume, no_report, share_machine, result_format)
    work(report, options)
