"""`dbdyno run`: measures one variant at several points, and prints a row of a table after each.

Standard output gets only the table; progress, findings and the run's folder go to standard error.

The options become the content of an experiment file, so that the same rules check them, and the run is stored
and reported like any other.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, get_args

import typer

from dbdyno.commands import options
from dbdyno.commands.completion import experiment_files, workloads
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import announce, is_verbose, print_message, print_problem

if TYPE_CHECKING:
    from dbdyno.experiment.model import Experiment
    from dbdyno.run.coordinator import Conclusion
    from dbdyno.store import Run, StoredTrial

# The finding "a trial failed" is not printed, because the row of the trial says so.
_TRIAL_FAILED = "R04"


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


# Options that an experiment file takes too; the others describe a server and a load.
_WITH_FILE = ("what", "assignments", "writes", "results", "profile", "share_machine", "_quiet", "_verbose")


def run(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    context: typer.Context,
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
    tables: options.Tables = None,
    table_size: options.TableSize = None,
    writes: options.Writes = None,
    workers: Annotated[
        str, typer.Option(metavar="N|auto", help="Event loops (threads) of the load generator.")
    ] = "auto",
    fleet: options.Fleet = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="OPTION=VALUE", help="Workload option, as in point_selects=5. Can be repeated."
        ),
    ] = None,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Do not drop the loaded tables at the end.")
    ] = False,
    password_file: options.PasswordFile = None,
    results: options.Results = options.RESULTS,
    profile: options.Profile = None,
    share_machine: options.ShareMachine = False,
    _quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the table alone.", callback=options.apply_verbosity)
    ] = False,
    _verbose: options.Verbose = False,
) -> None:
    """Benchmark one server at several loads; print a table."""
    path, where = Path(what), None
    is_file = path.suffix == ".toml" or (path.is_file() and path.suffix not in (".sql", ".lua"))
    from dbdyno.commands.option_document import refuse_with_file, sweep_experiment

    if is_file and not target:
        refuse_with_file(path, [name for name in _typed(context) if name not in _WITH_FILE])
        changes = [*(assignments or []), *([] if writes is None else [f"load.writes={writes}"])]
        experiment = _read_single(path, profile, changes)
        source = path.read_bytes()
    else:
        if profile is not None:
            raise Problem(f"--profile {profile}: only an experiment file has profiles", "Leave it out")
        typed = {
            "target": target,
            "connections": connections,
            "rate": rate,
            "time": time,
            "warmup": warmup,
            "max_rate": max_rate,
            "abort_if": abort_if,
            "tables": tables,
            "table_size": table_size,
            "writes": writes,
            "workers": workers,
            "fleet": fleet,
        }
        experiment, where, text = sweep_experiment(what, typed, assignments or [])
        source = text.encode()

    from dbdyno.experiment.schedule import ORDER_SEEDS
    from dbdyno.fleet.fleet_engine import open_engine
    from dbdyno.run.affinity import require_cpus
    from dbdyno.run.compare import compare
    from dbdyno.run.machine_lock import only_measurement
    from dbdyno.run.sweep import sweep
    from dbdyno.servers.usage import environment
    from dbdyno.store import Run
    from dbdyno.terminal.progress import PointTable

    require_cpus(experiment)
    server = None
    if where is not None:
        # Over tables that an earlier run has left, the transactions need other values than that run wrote.
        experiment = experiment.with_order_seed(secrets.randbelow(ORDER_SEEDS))
        server = options.open_target(where, password_file)
    alone = only_measurement(f"dbdyno run {what}", print_message, share=share_machine)
    with open_engine(experiment) as engine, alone, nullcontext() if server is None else closing(server):
        # Start it before creating the run, so that an unreachable server leaves no empty run.
        if server is not None:
            server.start()
            for note in server.notes:
                announce(note)
        stored = Run.create(results, experiment, source, profile, environment(engine.version()))
        listen = PointTable(stored).listen
        stopping = "stopping the server" if server is None else "dropping the tables"
        with _handle_early_end(stored), interruptible(stopping):
            if server is None:
                end = compare(experiment, stored, listen, engine)
            else:
                end = sweep(experiment, stored, server, listen, engine, keep_data=keep_data)
    _conclude(stored, end)


def _typed(context: typer.Context) -> list[str]:
    """Names of the parameters that were typed."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _read_single(path: Path, profile: str | None, assignments: list[str]) -> Experiment:
    """The experiment of a file, which has one variant. Raises Problem."""
    from dbdyno.experiment.reading import read

    experiment = read(path, profile, assignments)
    if len(experiment.variants) > 1:
        names = ", ".join(variant.name for variant in experiment.variants)
        raise Problem(
            f"{path} has {len(experiment.variants)} variants ({names}), but dbdyno run measures only one",
            f"Compare them with dbdyno compare {path}",
        )
    return experiment


@contextmanager
def _handle_early_end(stored: Run) -> Iterator[None]:
    """After an interruption or an error: remove an empty run, or print how many points are stored."""
    try:
        yield
    except KeyboardInterrupt:
        print("dbdyno: interrupted", file=sys.stderr)
        _print_stored_points(stored)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Problem:
        _print_stored_points(stored)
        raise


def _print_stored_points(stored: Run) -> None:
    done = sum(trial.is_done for trial in stored.trials())
    if not stored.discard_if_empty() and done:
        points = "1 finished point is" if done == 1 else f"{done} finished points are"
        print(f"{points} stored in {stored.path}", file=sys.stderr)


def _conclude(stored: Run, end: Conclusion) -> NoReturn:
    """Judge the run, print the findings and the folder, and exit."""
    from dbdyno.store.endings import shares_of
    from dbdyno.terminal.progress import print_finding
    from dbdyno.terminal.tables import peak
    from dbdyno.verdict import judge

    is_stopped = bool(end.stops)
    if end.done + end.failed:
        printed = stored.findings()
        # The checks of results, such as the load generator's CPU use, run only now.
        verdict = judge(stored)
        if highest := peak(verdict):
            announce(highest)
        for capacity in verdict.capacities or ():
            print(capacity.sentence)
        for finding in verdict.checks:
            if finding not in printed and finding.code != _TRIAL_FAILED:
                print_finding(finding)
                is_stopped = is_stopped or finding.is_blocking
    if is_verbose() and (shares := shares_of([end.seconds])):
        from dbdyno.experiment.base import format_duration

        announce(f"done in {format_duration(shares.total_s)}: {shares.text()}")
    announce(f"stored in {stored.path}")
    # A point that was asked for and has no result is a failure, however many others have one.
    if is_stopped or end.failed:
        points = f"{end.failed} point{'s' if end.failed > 1 else ''} failed"
        loads = dict.fromkeys(_load(trial) for trial in stored.trials() if not trial.is_done)
        text = f"{points} ({', '.join(loads)})" if end.failed else "aborted by a check"
        print_problem(Problem(text, "See the messages above"))
        raise typer.Exit(ExitCode.NOT_COMPARABLE)
    raise typer.Exit(ExitCode.DONE)


def _load(trial: StoredTrial) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in trial.meta["at"].items())
