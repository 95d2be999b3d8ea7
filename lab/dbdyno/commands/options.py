"""Options and arguments of several commands, and what their values mean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dbdyno.commands.completion import experiment_files, profiles, stored_runs
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.messages import set_verbosity

if TYPE_CHECKING:
    from dbdyno.servers.kinds.remote import RemoteServer
    from dbdyno.servers.url import Target
    from dbdyno.store.verdict import Gate


# The output formats of `dbdyno compare`, `list` and `show`.
TextFormat = Literal["text", "json"]


# What an undecided gate counts as.
Undecided = Literal["pass", "fail"]


def apply_verbosity(option: typer.CallbackParam, value: bool) -> bool:
    """The callback of --quiet and --verbose. Raises Problem if both are given."""
    if value:
        set_verbosity(option.opts[0])
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
    typer.Option(
        metavar="N", help="Make the load from N load generators ([fleet] engines; dbdyno docs fleet)."
    ),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")]
Tables = Annotated[int | None, typer.Option(help="Number of tables (default: 1).")]
TableSize = Annotated[int | None, typer.Option(help="Rows per table (default: 10000).")]
Writes = Annotated[
    str | None,
    typer.Option(
        metavar="refuse|skip|replay",
        help="Statements that write to tables of an existing server that dbdyno has not created: refuse the "
        "run (default), skip those of a recorded log, or execute them (replay).",
    ),
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
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the verdict alone.", callback=apply_verbosity)]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Print every statement, process and check, with its time.", callback=apply_verbosity
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
TextOrJson = Annotated[TextFormat, typer.Option("--format", help="Output format.")]


def open_target(where: Target, password_file: Path | None) -> RemoteServer:
    """The server of --target, with the password of the file, of the environment, or a typed one. Raises
    Problem.
    """
    from getpass import getpass

    from dbdyno.servers.kinds.remote import RemoteServer, read_password

    prompt = f"Password of {where.user} on {where.host}: "
    ask = (lambda: getpass(prompt)) if sys.stdin.isatty() else None
    return RemoteServer(where, read_password(password_file, ask))


def require_language(code: str) -> str:
    """The code of a language. Raises Problem if there are no texts in it."""
    from dbdyno.languages import languages

    if code not in languages():
        raise Problem(
            f"there are no texts in the language {code!r}", f"Choose one of {', '.join(languages())}"
        )
    return code


def parse_max_loss(text: str) -> float:
    """The allowed loss in percent. Raises Problem."""
    from dbdyno.experiment.base import parse_percent

    percent = parse_percent(text)
    if percent is None or not 0.0 < percent < 100.0:
        raise Problem(
            f"--max-loss {text}: this is not a percentage between 0 and 100",
            "Write a number and %, such as --max-loss 3%",
        )
    return percent


def require_max_loss(undecided: Undecided | None, max_loss_percent: float | None) -> None:
    """Raise Problem for --undecided without a gate."""
    if undecided is not None and max_loss_percent is None:
        raise Problem(
            "--undecided has no effect without --max-loss or design.max_loss_percent",
            "Add --max-loss 3%, for example",
        )


def exit_code(gate: Gate, undecided: Undecided | None) -> ExitCode:
    """The exit code of a gate's result."""
    match gate.result:
        case "not-inferior":
            return ExitCode.DONE
        case "worse":
            return ExitCode.WORSE
        case "not-comparable":
            return ExitCode.NOT_COMPARABLE
        case "undecided":
            mapped = {None: ExitCode.UNDECIDED, "pass": ExitCode.DONE, "fail": ExitCode.WORSE}
            return mapped[undecided]
