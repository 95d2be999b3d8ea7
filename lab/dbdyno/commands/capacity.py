"""`dbdyno capacity`: finds the highest rate at which a server meets a limit of latency.

The options become an experiment file with one variant and a latency objective, which `dbdyno compare` runs
too: a search finds eight rates, every block measures each of them, and the blocks give the interval.
"""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.commands import options
from dbdyno.commands.completion import workloads
from dbdyno.problem import Problem
from dbdyno.terminal.messages import Output

_Target = Annotated[
    str,
    typer.Option(
        metavar="SERVER",
        help="URL of an existing server, whose password is in DBDYNO_PASSWORD; or mariadb, mysql or "
        "postgresql, with settings mariadb:NAME=VALUE,NAME=VALUE; or mariadb:11.4 for a container image.",
        show_default=False,
    ),
]
_P95 = Annotated[str | None, typer.Option("--p95", metavar="TIME", help="Limit of the p95 latency.")]
_P99 = Annotated[
    str | None, typer.Option("--p99", metavar="TIME", help="Limit of the p99 latency, as in 20ms.")
]
_P999 = Annotated[str | None, typer.Option("--p999", metavar="TIME", help="Limit of the p99.9 latency.")]
_Workload = Annotated[str, typer.Option(help="The workload, FILE.sql or FILE.lua.", autocompletion=workloads)]


def capacity(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    target: _Target,
    p95: _P95 = None,
    p99: _P99 = None,
    p999: _P999 = None,
    workload: _Workload = "oltp_read_write",
    connections: Annotated[str, typer.Option(help="The most connections that are busy at once.")] = "64",
    time: Annotated[str, typer.Option(help="Duration of a trial.")] = "5s",
    warmup: Annotated[str, typer.Option(help="Warm-up of a trial.")] = "2s",
    blocks: Annotated[int, typer.Option(help="How often each rate is measured; 6 give an interval.")] = 6,
    tables: options.Tables = None,
    table_size: options.TableSize = None,
    writes: options.Writes = None,
    assignments: options.Assignments = None,
    results: options.Results = options.RESULTS,
    no_report: options.NoReport = False,
    share_machine: options.ShareMachine = False,
    open_report: options.OpenReport = False,
    report_folder: options.ReportFolder = None,
    quiet: options.Quiet = False,
    _verbose: options.Verbose = False,
    language: options.Language = "en",
    result_format: options.ResultFormat = "text",
) -> None:
    """Find how many transactions/s a server can serve below a latency limit."""
    from dbdyno.commands.option_document import choose_file
    from dbdyno.experiment.reading import read

    limits = {name: limit for name, limit in (("p95", p95), ("p99", p99), ("p999", p999)) if limit}
    if len(limits) != 1:
        raise Problem(
            "the capacity needs one limit of the latency" + (f", not {len(limits)}" if limits else ""),
            "Write --p99 20ms, --p95 or --p999",
        )
    typed = {
        "target": target,
        "latency_objective": limits,
        "workload": workload,
        "connections": connections,
        "time": time,
        "warmup": warmup,
        "blocks": blocks,
        "tables": tables,
        "table_size": table_size,
    }
    changes = [*(assignments or []), *([] if writes is None else [f"load.writes={writes}"])]
    file = choose_file(None, {name: value for name, value in typed.items() if value is not None}, changes)
    experiment = read(file, None, changes)

    from dbdyno.commands.comparison import Source, measure

    output = Output(
        quiet,
        result_format == "json",
        options.require_language(language),
        open_report,
        not no_report,
        report_folder,
    )
    _, code = measure(Source(file, None, changes), experiment, results, share=share_machine, output=output)
    raise typer.Exit(code)
