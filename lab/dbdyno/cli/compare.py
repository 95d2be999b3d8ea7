"""The command line of `dbdyno compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import (
    RESULTS,
    Assignments,
    ExperimentFile,
    MaxLoss,
    Profile,
    Results,
    ShareMachine,
    UndecidedAs,
)


def compare(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: ExperimentFile,
    profile: Profile = None,
    results: Results = RESULTS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this experiment.")
    ] = False,
    blocks: Annotated[
        str | None,
        typer.Option(metavar="N|+N", help="Run exactly N blocks; +N with --resume: N more blocks."),
    ] = None,
    max_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="With design.stop: begin no block that would end after this time: 30m, 2h."
        ),
    ] = None,
    assignments: Assignments = None,
    max_loss: MaxLoss = None,
    undecided: UndecidedAs = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False,
    share_machine: ShareMachine = False,
) -> None:
    """Compare the variants of an experiment; print the verdict."""
    from dbdyno.commands.block_options import design_changes, parse_blocks
    from dbdyno.experiment.reading import read

    count, more_blocks = parse_blocks(blocks, resume=resume)
    experiment = read(file, profile, [*(assignments or []), *design_changes(count, max_loss)])

    from dbdyno.commands.compare import compare as work

    work(
        file,
        experiment,
        profile,
        results,
        resume=resume,
        more_blocks=more_blocks,
        max_time=max_time,
        undecided=undecided,
        no_report=no_report,
        share=share_machine,
    )
