"""Runs `dbdyno check`: every check that needs no load, on the design and on each variant's server.

The servers have the data of the experiment. Unlike a comparison, `preflight` continues after a finding of
level stop, and thus reports all findings.
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.run.coordinator import Coordinator
from dbdyno.run.data_state import DataState, has_snapshot
from dbdyno.run.engine import Engine
from dbdyno.run.progress import Listener
from dbdyno.servers.server import Description
from dbdyno.servers.workspace import Workspace


def preflight(experiment: Experiment, results: Path, engine: Engine, listen: Listener) -> list[Finding]:
    """The findings of all checks before the first trial, without duplicates, the most severe first.

    Raises Problem if a server cannot be started or its data cannot be loaded.
    """
    coordinator = Coordinator(experiment, None, engine, listen)
    coordinator.check(Moment.DESIGN, Context(experiment))
    peers: dict[str, Description] = {}
    with contextlib.closing(Workspace.open(results)) as workspace:
        # The servers that dbdyno starts have their data in every check, also if groups would load them again.
        loaded = _with_snapshots(experiment)
        data = DataState(loaded, workspace, engine, listen)
        titles = [workload.title for workload in experiment.workloads]
        data.require_space(titles, 1)
        for title, variant in itertools.product(titles, experiment.variants):
            workload = experiment.workload_for(variant, title)
            with_data = has_snapshot(loaded, variant)
            codes = [check.code for check in checks.ALL if with_data or check.code not in checks.NEED_DATA]
            snapshot = data.snapshot(workload, variant)
            with contextlib.closing(snapshot) if snapshot else contextlib.nullcontext():
                action = "restoring the data, starting" if variant.server.is_private else "connecting to"
                coordinator.step(f"{variant.name}: {action} the server")
                server = data.open(variant, snapshot)
                coordinator.check_server(variant, server, peers, codes, workload)
    return sorted(coordinator.findings.values(), key=lambda finding: checks.LEVELS.index(finding.level))


def _with_snapshots(experiment: Experiment) -> Experiment:
    """The experiment with data from snapshots wherever dbdyno starts the server."""
    if experiment.design.state != "reset":
        return experiment
    return experiment.model_copy(update={"design": experiment.design.model_copy(update={"state": "restore"})})
