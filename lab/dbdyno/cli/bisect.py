"""The command line of `dbdyno bisect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import (
    RESULTS,
    Assignments,
    ExperimentFile,
    Profile,
    Quiet,
    Results,
    ShareMachine,
    Verbose,
)
from dbdyno.commands.choices import Over, TextFormat

_Good = Annotated[
    str,
    typer.Option(metavar="NAME", help="A version, commit or variant without the change.", show_default=False),
]
_Bad = Annotated[
    str,
    typer.Option(metavar="NAME", help="A version, commit or variant with the change.", show_default=False),
]
_Over = Annotated[
    Over | None,
    typer.Option(
        help="What to search: variants of the file, versions of the product, or commits (default: variants "
        "if the file has good, bad and others between them, else versions)."
    ),
]
_Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="The versions between good and bad, in order (default: those that are installed or that dbdyno "
        "can install).",
    ),
]
_Build = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="With --over commits: command that runs in a checkout of a commit, and installs its server into "
        "the folder $DBDYNO_BUILD.",
    ),
]


def bisect(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: ExperimentFile,
    good: _Good,
    bad: _Bad,
    over: _Over = None,
    candidates: _Candidates = None,
    repository: Annotated[
        Path, typer.Option(metavar="DIR", help="With --over commits: the Git repository.")
    ] = Path(),
    build: _Build = None,
    build_timeout: Annotated[str, typer.Option(metavar="TIME", help="Time limit of --build.")] = "1h",
    workload: Annotated[
        str | None, typer.Option(metavar="TITLE", help="Workload to measure (default: the first one).")
    ] = None,
    max_blocks: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000, help="Maximum number of blocks of a step.")
    ] = 60,
    profile: Profile = None,
    assignments: Assignments = None,
    results: Results = RESULTS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest bisection of this experiment.")
    ] = False,
    share_machine: ShareMachine = False,
    quiet: Quiet = False,
    _verbose: Verbose = False,
    result_format: Annotated[
        TextFormat, typer.Option("--format", help="Output format: json prints the record of all steps.")
    ] = TextFormat.TEXT,
) -> None:
    """Find the first version or commit that is slower."""
    from dbdyno.experiment.reading import read_document

    document = read_document(file, profile, assignments or ())

    from dbdyno.commands.bisect import Ends, Options
    from dbdyno.commands.bisect import bisect as work

    ends = Ends(good, bad, over, candidates, repository, build, build_timeout)
    as_json = result_format is TextFormat.JSON
    options = Options(
        file, workload, max_blocks, results, resume=resume, share=share_machine, quiet=quiet, as_json=as_json
    )
    work(document, ends, options)
