"""The command line of `dbdyno compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.completion import workloads
from dbdyno.cli.options import (
    RESULTS,
    Assignments,
    Fleet,
    Language,
    MaxLoss,
    OpenReport,
    OptionalFile,
    Profile,
    Quiet,
    ReportFolder,
    ResultFormat,
    Results,
    ShareMachine,
    UndecidedAs,
    Verbose,
)
from dbdyno.commands.choices import TextFormat, require_language
from dbdyno.terminal.messages import Output

_MaxTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="With design.stop: start no block that would end after this time, as in 30m."
    ),
]
# Without an experiment file.
_A = Annotated[
    str | None,
    typer.Option(
        "--a",
        metavar="SERVER",
        help="Without FILE, the baseline: mariadb, mysql or postgresql; with settings "
        "mariadb:NAME=VALUE,NAME=VALUE; mariadb:11.4 for a container image; or a URL of an existing server.",
    ),
]
_B = Annotated[
    list[str] | None,
    typer.Option("--b", metavar="SERVER", help="Server to compare with --a. Can be repeated."),
]
_Workload = Annotated[
    str | None,
    typer.Option(
        help="With --a: the workload, FILE.sql or FILE.lua (default: oltp_read_write).",
        autocompletion=workloads,
    ),
]
_Connections = Annotated[
    str | None, typer.Option(help="With --a: connection counts, such as 16,64 (default: 16).")
]
_Rate = Annotated[str | None, typer.Option(help="With --a: arrival rates, in transactions/s.")]
_Time = Annotated[str | None, typer.Option(help="With --a: duration of a trial (default: 10s).")]
_Warmup = Annotated[
    str | None, typer.Option(help="With --a: warm-up of a trial (default: until throughput is steady).")
]
_Tables = Annotated[int | None, typer.Option(help="With --a: number of tables (default: 1).")]
_TableSize = Annotated[int | None, typer.Option(help="With --a: rows per table (default: 10000).")]


def compare(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: OptionalFile = None,
    profile: Profile = None,
    results: Results = RESULTS,
    a: _A = None,
    b: _B = None,
    workload: _Workload = None,
    connections: _Connections = None,
    rate: _Rate = None,
    time: _Time = None,
    warmup: _Warmup = None,
    tables: _Tables = None,
    table_size: _TableSize = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this experiment.")
    ] = False,
    blocks: Annotated[
        str | None,
        typer.Option(metavar="N|+N", help="Run exactly N blocks; +N with --resume: N more blocks."),
    ] = None,
    max_time: _MaxTime = None,
    assignments: Assignments = None,
    fleet: Fleet = None,
    max_loss: MaxLoss = None,
    undecided: UndecidedAs = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False,
    share_machine: ShareMachine = False,
    open_report: OpenReport = False,
    report_folder: ReportFolder = None,
    quiet: Quiet = False,
    _verbose: Verbose = False,
    language: Language = "en",
    result_format: ResultFormat = TextFormat.TEXT,
) -> None:
    """Compare the variants of an experiment; print the verdict."""
    from dbdyno.commands.design_options import design_changes, fleet_changes, parse_blocks
    from dbdyno.commands.option_document import OneLine, choose_file
    from dbdyno.experiment.reading import read

    as_json, language = result_format is TextFormat.JSON, require_language(language)
    output = Output(quiet, as_json, language, open_report, not no_report, report_folder)
    count, more_blocks = parse_blocks(blocks, resume=resume)
    changes = [*(assignments or []), *design_changes(count, max_loss), *fleet_changes(fleet)]
    options = OneLine(a, b or (), workload, connections, rate, time, warmup, tables, table_size)
    experiment = read(file := choose_file(file, options, changes), profile, changes)

    from dbdyno.commands.compare import Source, measure

    _, code = measure(
        Source(file, profile, changes),
        experiment,
        results,
        share=share_machine,
        output=output,
        resume=resume,
        more_blocks=more_blocks,
        max_time=max_time,
        undecided=undecided,
    )
    raise typer.Exit(code)
