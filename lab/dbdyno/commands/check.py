"""`dbdyno check FILE.toml`: says what is wrong with an experiment, and what its comparison needs.

By default no server starts; with --static nothing of the experiment is executed. With --with-data, the READY
checks follow on each variant's server with its data; the loaded data stay in the cache for the next run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.commands.plan import bytes_text
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import announce, print_message

if TYPE_CHECKING:
    from dbdyno.design.planning import Plan
    from dbdyno.experiment.model import Experiment
    from dbdyno.finding import Finding
    from dbdyno.run.preflight import Inspection
    from dbdyno.run.progress import Progress

_HEADINGS = {
    "stop": "Stops (the comparison does not run):",
    "warn": "Warnings (printed with the result):",
    "note": "Notes:",
}


def check(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    file: options.ExperimentFile,
    profile: options.Profile = None,
    assignments: options.Assignments = None,
    results: Annotated[
        Path, typer.Option(help="Folder in which runs and loaded data are stored.")
    ] = options.RESULTS,
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data",
            help="Also start or connect to the servers, load the data, and check settings, statements and "
            "data.",
        ),
    ] = False,
    static: Annotated[
        bool,
        typer.Option(
            "--static",
            help="Execute nothing of the experiment, not even a program's --version, and connect to nothing: "
            "for the file of another person. Shows what a comparison would execute and read.",
        ),
    ] = False,
    share_machine: options.ShareMachine = False,
    _verbose: options.Verbose = False,
) -> None:
    """Validate an experiment; show what it needs on this machine."""
    from dbdyno.experiment.reading import read

    experiment = read(file, profile, assignments or [])
    if static and with_data:
        raise Problem("--static and --with-data exclude each other", "Leave one of them out")

    from dbdyno import checks
    from dbdyno.design import planning
    from dbdyno.design.planning import choose_pairing
    from dbdyno.run.affinity import assign_cpus, require_cpus
    from dbdyno.run.engine import Engine
    from dbdyno.run.machine_lock import only_measurement
    from dbdyno.run.preflight import inspect, preflight
    from dbdyno.servers.disclosure import disclosure

    experiment = choose_pairing(assign_cpus(experiment))
    require_cpus(experiment)
    engine = Engine()
    inspection = inspect(experiment, results, engine, _print_progress, executes=not static)
    findings = inspection.findings
    if with_data and inspection.problem is None:
        alone = only_measurement(f"dbdyno check {file}", print_message, share=share_machine)
        with alone, interruptible("stopping the servers"):
            findings = preflight(experiment, results, engine, _print_progress)
    _print_findings(findings)
    earlier = planning.find_earlier(results, experiment)
    _print_needs(experiment, inspection, planning.plan(experiment, earlier))
    if static:
        print(*disclosure(experiment), sep="\n")
    if inspection.problem is not None:
        raise inspection.problem
    if not with_data:
        of_profile = f" --profile {shlex.quote(profile)}" if profile else ""
        unknown = (
            "versions and data that are loaded already, because nothing was executed; " if static else ""
        )
        print(
            f"Not checked: {unknown}settings, statements and data on the servers. dbdyno compare checks "
            "them first;\n"
            f"  now: dbdyno check {shlex.quote(str(file))}{of_profile} --with-data"
        )
    stopping = len(checks.blocking_findings(findings))
    _print_conclusion(experiment, stopping)
    raise typer.Exit(ExitCode.NOT_COMPARABLE if stopping else ExitCode.DONE)


def _print_progress(value: Progress) -> None:
    from dbdyno.run.progress import ProblemOccurred, Step

    if isinstance(value, Step | ProblemOccurred):
        announce(value.text)


def _print_findings(findings: Iterable[Finding]) -> None:
    """Print the findings by level, the most severe first."""
    for level, heading in _HEADINGS.items():
        of_level = [finding for finding in findings if finding.level == level]
        if of_level:
            print(heading)
            for finding in of_level:
                print(f"  {finding.summary}")
                if finding.override is not None:
                    print(f"    overridden: {finding.override}")
                elif finding.is_blocking:
                    print(f"    {finding.how_to_override}")


def _print_needs(experiment: Experiment, inspection: Inspection, made: Plan) -> None:
    """Print how long the comparison takes, how much space it needs, and which servers it uses."""
    from dbdyno.experiment.model import OltpWorkload
    from dbdyno.run.pilot import describe_plan
    from dbdyno.run.warmup import describe_probe

    print(f"Time: {_time_text(experiment, made)}")
    print(f"Disk: {_disk_text(experiment, inspection, made)}")
    variants: dict[str, list[str]] = {}
    for variant in experiment.variants:
        if (server := inspection.servers.get(variant.name)) is not None:
            verb = "Starts" if variant.server.is_private else "Connects to"
            variants.setdefault(f"{verb}: {server}", []).append(variant.name)
    for line, names in variants.items():
        print(f"{line} for {', '.join(names)}")
    loads = any(
        isinstance(workload, OltpWorkload) or workload.has_data
        for workload in experiment.distinct_workloads()
    )
    if loads and any(not variant.server.is_private for variant in experiment.variants):
        keeps = "keeps" if experiment.loading.keep else "drops at the end"
        print(f"Loads: missing tables into the servers that it connects to, which dbdyno {keeps}")
    print("Installs: nothing. dbdyno uses installed programs and images, and downloads none")
    print(f"Load generator: CPUs {experiment.client.cpus or 'any'}, {describe_plan(experiment)}")
    if experiment.load.needs_probe:
        print(f"dbdyno compare will find the rates: {describe_probe(experiment)}")


def _time_text(experiment: Experiment, made: Plan) -> str:
    """The time of the whole comparison, and of its parts."""
    from dbdyno.experiment.base import format_duration

    trials = f"{made.trials_per_block} trial{'' if made.trials_per_block == 1 else 's'}"
    parts = (
        f"blocks of {trials}, {format_duration(made.block_s)} a block, after "
        f"{format_duration(made.before_s)} of preparation"
    )
    stop, blocks = experiment.design.stop, experiment.design.blocks
    if stop is None:
        overall_s = made.before_s + blocks * made.block_s
        return f"about {format_duration(overall_s)}: {blocks} {parts}"
    # Data are loaded whatever it takes.
    longest_s = max(made.before_s, min(stop.max_time_s, made.before_s + blocks * made.block_s))
    return (
        f"at most about {format_duration(longest_s)}, ends earlier once it is decided: up to {blocks} {parts}"
    )


def _disk_text(experiment: Experiment, inspection: Inspection, made: Plan) -> str:
    """The space of data, copies and records."""
    records = made.records_bytes * made.trials_per_block * experiment.design.blocks
    texts = []
    if (space := inspection.space) is not None and space.copies:
        loaded = f"{bytes_text(space.missing_bytes)} of data to load" if space.missing_bytes else ""
        copies = (
            f"{space.copies} {'copies' if space.copies > 1 else 'copy'} of {bytes_text(space.copy_bytes)}"
        )
        rest = f"{bytes_text(space.bytes - space.missing_bytes - space.copies * space.copy_bytes)} of logs"
        parts = ", ".join(filter(None, (loaded or "the data are loaded already", copies, rest)))
        texts.append(
            f"{bytes_text(space.bytes)} in {inspection.folder} ({parts}), of "
            f"{bytes_text(inspection.free_bytes)} free"
        )
    return "; ".join([*texts, f"{bytes_text(records)} of records of trials, which stay"])


def _print_conclusion(experiment: Experiment, stopping: int) -> None:
    command = "dbdyno compare" if len(experiment.variants) > 1 else "dbdyno run"
    if stopping:
        stops = "1 stop" if stopping == 1 else f"{stopping} stops"
        print(f"Experiment {experiment.name!r} is not ready for {command}: {stops}")
    else:
        print(f"Experiment {experiment.name!r} is ready for {command}")
