"""`dbdyno bisect FILE --good A --bad B`: finds the first version that differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.messages import print_message

# What `dbdyno bisect` searches.
Over = Literal["variants", "versions", "commits"]


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
    file: options.ExperimentFile,
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
    profile: options.Profile = None,
    assignments: options.Assignments = None,
    results: options.Results = options.RESULTS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest bisection of this experiment.")
    ] = False,
    share_machine: options.ShareMachine = False,
    quiet: options.Quiet = False,
    _verbose: options.Verbose = False,
    result_format: Annotated[
        options.TextFormat,
        typer.Option("--format", help="Output format: json prints the record of all steps."),
    ] = "text",
) -> None:
    """Find the first version or commit that is slower."""
    from dbdyno.experiment.reading import read_document

    document = read_document(file, profile, assignments or ())

    from dbdyno.commands.bisection import Bisection, Ends, choose_versions
    from dbdyno.experiment.bisection import SUFFIX, choose_workload, require_suitable, with_unequal_software
    from dbdyno.run.machine_lock import only_measurement
    from dbdyno.runs.bisection import bisect as search
    from dbdyno.runs.bisection import blocks_needed, level_of

    require_suitable(document)
    title = choose_workload(document, workload)
    folder = results / f"{document['experiment'].get('name', '')}{SUFFIX}"
    ends = Ends(good, bad, over, candidates, repository, build, build_timeout)
    versions = choose_versions(document, ends, (folder / ".builds").absolute())
    if max_blocks < (needed := blocks_needed(versions.names)):
        raise Problem(
            f"--max-blocks {max_blocks}: no step can be decided before {needed} blocks, because the "
            f"tests of {len(versions.names) - 2} candidates share an error rate of 5 %",
            f"Write --max-blocks {needed} or more",
        )
    if versions.over == "commits":
        document = with_unequal_software(document)
    as_json = result_format == "json"
    with only_measurement(f"dbdyno bisect {file}", print_message, share=share_machine):
        # Builds or installs the two ends.
        bisection = Bisection(
            document,
            title,
            versions,
            file,
            folder,
            max_blocks=max_blocks,
            resume=resume,
            quiet=quiet,
            as_json=as_json,
        )
        answer = search(versions.names, level_of(versions.names), bisection.measure)
        bisection.finish(answer)
    raise typer.Exit(ExitCode.UNDECIDED if answer.first_bad is None else ExitCode.DONE)
