"""The commands about experiment files, before they run: init, check, plan, workloads and schema."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.completion import bundled_workloads, stored_runs
from dbdyno.cli.options import RESULTS, Assignments, ExperimentFile, Profile, Results, ShareMachine, Verbose
from dbdyno.commands.choices import TextFormat


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Experiment file to write.")] = Path(
        "experiment.toml"
    ),
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TEXT",
            help="Instead of questions: a command line or shell script of sysbench, pgbench or mysqlslap, "
            "or a stored run (its folder, number or experiment).",
        ),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Write an experiment file from questions, commands or a run."""
    from dbdyno.commands.init import init as work

    work(file, origin, results)


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


# Links to schema/ in the repository, files in a wheel.
_SCHEMAS = Path(__file__).parents[1] / "schemas"


class SchemaName(StrEnum):
    """The files with a schema."""

    EXPERIMENT = "experiment"
    VERDICT = "verdict"
    MEASURED = "measured"
    EXPLAINED = "explained"


def schema(
    name: Annotated[
        SchemaName, typer.Argument(help="The experiment file, or a file of a run.")
    ] = SchemaName.EXPERIMENT,
) -> None:
    """Print the JSON Schema of the experiment file or a result file."""
    print((_SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"), end="")
