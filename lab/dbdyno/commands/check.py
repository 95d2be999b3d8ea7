"""`dbdyno check FILE.toml`: says what is wrong with an experiment, and what its comparison needs.

By default no server starts; with --static nothing of the experiment is executed. With --with-data, the READY
checks follow on each variant's server with its data; the loaded data stay in the cache for the next run.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.commands.plan import bytes_text
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import announce, print_message
from dbdyno.text import compose, compose_count, join

if TYPE_CHECKING:
    from dbdyno.design.planning import Plan
    from dbdyno.experiment.model import Experiment
    from dbdyno.finding import Finding
    from dbdyno.run.preflight import Inspection
    from dbdyno.run.progress import Progress

_HEADINGS = {
    "stop": compose("Stops (the comparison does not run):"),
    "warn": compose("Warnings (printed with the result):"),
    "note": compose("Notes:"),
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
    language: options.Language = "en",
    _verbose: options.Verbose = False,
) -> None:
    """Validate an experiment; show what it needs on this machine."""
    from dbdyno.experiment.reading import read

    show = _printer(options.require_language(language))
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
    _print_findings(findings, show)
    earlier = planning.find_earlier(results, experiment)
    _print_needs(experiment, inspection, planning.plan(experiment, earlier), show)
    if static:
        print(*disclosure(experiment), sep="\n")
    if inspection.problem is not None:
        raise inspection.problem
    if not with_data:
        of_profile = f" --profile {shlex.quote(profile)}" if profile else ""
        unknown = compose("versions and data that are loaded already, because nothing was executed; ")
        show(
            compose(
                "Not checked: {unknown}settings, statements and data on the servers. dbdyno compare checks "
                "them first;",
                unknown=unknown if static else "",
            )
        )
        show(
            compose(
                "  now: {command}", command=f"dbdyno check {shlex.quote(str(file))}{of_profile} --with-data"
            )
        )
    stopping = len(checks.blocking_findings(findings))
    show(_conclusion(experiment, stopping))
    raise typer.Exit(ExitCode.NOT_COMPARABLE if stopping else ExitCode.DONE)


def _print_progress(value: Progress) -> None:
    from dbdyno.run.progress import ProblemOccurred, Step

    if isinstance(value, Step | ProblemOccurred):
        announce(value.text)


def _printer(language: str) -> Callable[[str], None]:
    """Prints texts in a language, on a terminal in lines that break between words."""
    from dbdyno.languages import translator
    from dbdyno.terminal.console import print_text, result_console

    console, translate = result_console(), translator(language)

    def show(text: str) -> None:
        print_text(console, translate(text), indent=4)

    return show


def _print_findings(findings: Iterable[Finding], show: Callable[[str], None]) -> None:
    """Print the findings by level, the most severe first."""
    for level, heading in _HEADINGS.items():
        of_level = [finding for finding in findings if finding.level == level]
        if of_level:
            show(heading)
            for finding in of_level:
                show(join("", ("  ", finding.summary)))
                if finding.override is not None:
                    show(join("  ", ("", compose("  overridden: {reason}", reason=finding.override))))
                elif finding.is_blocking:
                    show(join("", ("    ", finding.how_to_override)))


def _print_needs(
    experiment: Experiment, inspection: Inspection, made: Plan, show: Callable[[str], None]
) -> None:
    """Print how long the comparison takes, how much space it needs, and which servers it uses."""
    from dbdyno.experiment.model import OltpWorkload
    from dbdyno.run.pilot import describe_plan
    from dbdyno.run.warmup import describe_probe

    show(compose("Time: {time}", time=_time_text(experiment, made)))
    show(compose("Disk: {space}", space=_disk_text(experiment, inspection, made)))
    variants: dict[tuple[bool, str], list[str]] = {}
    for variant in experiment.variants:
        if (server := inspection.servers.get(variant.name)) is not None:
            variants.setdefault((variant.server.is_private, str(server)), []).append(variant.name)
    for (is_private, server), names in variants.items():
        listed = ", ".join(names)
        show(
            compose("Starts: {server} for {variants}", server=server, variants=listed)
            if is_private
            else compose("Connects to: {server} for {variants}", server=server, variants=listed)
        )
    loads = any(
        isinstance(workload, OltpWorkload) or workload.has_data
        for workload in experiment.distinct_workloads()
    )
    if loads and any(not variant.server.is_private for variant in experiment.variants):
        keeps = compose("keeps") if experiment.loading.keep else compose("drops at the end")
        show(
            compose(
                "Loads: missing tables into the servers that it connects to, which dbdyno {keeps}",
                keeps=keeps,
            )
        )
    show(compose("Installs: nothing. dbdyno uses installed programs and images, and downloads none"))
    show(
        compose(
            "Load generator: CPUs {cpus}, {loops}",
            cpus=experiment.client.cpus or compose("any"),
            loops=describe_plan(experiment),
        )
    )
    if experiment.load.needs_probe:
        show(compose("dbdyno compare will find the rates: {probe}", probe=describe_probe(experiment)))


def _time_text(experiment: Experiment, made: Plan) -> str:
    """The time of the whole comparison, and of its parts."""
    from dbdyno.experiment.base import format_duration

    stop, blocks = experiment.design.stop, experiment.design.blocks
    if stop is None:
        overall_s = made.before_s + blocks * made.block_s
        return compose(
            "about {time}: {parts}", time=format_duration(overall_s), parts=_blocks_text(blocks, made)
        )
    # Data are loaded whatever it takes.
    longest_s = max(made.before_s, min(stop.max_time_s, made.before_s + blocks * made.block_s))
    return compose(
        "at most about {time}, ends earlier once it is decided: up to {parts}",
        time=format_duration(longest_s),
        parts=_blocks_text(blocks, made),
    )


def _blocks_text(blocks: int, made: Plan) -> str:
    from dbdyno.experiment.base import format_duration

    return compose(
        "{blocks} of {trials}, {block} a block, after {before} of preparation",
        blocks=compose_count(blocks, "{number} block", "{number} blocks"),
        trials=compose_count(made.trials_per_block, "{number} trial", "{number} trials"),
        block=format_duration(made.block_s),
        before=format_duration(made.before_s),
    )


def _disk_text(experiment: Experiment, inspection: Inspection, made: Plan) -> str:
    """The space of data, copies and records."""
    records = made.records_bytes * made.trials_per_block * experiment.design.blocks
    texts = []
    if (space := inspection.space) is not None and space.copies:
        loaded = (
            compose("{size} of data to load", size=bytes_text(space.missing_bytes))
            if space.missing_bytes
            else compose("the data are loaded already")
        )
        copies = compose_count(
            space.copies,
            "{number} copy of {size}",
            "{number} copies of {size}",
            size=bytes_text(space.copy_bytes),
        )
        rest = space.bytes - space.missing_bytes - space.copies * space.copy_bytes
        parts = (loaded, copies, compose("{size} of logs", size=bytes_text(rest)))
        texts.append(
            compose(
                "{size} in {folder} ({parts}), of {free} free",
                size=bytes_text(space.bytes),
                folder=inspection.folder,
                parts=join(", ", parts),
                free=bytes_text(inspection.free_bytes),
            )
        )
    texts.append(compose("{size} of records of trials, which stay", size=bytes_text(records)))
    return join("; ", texts)


def _conclusion(experiment: Experiment, stopping: int) -> str:
    command = "dbdyno compare" if len(experiment.variants) > 1 else "dbdyno run"
    if not stopping:
        return compose(
            "Experiment {name} is ready for {command}", name=repr(experiment.name), command=command
        )
    return compose(
        "Experiment {name} is not ready for {command}: {stops}",
        name=repr(experiment.name),
        command=command,
        stops=compose_count(stopping, "{number} stop", "{number} stops"),
    )
