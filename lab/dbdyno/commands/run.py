"""`dbdyno run`: measures one variant at several points, and prints a row of a table after each.

Standard output gets only the table; progress, findings and the run's folder go to standard error.
"""

from __future__ import annotations

import getpass
import secrets
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from dbdyno.checks import CHECKS
from dbdyno.commands.formatting import print_problem
from dbdyno.commands.interrupts import interruptible
from dbdyno.commands.sharing import only_measurement
from dbdyno.commands.sweep_options import SweepOptions
from dbdyno.commands.sweep_options import experiment as experiment_of
from dbdyno.commands.sweep_table import header, peak, row
from dbdyno.commands.verbosity import announce
from dbdyno.experiment.reading import read
from dbdyno.experiment.schedule import ORDER_SEEDS
from dbdyno.finding import Finding
from dbdyno.fleet.fleet_engine import open_engine
from dbdyno.problem import ExitCode, Problem
from dbdyno.run import progress
from dbdyno.run.affinity import require_cpus
from dbdyno.run.compare import compare
from dbdyno.run.coordinator import Conclusion
from dbdyno.run.environment import environment
from dbdyno.run.sweep import sweep
from dbdyno.servers.kinds.remote import RemoteServer, read_password
from dbdyno.store import Run, StoredTrial
from dbdyno.store.run import trial_folder
from dbdyno.verdict import judge

# The finding "a trial failed" is not printed, because the row of the trial says so.
_TRIAL_FAILED = "R04"


def run(
    options: SweepOptions,
    password_file: Path | None,
    results: Path,
    profile: str | None,
    *,
    keep_data: bool,
    share: bool,
) -> NoReturn:
    """Benchmark the server of the options, or run the experiment file that is named instead of a workload."""
    path = Path(options.workload)
    is_file = path.suffix == ".toml" or (path.is_file() and path.suffix not in (".sql", ".lua"))
    if is_file and not options.target:
        _run_experiment(path, profile, list(options.assignments), results, share=share)
    _run_on_target(options, password_file, results, keep_data=keep_data, share=share)


def _run_on_target(
    options: SweepOptions, password_file: Path | None, results: Path, *, keep_data: bool, share: bool
) -> NoReturn:
    """Benchmark an existing server."""
    experiment, where, source = experiment_of(options)
    # Over tables that an earlier run has left, the transactions need other values than that run wrote.
    experiment = experiment.with_order_seed(secrets.randbelow(ORDER_SEEDS))
    require_cpus(experiment)
    prompt = f"Password of {where.user} on {where.host}: "
    secret = read_password(password_file, (lambda: getpass.getpass(prompt)) if sys.stdin.isatty() else None)
    measuring = only_measurement(f"run {options.workload}", share=share)
    with open_engine(experiment) as engine, measuring, closing(RemoteServer(where, secret)) as server:
        # Start it before creating the run, so that an unreachable server leaves no empty run.
        server.start()
        for note in server.notes:
            announce(note)
        stored = Run.create(results, experiment, source.encode(), None, environment(engine.version()))
        with _handle_early_end(stored), interruptible("dropping the tables"):
            end = sweep(experiment, stored, server, _PointTable(stored).listen, engine, keep_data=keep_data)
    _conclude(stored, end)


def _run_experiment(
    path: Path, profile: str | None, assignments: list[str], results: Path, *, share: bool
) -> NoReturn:
    """Run an experiment of one variant on a server that dbdyno starts."""
    experiment = read(path, profile, assignments)
    if len(experiment.variants) > 1:
        names = ", ".join(variant.name for variant in experiment.variants)
        raise Problem(
            f"{path} has {len(experiment.variants)} variants ({names}), but dbdyno run measures only one",
            f"Compare them with dbdyno compare {path}",
        )
    require_cpus(experiment)
    with open_engine(experiment) as engine, only_measurement(f"run {path}", share=share):
        stored = Run.create(results, experiment, path.read_bytes(), profile, environment(engine.version()))
        with _handle_early_end(stored), interruptible("stopping the server"):
            conclusion = compare(experiment, stored, _PointTable(stored).listen, engine)
    _conclude(stored, conclusion)


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
    is_stopped = bool(end.stops)
    if end.done + end.failed:
        printed = stored.findings()
        # The checks of results, such as the load generator's CPU use, run only now.
        verdict = judge(stored)
        if highest := peak(verdict):
            announce(highest)
        for finding in verdict.checks:
            if finding not in printed and finding.code != _TRIAL_FAILED:
                _print_finding(finding)
                is_stopped = is_stopped or finding.is_blocking
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


class _PointTable:
    """Prints a row on standard output as each point ends, and everything else on standard error."""

    def __init__(self, stored: Run) -> None:
        self._stored = stored
        self._has_header = False
        # Tenths of the rows whose loading has been printed.
        self._printed_tenths = 0

    def listen(self, value: progress.Progress) -> None:
        """Print a progress value."""
        match value:
            case progress.Step():
                self._printed_tenths = 0
                announce(value.text)
            case progress.ProblemOccurred():
                announce(value.text)
            case progress.Loading():
                self._print_loading(value)
            case progress.TrialEnded():
                self._print_row(value.trial.index)
            case progress.NewFindings():
                for finding in value.findings:
                    _print_finding(finding)
            case _:
                pass

    def _print_loading(self, value: progress.Loading) -> None:
        tenths = 10 * value.rows // max(1, value.rows_planned)
        if tenths > self._printed_tenths:
            announce(f"  {value.rows:,} of {value.rows_planned:,} rows")
        self._printed_tenths = tenths

    def _print_row(self, index: int) -> None:
        trial = StoredTrial(trial_folder(self._stored.path, index))
        if not self._has_header:
            self._has_header = True
            print(header(trial))
        # Flushed for users and scripts that read the table while it grows.
        print(row(trial), flush=True)


def _print_finding(finding: Finding) -> None:
    # A run of one variant compares nothing.
    if any(check.of_comparison for check in CHECKS if check.code == finding.code):
        return
    announce(f"{finding.level} {finding.summary}")
    if finding.override is not None:
        announce(f"  overridden: {finding.override}")
