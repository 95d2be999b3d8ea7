"""Options and arguments of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.completion import experiment_files, profiles, stored_runs
from dbdyno.commands.choices import TextFormat, Undecided


def set_verbosity(option: typer.CallbackParam, value: bool) -> bool:
    """The callback of --quiet and --verbose. Raises Problem if both are given."""
    if value:
        from dbdyno.terminal.messages import set_verbosity as work

        work(option.opts[0])
    return value


ExperimentFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Experiment file.", show_default=False, autocompletion=experiment_files
    ),
]
OptionalFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="Experiment file.", show_default=False, autocompletion=experiment_files
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Apply the profile of this name in the experiment file.", autocompletion=profiles
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override one key, such as load.duration=10s. Can be repeated."
    ),
]
Fleet = Annotated[
    int | None,
    typer.Option(metavar="N", help="Make the load from N load generators ([fleet] engines; docs/fleet.md)."),
]
Results = Annotated[Path, typer.Option(help="Folder in which runs are stored.")]
RESULTS = Path("results")
AnyRun = Annotated[
    Path | None,
    typer.Argument(
        help="Folder or number of the run, or the name of an experiment for its newest run (default: the "
        "newest run).",
        metavar="RUN",
        show_default=False,
        autocompletion=stored_runs,
    ),
]
AcceptChanges = Annotated[
    bool,
    typer.Option("--accept-changes", help="Judge a run whose files were changed since it was measured."),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(help="File with the password (default: the variable DBDYNO_PASSWORD, else a prompt)."),
]
ShareMachine = Annotated[
    bool,
    typer.Option("--share-machine", help="Do not wait for other dbdyno commands on this machine."),
]
MaxLoss = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Exit with 0 if no variant loses more than this, with 1 if one does, with 5 if undecided.",
    ),
]
UndecidedAs = Annotated[
    Undecided | None,
    typer.Option(help="With --max-loss: exit with 0 (pass) or 1 (fail) instead of 5."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the verdict alone.", callback=set_verbosity)]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Print every statement, process and check, with its time.", callback=set_verbosity
    ),
]
Language = Annotated[
    str, typer.Option("--lang", metavar="CODE", envvar="DBDYNO_LANG", help="Language of the texts: en or ko.")
]
ReportFolder = Annotated[
    Path | None,
    typer.Option("--output", metavar="DIR", help="Folder to write the report to (default: that of the run)."),
]
OpenReport = Annotated[bool, typer.Option("--open", help="Open report.html in a browser.")]
ResultFormat = Annotated[
    TextFormat, typer.Option("--format", help="Output format of the result: json is verdict.json.")
]
