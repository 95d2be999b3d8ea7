"""The command line of `dbdyno check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Assignments, ExperimentFile, Profile, ShareMachine, Verbose


def check(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: ExperimentFile,
    profile: Profile = None,
    assignments: Assignments = None,
    results: Annotated[Path, typer.Option(help="Folder in which runs and loaded data are stored.")] = RESULTS,
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data",
            help="Also start or connect to the servers, load the data, and check settings, statements and "
            "data.",
        ),
    ] = False,
    static: Annotated[
        bool,
        typer.Option(
            "--static",
            help="Execute nothing of the experiment, not even a program's --version, and connect to nothing: "
            "for the file of another person. Shows what a comparison would execute and read.",
        ),
    ] = False,
    share_machine: ShareMachine = False,
    _verbose: Verbose = False,
) -> None:
    """Validate an experiment; show what it needs on this machine."""
    from dbdyno.experiment.reading import read

    experiment = read(file, profile, assignments or [])

    from dbdyno.commands.check import Depth
    from dbdyno.commands.check import check as work
    from dbdyno.problem import Problem

    if static and with_data:
        raise Problem("--static and --with-data exclude each other", "Leave one of them out")

    depth = Depth.STATIC if static else Depth.DATA if with_data else Depth.PROGRAMS
    work(file, experiment, profile, results, depth, share=share_machine)
