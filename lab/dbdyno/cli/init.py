"""The command line of `dbdyno init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Results


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Experiment file to write.")] = Path(
        "experiment.toml"
    ),
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TEXT",
            help='Instead of questions: "sysbench …" (a command line), a shell script that calls sysbench, '
            "or a stored run (its folder, number or experiment).",
        ),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Write an experiment file from questions, sysbench or a run."""
    from dbdyno.commands.init import init as work

    work(file, origin, results)
