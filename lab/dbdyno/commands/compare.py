"""`dbdyno compare FILE.toml`: runs an experiment on all its variants, judges it and writes the report."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.commands import options
from dbdyno.commands.completion import workloads
from dbdyno.problem import Problem
from dbdyno.terminal.messages import Output

_MaxTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With design.stop: end within this time, as in 30m; a block that still runs is interrupted.",
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
_Target = Annotated[
    str | None,
    typer.Option(
        metavar="SERVER",
        help="The server, or its URL, of which --a and --b are settings: --a '' --b "
        "\"after='CREATE INDEX i ON t (c)'\" compares it with and without an index.",
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
    file: options.OptionalFile = None,
    profile: options.Profile = None,
    results: options.Results = options.RESULTS,
    target: _Target = None,
    a: _A = None,
    b: _B = None,
    workload: _Workload = None,
    connections: _Connections = None,
    rate: _Rate = None,
    time: _Time = None,
    warmup: _Warmup = None,
    tables: _Tables = None,
    table_size: _TableSize = None,
    writes: options.Writes = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this experiment.")
    ] = False,
    blocks: Annotated[
        str | None,
        typer.Option(metavar="N|+N", help="Run exactly N blocks; +N with --resume: N more blocks."),
    ] = None,
    max_time: _MaxTime = None,
    assignments: options.Assignments = None,
    fleet: options.Fleet = None,
    max_loss: options.MaxLoss = None,
    undecided: options.UndecidedAs = None,
    no_report: options.NoReport = False,
    share_machine: options.ShareMachine = False,
    open_report: options.OpenReport = False,
    report_folder: options.ReportFolder = None,
    quiet: options.Quiet = False,
    _verbose: options.Verbose = False,
    language: options.Language = "en",
    result_format: options.ResultFormat = "text",
) -> None:
    """Compare the variants of an experiment; print the verdict."""
    from dbdyno.commands.option_document import choose_file
    from dbdyno.experiment.reading import read

    output = Output(
        quiet,
        result_format == "json",
        options.require_language(language),
        open_report,
        not no_report,
        report_folder,
    )
    count, more_blocks = _parse_blocks(blocks, resume=resume)
    changes = [
        *(assignments or []),
        *([] if count is None else [f"design.blocks={count}"]),
        *([] if max_loss is None else [f"design.max_loss_percent={options.parse_max_loss(max_loss)}"]),
        *([] if writes is None or file is None else [f"load.writes={writes}"]),
        *([] if fleet is None else [f"fleet.engines={fleet}"]),
    ]
    load = {"connections": connections, "rate": rate, "time": time, "warmup": warmup}
    values = {
        "target": target,
        "a": a,
        "b": b,
        "workload": workload,
        **load,
        "tables": tables,
        "table_size": table_size,
    }
    typed = {name: value for name, value in values.items() if value not in (None, [])}
    if file is None and writes is not None:
        typed["writes"] = writes
    experiment = read(file := choose_file(file, typed, changes), profile, changes)

    from dbdyno.commands.comparison import Source, measure

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


def _parse_blocks(text: str | None, *, resume: bool) -> tuple[int | None, int | None]:
    """The number of blocks that replaces the plan of the file, and the number to add to a run. Raises
    Problem.
    """
    if text is None:
        return None, None
    number = text.removeprefix("+")
    if not number.isdecimal() or int(number) == 0:
        raise Problem(
            f"--blocks {text}: this is not a number of blocks", "Write --blocks 8, or --resume --blocks +4"
        )
    if not text.startswith("+"):
        return int(number), None
    if not resume:
        raise Problem(f"--blocks {text} adds blocks to a run", "Add --resume, or write the number without +")
    return None, int(number)
