"""The command line of `dbdyno check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Assignments, ExperimentFile, Profile, ShareMachine


def check(
    file: ExperimentFile,
    profile: Profile = None,
    assignments: Assignments = None,
    results: Annotated[Path, typer.Option(help="Folder in which runs and loaded data are stored.")] = RESULTS,
    share_machine: ShareMachine = False,
) -> None:
    """Validate an experiment on its servers, without running load."""
    from dbdyno.experiment.reading import read

    experiment = read(file, profile, assignments or [])

    from dbdyno.commands.check import check as work

    work(file, experiment, results, share=share_machine)
