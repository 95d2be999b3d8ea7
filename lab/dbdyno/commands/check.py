"""`dbdyno check FILE.toml`: runs all checks that need no load.

The DESIGN checks come first, then the READY checks on each variant's server with its data. The loaded data
stay in the cache for the next run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import typer

from dbdyno import checks
from dbdyno.commands.interrupts import interruptible
from dbdyno.commands.sharing import only_measurement
from dbdyno.experiment.model import Experiment
from dbdyno.finding import LEVELS, Finding
from dbdyno.problem import ExitCode
from dbdyno.run import progress
from dbdyno.run.affinity import assign_cpus, require_cpus
from dbdyno.run.engine import Engine
from dbdyno.run.pairing import choose_pairing
from dbdyno.run.pilot import describe_plan
from dbdyno.run.preflight import preflight
from dbdyno.run.warmup import describe_probe

_HEADINGS = {
    "stop": "Stops (the comparison does not run, unless [override] gives a reason):",
    "warn": "Warnings (printed with the result):",
    "note": "Notes:",
}


def check(file: Path, experiment: Experiment, results: Path, *, share: bool) -> NoReturn:
    """Run the checks on an experiment, which `file` holds, and print what they find."""
    experiment = choose_pairing(assign_cpus(experiment))
    require_cpus(experiment)
    with only_measurement(f"check {file}", share=share), interruptible("stopping the servers"):
        findings = preflight(experiment, results, Engine(), _print_progress)
    _print(experiment, findings)
    raise typer.Exit(ExitCode.NOT_COMPARABLE if checks.blocking_findings(findings) else ExitCode.DONE)


def _print_progress(value: progress.Progress) -> None:
    if isinstance(value, progress.Step | progress.ProblemOccurred):
        print(value.text, file=sys.stderr, flush=True)


def _print(experiment: Experiment, findings: list[Finding]) -> None:
    """Print the findings by level, the most severe first, and a summary."""
    for level in LEVELS:
        of_level = [finding for finding in findings if finding.level == level]
        if of_level:
            print(_HEADINGS[level])
            for finding in of_level:
                print(f"  {finding.summary}")
                if finding.override is not None:
                    print(f"    overridden: {finding.override}")
    print(f"Load generator: CPUs {experiment.client.cpus or 'any'}, {describe_plan(experiment)}")
    if experiment.load.needs_probe:
        print(f"dbdyno compare will find the rates: {describe_probe(experiment)}")
    stopping = len(checks.blocking_findings(findings))
    if stopping:
        stops = "1 stop" if stopping == 1 else f"{stopping} stops"
        print(f"Experiment {experiment.name!r} is not ready for dbdyno compare: {stops}")
    else:
        print(f"Experiment {experiment.name!r} is ready for dbdyno compare")
