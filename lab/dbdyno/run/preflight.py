"""Runs `dbdyno check`: what can be said without a server (`inspect`), with --static also without executing
anything, and with --with-data also every check of each variant's server that needs no load (`preflight`).

Unlike a comparison, both continue after a finding of level stop, and thus report all findings.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.checks.tables import ExistingTables
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.run.coordinator import Coordinator
from dbdyno.run.data_state import DataState, Space, has_snapshot
from dbdyno.run.engine import Engine
from dbdyno.run.progress import Listener
from dbdyno.run.starting import check_server, count_slots, require_servers
from dbdyno.servers import describe_server
from dbdyno.servers.server import Description
from dbdyno.servers.workspace import Workspace


@dataclass(frozen=True)
class Inspection:
    """What is known about an experiment before a server starts."""

    findings: list[Finding]
    # Variant -> what dbdyno starts or connects to; empty if `problem` is about a server.
    servers: dict[str, str]
    # For the servers and the cache of loaded data; None if `problem` is about a server.
    space: Space | None
    # The folder of servers and loaded data, and the bytes that are free there.
    folder: Path
    free_bytes: int
    # Why the experiment cannot run here: a missing program, image, password, or too little space.
    problem: Problem | None


def inspect(
    experiment: Experiment, results: Path, engine: Engine, listen: Listener, *, executes: bool = True
) -> Inspection:
    """The findings of the checks of the design, and what the comparison needs on this machine. Starts no
    server, connects to none, and loads nothing; programs and images say their versions, unless `executes` is
    false. Raises Problem if no folder can hold the servers' data.
    """
    coordinator = Coordinator(experiment, None, engine, listen)
    coordinator.check(Moment.DESIGN, Context(experiment))
    servers: dict[str, str] = {}
    space, problem = None, None
    with contextlib.closing(Workspace.open(results)) as workspace:
        free_bytes = shutil.disk_usage(workspace.base).free
        try:
            if executes:
                require_servers(experiment, workspace)
            servers = {
                variant.name: describe_server(variant, executes=executes) for variant in experiment.variants
            }
            data = DataState(experiment, workspace, engine, listen, executes=executes)
            titles = [workload.title for workload in experiment.workloads]
            space = data.space(titles, count_slots(experiment))
            data.require_space(titles, count_slots(experiment))
        except Problem as raised:
            problem = raised
        return Inspection(_sorted(coordinator), servers, space, workspace.base, free_bytes, problem)


def _sorted(coordinator: Coordinator) -> list[Finding]:
    """The findings, the most severe first."""
    return sorted(coordinator.findings.values(), key=lambda finding: checks.LEVELS.index(finding.level))


def preflight(experiment: Experiment, results: Path, engine: Engine, listen: Listener) -> list[Finding]:
    """The findings of all checks before the first trial, without duplicates, the most severe first.

    Raises Problem if a server cannot be started or its data cannot be loaded.
    """
    coordinator = Coordinator(experiment, None, engine, listen)
    coordinator.check(Moment.DESIGN, Context(experiment))
    peers: dict[str, Description] = {}
    tables: dict[str, ExistingTables] = {}
    with contextlib.closing(Workspace.open(results)) as workspace:
        # The servers that dbdyno starts have their data in every check, also if groups would load them again.
        loaded = _with_snapshots(experiment)
        data = DataState(loaded, workspace, engine, listen)
        titles = [workload.title for workload in experiment.workloads]
        data.require_space(titles, 1)
        for title, variant in itertools.product(titles, experiment.variants):
            workload = experiment.workload_for(variant, title)
            with_data = has_snapshot(loaded, variant)
            codes = checks.codes_of(Moment.READY, needs_data=None if with_data else False)
            snapshot = data.snapshot(workload, variant)
            with contextlib.closing(snapshot) if snapshot else contextlib.nullcontext():
                action = "restoring the data, starting" if variant.server.is_private else "connecting to"
                coordinator.step(f"{variant.name}: {action} the server")
                server = data.open(variant, snapshot)
                check_server(coordinator, variant, server, peers, tables, codes=codes, workload=workload)
    return _sorted(coordinator)


def _with_snapshots(experiment: Experiment) -> Experiment:
    """The experiment with data from snapshots wherever dbdyno starts the server."""
    if experiment.design.state != "reset":
        return experiment
    return experiment.model_copy(update={"design": experiment.design.model_copy(update={"state": "restore"})})
