"""`dbdyno compare FILE.toml`: runs an experiment on all its variants, judges it and writes the report.

Standard output gets the result: a table, the important findings, and as its last lines one verdict sentence
per comparison. Everything else goes to standard error. The report is written after the verdict is printed, so
a chart that fails affects neither the verdict nor the exit code.
"""

from __future__ import annotations

import secrets
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dbdyno import judge
from dbdyno.commands import comparison_output
from dbdyno.commands.completion import ExperimentFile, Profile
from dbdyno.commands.formatting import print_problem
from dbdyno.commands.interrupts import interruptible
from dbdyno.commands.watch import show_progress
from dbdyno.experiment.durations import format_duration
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.affinity import assign_cpus, require_cpus
from dbdyno.run.compare import compare as run_comparison
from dbdyno.run.coordinator import Conclusion
from dbdyno.run.engine import Engine
from dbdyno.run.environment import environment
from dbdyno.store import Run, files
from dbdyno.store.verdict import VerdictFile

# Random order seeds are below this limit, so that they are short enough to type.
ORDER_SEEDS = 1_000_000


def compare(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: ExperimentFile,
    profile: Profile = None,
    results: Annotated[Path, typer.Option(help="Folder in which runs are stored.")] = Path("results"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this experiment.")
    ] = False,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override one key, such as load.duration=10s. Can be repeated."
        ),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False,
) -> None:
    """Compare the variants of an experiment; print the verdict."""
    console = Console(stderr=True, highlight=False)
    experiment = assign_cpus(read(file, profile, assignments or []))
    require_cpus(experiment)
    engine = Engine()
    run = _open(file, experiment, profile, results, resume=resume, engine=engine)
    # The stored experiment has an order seed: chosen above, or by the run that is resumed.
    experiment = run.experiment()
    comparison_output.describe(console, experiment, profile)
    conclusion = _run(console, experiment, run, engine)
    with files.store_errors(run.path):
        verdict = judge.judge(run)
    try:
        comparison_output.show(run, experiment)
    finally:
        # Also after a broken pipe on standard output.
        if no_report:
            print(f"run: {run.path}", file=sys.stderr)
        else:
            comparison_output.write_report(run)
    raise typer.Exit(_exit_code(verdict, conclusion))


def _open(
    file: Path, experiment: Experiment, profile: str | None, results: Path, *, resume: bool, engine: Engine
) -> Run:
    if resume:
        return Run.resume(results, experiment)
    experiment = experiment.with_order_seed(secrets.randbelow(ORDER_SEEDS))
    return Run.create(results, experiment, file.read_bytes(), profile, environment(engine.version()))


def _run(console: Console, experiment: Experiment, run: Run, engine: Engine) -> Conclusion:
    """Run the trials. An early end prints the command that continues the run."""
    began = time.monotonic()
    try:
        with interruptible("stopping the servers"), show_progress(console, experiment) as listen:
            conclusion = run_comparison(experiment, run, listen, engine)
    except KeyboardInterrupt:
        print("dbdyno: interrupted", file=sys.stderr)
        _print_resume_command(run)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Problem as problem:
        print_problem(problem)
        _print_resume_command(run)
        raise typer.Exit(problem.exit_code) from problem
    console.print(f"done in {format_duration(time.monotonic() - began)}")
    return conclusion


def _print_resume_command(run: Run) -> None:
    """After an early end, print what is stored and the command that continues the run."""
    try:
        if run.discard_if_empty():
            return
        done = sum(trial.is_done for trial in run.trials())
        planned = len(run.schedule())
    except Problem:
        # The store itself failed; that error has been printed.
        return
    arguments = [*sys.argv[1:]] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    print(f"  {done} of {planned} trials are finished and kept in {run.path}", file=sys.stderr)
    print(f"  Continue with: dbdyno {shlex.join(arguments)}", file=sys.stderr)


def _exit_code(verdict: VerdictFile, conclusion: Conclusion) -> ExitCode:
    codes = {comparison.curve.verdict for comparison in verdict.comparisons}
    stopped = bool(conclusion.stops) or "not-comparable" in codes
    return ExitCode.NOT_COMPARABLE if stopped else ExitCode.DONE
