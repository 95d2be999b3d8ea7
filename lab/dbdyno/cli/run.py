"""The command line of `dbdyno run`."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from dbdyno.cli.completion import experiment_files, workloads
from dbdyno.cli.options import (
    RESULTS,
    Fleet,
    PasswordFile,
    Profile,
    Results,
    ShareMachine,
    Verbose,
    set_verbosity,
)
from dbdyno.experiment.oltp_name import OltpName


def _what(incomplete: str) -> list[str]:
    return [*workloads(incomplete), *experiment_files(incomplete)]


_What = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD|FILE.sql|FILE.lua|FILE.toml",
        help=(
            f"With --target: {', '.join(get_args(OltpName))}, another bundled workload (dbdyno workloads "
            "lists them), your own SQL in FILE.sql, or a sysbench script in FILE.lua. Without --target: "
            "FILE.toml, an experiment with one variant."
        ),
        show_default=False,
        autocompletion=_what,
    ),
]

_Rate = Annotated[
    str | None,
    typer.Option(
        help="Arrival rates to test, in transactions/s; give --connections one number, the maximum."
    ),
]
_MaxRate = Annotated[
    float | None, typer.Option(help="Maximum transactions/s, for a server that others use too.")
]
_AbortIf = Annotated[
    str | None,
    typer.Option(
        metavar="LIMITS",
        help="End within a second when a limit is exceeded, as in p99=500ms,errors_per_1000=10.",
    ),
]


def run(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    what: _What,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of the server: mysql:// or postgresql://user@host:port/database, without a password.",
        ),
    ] = None,
    connections: Annotated[str, typer.Option(help="Connection counts to test, in order.")] = "2,4,8,16",
    rate: _Rate = None,
    time: Annotated[str, typer.Option(help="Duration of each measurement.")] = "10s",
    warmup: Annotated[str, typer.Option(help="Warm-up before each measurement.")] = "2s",
    max_rate: _MaxRate = None,
    abort_if: _AbortIf = None,
    tables: Annotated[int | None, typer.Option(help="Number of tables (default: 1).")] = None,
    table_size: Annotated[int | None, typer.Option(help="Rows per table (default: 10000).")] = None,
    workers: Annotated[
        str, typer.Option(metavar="N|auto", help="Event loops (threads) of the load generator.")
    ] = "auto",
    fleet: Fleet = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="OPTION=VALUE", help="Workload option, as in point_selects=5. Can be repeated."
        ),
    ] = None,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Do not drop the loaded tables at the end.")
    ] = False,
    password_file: PasswordFile = None,
    results: Results = RESULTS,
    profile: Profile = None,
    share_machine: ShareMachine = False,
    _quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the table alone.", callback=set_verbosity)
    ] = False,
    _verbose: Verbose = False,
) -> None:
    """Benchmark one server at several loads; print a table."""
    from dbdyno.commands.run import SweepOptions
    from dbdyno.commands.run import run as work

    options = SweepOptions(
        what,
        target or "",
        connections=connections,
        rate=rate,
        time=time,
        warmup=warmup,
        max_rate=max_rate,
        abort_if=abort_if,
        tables=tables,
        table_size=table_size,
        workers=workers,
        fleet=fleet,
        assignments=assignments or [],
    )
    work(options, password_file, results, profile, keep_data=keep_data, share=share_machine)
