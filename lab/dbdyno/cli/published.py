"""The commands about results that others have published: read and replicate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, Assignments, Language, ResultFormat, Results, ShareMachine, Verbose
from dbdyno.commands.choices import ReadFormat, TextFormat, require_language


def read(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…", help="Outputs, scripts or pages; - is standard input.", show_default=False
        ),
    ],
    to_experiment: Annotated[
        Path | None,
        typer.Option(
            "--to-experiment",
            metavar="FILE",
            help="Write the experiment file that measures the same.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Store the documents next to the runs, for list, show and diff.")
    ] = False,
    results: Results = RESULTS,
    language: Language = "en",
    output_format: Annotated[ReadFormat, typer.Option("--format", help="Output format.")] = ReadFormat.TEXT,
) -> None:
    """Read results, scripts and pages of others; name mistakes."""
    from dbdyno.commands.read import read as work

    work(files, to_experiment, results if store else None, output_format, require_language(language))


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
