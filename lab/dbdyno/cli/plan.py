"""The command line of `dbdyno plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.completion import stored_runs
from dbdyno.cli.options import RESULTS, Assignments, ExperimentFile, Profile


def plan(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: ExperimentFile,
    profile: Profile = None,
    results: Annotated[Path, typer.Option(help="Folder with earlier runs.")] = RESULTS,
    assignments: Assignments = None,
    noise: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Expected standard deviation of a trial, as in 3%.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Folder of a run whose times and noise to expect.",
            autocompletion=stored_runs,
        ),
    ] = None,
) -> None:
    """Show what a comparison will cost and how precise it will be."""
    from dbdyno.experiment.reading import read

    experiment = read(file, profile, assignments or [])

    from dbdyno.commands.plan import plan as work

    work(experiment, profile, results, noise, like)
