"""A comparison that a command runs: compare, and on stored experiments history and replicate.

Standard output gets the result: a table, the important findings, the lines of the gate (--max-loss), and as
its last lines one verdict sentence per comparison. Everything else goes to standard error. The report is
written after the verdict is printed, so a chart that fails affects neither the verdict nor the exit code.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from dbdyno.commands.options import Undecided, exit_code, require_max_loss
from dbdyno.commands.plan import summary
from dbdyno.decide.gate import require_gate
from dbdyno.design.planning import choose_pairing, find_earlier
from dbdyno.design.planning import plan as make_plan
from dbdyno.experiment.base import DURATION_S_MAX, format_duration, parse_duration_s
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.rejudging import Rejudging
from dbdyno.experiment.schedule import ORDER_SEEDS
from dbdyno.fleet.fleet_engine import open_engine
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.affinity import assign_cpus, require_cpus
from dbdyno.run.compare import compare as run_comparison
from dbdyno.run.coordinator import Conclusion
from dbdyno.run.engine import Engine, LimitProblem
from dbdyno.run.machine_lock import only_measurement
from dbdyno.run.repeating import CannotRunProblem
from dbdyno.run.stopping import Limits, finished_blocks
from dbdyno.servers.disclosure import disclosure
from dbdyno.servers.usage import environment
from dbdyno.store import Run, files
from dbdyno.store.endings import shares_of
from dbdyno.store.judgement import complete_judgement, has_ended, store_judgement
from dbdyno.store.preparation import chosen_workers
from dbdyno.store.verdict import VerdictFile
from dbdyno.terminal import result
from dbdyno.terminal.console import SafeConsole, print_text
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import Output, print_message, print_problem
from dbdyno.terminal.progress import show_progress
from dbdyno.verdict import judge


@dataclass(frozen=True)
class Source:
    """Where an experiment comes from: its file, and what the command line added to it."""

    file: Path
    profile: str | None = None
    assignments: Sequence[str] = ()
    # What to store as the file; by default its content.
    content: bytes | None = None


def agree(experiment: Experiment, file: str, *, yes: bool, changes: str = "") -> None:
    """Show what another person's experiment does, and ask whether it may run; `file` has it. Raises Problem
    without a terminal, and if the answer is no.
    """
    if yes:
        return
    console = SafeConsole(stderr=True, highlight=False)
    print_text(console, "An experiment is like a program: it starts servers with its settings.")
    for line in (*([f"with {changes}"] if changes else []), *disclosure(experiment)):
        print_text(console, f"  {line}", indent=4)
    if not sys.stdin.isatty():
        raise Problem(
            "the experiment of another run or report runs only if you agree",
            f"Read {file}, then repeat the command with --yes",
        )
    if not typer.confirm(f"Have you read {file}, and shall it run?", err=True):
        raise Problem("nothing was run", f"The experiment is in {file}")


def measure(
    source: Source,
    experiment: Experiment,
    results: Path,
    *,
    share: bool,
    output: Output,
    resume: bool = False,
    more_blocks: int | None = None,
    max_time: str | None = None,
    undecided: Undecided | None = None,
) -> tuple[Run, ExitCode]:
    """Compare the variants of an experiment, and print and store the result; with `resume`, continue its
    newest run. Returns the run and the exit code of `compare`.
    """
    console = SafeConsole(stderr=True, highlight=False, quiet=output.quiet)
    experiment = assign_cpus(experiment)
    if not resume:
        experiment = choose_pairing(experiment)
    require_cpus(experiment)
    require_max_loss(undecided, experiment.design.max_loss_percent)
    if experiment.design.max_loss_percent is not None:
        require_gate(experiment)
    limits = _limits(experiment, more_blocks, max_time)
    with (
        open_engine(experiment) as engine,
        only_measurement(f"dbdyno compare {source.file}", print_message, share=share),
    ):
        # Before the folder of the run exists: an earlier run that cannot be read leaves no empty one.
        expected = None if resume else make_plan(experiment, find_earlier(results, experiment))
        run = _open(source, experiment, results, resume=resume, engine=engine)
        try:
            # The stored experiment has an order seed: chosen above, or by the run that is resumed. Its checks
            # have the overrides of the file, although those of a run that has ended do not change.
            experiment = run.experiment().model_copy(update={"override": experiment.override})
            shown = experiment.with_max_time(limits.max_time_s)
            result.describe(console, shown, source.profile, chosen_workers(run))
            if expected is not None:
                print_text(console, f"  plan      {summary(expected)}", indent=12)
            show = partial(conclude, run, experiment, output)
            conclusion = _run(console, experiment, run, engine, limits=limits, conclude=show)
            verdict = show()
        finally:
            # A run that is locked is one that goes on.
            run.release()
    return run, _exit_code(verdict, conclusion, undecided)


def conclude(run: Run, experiment: Experiment, output: Output) -> VerdictFile:
    """Judge the run, print the result and write the report. If a run that had ended is resumed with other
    overrides, they are those of a later judgement with these. Raises StoreProblem.
    """
    shown = run
    with files.store_errors(run.path):
        verdict = judge(run)
        if experiment.override != run.experiment().override:
            removed = dict.fromkeys(run.experiment().override)
            changes = Rejudging(override={**removed, **experiment.override})
            shown = judgement = store_judgement(run, changes, None)
            verdict = judge(judgement)
            complete_judgement(judgement)
    result.show(shown, experiment, output)
    if output.writes_report:
        result.write_report(shown, output)
    elif not output.quiet:
        print(f"run: {run.path}", file=sys.stderr)
    return verdict


def _limits(experiment: Experiment, more_blocks: int | None, max_time: str | None) -> Limits:
    """The limits of this call. Raises Problem if the experiment has a fixed number of blocks."""
    stop = experiment.design.stop
    if stop is None and more_blocks is not None:
        raise Problem(
            f"the experiment has a fixed number of blocks ({experiment.design.blocks}); adding blocks after "
            "a look at the result makes wrong verdicts more frequent",
            "Start a new run, with stop = { top_up = true } instead of blocks in [design]",
        )
    if stop is None and max_time is not None:
        raise Problem(
            f"the experiment has a fixed number of blocks ({experiment.design.blocks}); --max-time has no "
            "effect",
            "Leave out --max-time, or add --set design.stop.max_blocks=20",
        )
    if max_time is None:
        return Limits(stop.max_time_s if stop else None, more_blocks)
    try:
        max_time_s = parse_duration_s(max_time)
    except ValueError as error:
        raise Problem(f"--max-time {max_time}: {error}") from error
    if not 0.0 < max_time_s <= DURATION_S_MAX:
        raise Problem(
            f"--max-time {max_time}: the time is more than 0 s and at most {format_duration(DURATION_S_MAX)}"
        )
    return Limits(max_time_s, more_blocks)


def resume_run(results: Path, experiment: Experiment) -> Run:
    """The newest run of the experiment, locked. One that has not ended gets the overrides of the experiment.
    Raises StoreProblem.
    """
    run = Run.resume(results, experiment)
    if not has_ended(run):
        run.use_overrides(experiment.override)
    return run


def _open(source: Source, experiment: Experiment, results: Path, *, resume: bool, engine: Engine) -> Run:
    if resume:
        return resume_run(results, experiment)
    experiment = experiment.with_order_seed(secrets.randbelow(ORDER_SEEDS))
    facts = environment(engine.version())
    content = source.file.read_bytes() if source.content is None else source.content
    return Run.create(results, experiment, content, source.profile, facts, assignments=source.assignments)


def _run(
    console: Console,
    experiment: Experiment,
    run: Run,
    engine: Engine,
    *,
    limits: Limits,
    conclude: Callable[[], VerdictFile],
) -> Conclusion:
    """Run the trials. An early end prints the command that continues the run, and the verdict so far if the
    experiment has `design.stop`, if a variant cannot run its load, or if the load exceeded a limit.
    """
    began, stored = time.monotonic(), len(run.trials())
    blocks = _blocks_after(run, limits)
    try:
        with interruptible("stopping the servers"), show_progress(console, experiment) as listen:
            conclusion = run_comparison(experiment, run, listen, engine, limits)
    except KeyboardInterrupt:
        print("dbdyno: interrupted", file=sys.stderr)
        if _print_resume_command(run, blocks) and experiment.design.stop is not None:
            conclude()
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Problem as problem:
        print_problem(problem)
        is_kept = _print_resume_command(run, blocks)
        is_new = experiment.design.stop is not None and len(run.trials()) > stored
        if is_kept and (is_new or isinstance(problem, CannotRunProblem | LimitProblem)):
            # The error above is the one to report.
            with contextlib.suppress(Problem):
                conclude()
        raise typer.Exit(problem.exit_code) from problem
    shares = shares_of([conclusion.seconds])
    share = f": {shares.text()}" if shares else ""
    print_text(console, f"done in {format_duration(time.monotonic() - began)}{share}", indent=2)
    return conclusion


def _blocks_after(run: Run, limits: Limits) -> int | None:
    """Number of finished blocks after a call that adds blocks."""
    return None if limits.more_blocks is None else len(finished_blocks(run)) + limits.more_blocks


def _print_resume_command(run: Run, blocks: int | None) -> bool:
    """After an early end, print what is stored and the command that continues the run, up to `blocks`
    finished blocks if the call was limited to them. Returns whether anything is stored.
    """
    try:
        if run.discard_if_empty():
            return False
        done = sum(trial.is_done for trial in run.trials())
        planned = len(run.schedule())
        left = None if blocks is None else blocks - len(finished_blocks(run))
    except Problem:
        # The store itself failed; that error has been printed.
        return False
    arguments = [*sys.argv[1:]] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    if left is not None:
        arguments = [re.sub(r"^(--blocks=)?\+\d+$", rf"\g<1>+{left}", argument) for argument in arguments]
    print(f"  {done} of {planned} trials are finished and kept in {run.path}", file=sys.stderr)
    if left != 0:
        print(f"  Continue with: dbdyno {shlex.join(arguments)}", file=sys.stderr)
    return True


def _exit_code(verdict: VerdictFile, conclusion: Conclusion, undecided: Undecided | None) -> ExitCode:
    codes = {comparison.curve.verdict for comparison in verdict.comparisons}
    stopped = bool(conclusion.stops) or "not-comparable" in codes
    if stopped or verdict.gate is None:
        return ExitCode.NOT_COMPARABLE if stopped else ExitCode.DONE
    return exit_code(verdict.gate, undecided)
