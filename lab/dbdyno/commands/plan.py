"""`dbdyno plan FILE.toml`: what a comparison will cost, and how precise its answer will be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.commands.completion import stored_runs
from dbdyno.problem import Problem

if TYPE_CHECKING:
    from dbdyno.design.planning import Earlier, Plan
    from dbdyno.experiment.model import Experiment


def plan(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: options.ExperimentFile,
    profile: options.Profile = None,
    results: Annotated[Path, typer.Option(help="Folder with earlier runs.")] = options.RESULTS,
    assignments: options.Assignments = None,
    noise: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Expected standard deviation of a trial, as in 3%.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Folder of a run whose times and noise to expect.",
            autocompletion=stored_runs,
        ),
    ] = None,
) -> None:
    """Show what a comparison will cost and how precise it will be."""
    from dbdyno.experiment.base import parse_percent
    from dbdyno.experiment.reading import read

    experiment = read(file, profile, assignments or [])

    from dbdyno.design import planning
    from dbdyno.design.planning import choose_pairing
    from dbdyno.run.affinity import assign_cpus

    experiment = choose_pairing(assign_cpus(experiment))
    noise_percent = None if noise is None else parse_percent(noise)
    if noise is not None and (noise_percent is None or noise_percent >= 100.0):
        raise Problem(
            f"--noise {noise}: this is not a percentage below 100", "Write a number and %, such as --noise 3%"
        )
    earlier = planning.find_earlier(results, experiment) if like is None else [_judged(like)]
    computed = planning.plan(experiment, earlier, noise_percent)
    print(*describe(experiment, profile, computed), *suggest_length(experiment, earlier, computed), sep="\n")


def suggest_length(experiment: Experiment, earlier: Sequence[Earlier], made: Plan) -> list[str]:
    """A better length of trials, if there is one."""
    from dbdyno.design.planning import better_trial_length

    better = better_trial_length(experiment, earlier, made)
    if better is None:
        return []
    length_s, new, now = better
    return [
        "",
        f"  trials of {length_s:g} s would give ±{_percent(new)} in the same time as ±{_percent(now)} now",
    ]


def _judged(path: Path) -> Earlier:
    from dbdyno.design.planning import read_earlier
    from dbdyno.store import Run
    from dbdyno.verdict import judge

    run = Run.open(path, "Restore the files from a copy, or name another run")
    with run.reading():
        if run.judge_files() is None:
            judge(run)
        return read_earlier(run, is_named=True)


def describe(experiment: Experiment, profile: str | None, made: Plan) -> list[str]:
    """The lines of a plan."""
    from dbdyno.experiment.base import format_duration
    from dbdyno.experiment.family import is_factorial
    from dbdyno.run.pilot import has_pilot
    from dbdyno.run.warmup import describe_probe, has_trials, has_warmup_trials

    stop = experiment.design.stop
    trials = f"{made.trials_per_block} trial{'' if made.trials_per_block == 1 else 's'}"
    steps = ["loading", "test starts"]
    steps += ["pilots of the load generator"] if has_pilot(experiment) else []
    steps += ["warm-up trials"] if has_warmup_trials(experiment) else []
    steps += ["a probe"] if has_trials(experiment) and not has_warmup_trials(experiment) else []
    before = f", after {format_duration(made.before_s)} of {', '.join(steps[:-1])} and {steps[-1]}"
    lines = [
        f"{experiment.name}" + (f" ({profile})" if profile else ""),
        *([f"  rates     {describe_probe(experiment)}"] if experiment.load.needs_probe else []),
        f"  block     {trials} in about {format_duration(made.block_s)}{before}",
        f"  time      {made.shares.text()}",
        f"  disk      {bytes_text(made.data_bytes)} for servers and data, "
        f"{bytes_text(made.trials_per_block * made.records_bytes)} of records per block",
        f"  design    {experiment.design.end_text}",
        f"  noise     {made.unknown or made.scatters[0].source}",
        *(
            ["  factors   the precision is that of two variants; effects are means of such comparisons"]
            if is_factorial(experiment)
            else []
        ),
        "",
        *(
            [" " * 31 + "  ".join(f"{scatter.source:>26}" for scatter in made.scatters)]
            if len(made.scatters) > 1
            else []
        ),
        "  blocks  trials         time  " + "  ".join("half width  detects (90 %)" for _ in made.scatters),
    ]
    for row in made.rows:
        cells = "  ".join(
            f"{'—':>10}  {'—':>12}"
            if entry is None
            else f"{'±' + _percent(entry[0]):>10}  {_percent(entry[1]):>12}"
            for entry in row.precision
        )
        beyond = ", beyond max_time" if stop is not None and row.seconds > stop.max_time_s else ""
        lines.append(
            f"  {row.blocks:>6}  {row.trials:>6}  {format_duration(row.seconds):>11}  {cells}{beyond}"
        )
    return lines


def summary(made: Plan) -> str:
    """The plan in one line, for the head of `compare`."""
    from dbdyno.experiment.base import format_duration
    from dbdyno.result_text import counted

    measuring = f"measuring {made.shares.measuring * 100:.0f} % of the time"
    text = f"about {format_duration(made.block_s)} per block, {measuring}"
    if len(made.scatters) > 1:
        return f"{text}; the precision is unknown without an earlier run (see dbdyno plan)"
    widths = [
        f"{counted(row.blocks, 'block')} ±{_percent(row.precision[0][0])}"
        for row in made.rows
        if row.precision[0]
    ]
    return f"{text}; {', '.join(widths)} ({made.scatters[0].source})"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 10.0 or not math.isfinite(value) else f"{value:.1f} %"


def bytes_text(value: float) -> str:
    """Bytes with a unit: "12.0 MB", "1.2 GB"."""
    return f"{value / 1e9:.1f} GB" if value >= 1e9 else f"{value / 1e6:.1f} MB"
