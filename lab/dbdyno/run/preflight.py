"""Every check that needs no load: the design, then each variant's server with the real data.

Unlike a comparison it goes on after a stop, so that everything is told at once.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.finding import Finding
from dbdyno.run import progress
from dbdyno.run.ending import closing
from dbdyno.run.engine import Engine
from dbdyno.run.holding import Holding, has_snapshot
from dbdyno.run.loading import Tell
from dbdyno.servers.server import Description, Server
from dbdyno.servers.workspace import Workspace


def preflight(experiment: Experiment, results: Path, engine: Engine, tell: Tell) -> list[Finding]:
    """What all checks find before the first trial, each thing once, gravest first.

    Raises Problem where a server cannot be started or its data cannot be loaded.
    """
    findings = checks.run(Moment.DESIGN, Context(experiment))
    first: dict[str, Description] = {}
    with contextlib.closing(Workspace.open(results)) as workspace:
        for workload, variant in itertools.product(experiment.workloads, experiment.variants):
            with _server(experiment, workload, variant, workspace, engine=engine, tell=tell) as server:
                description = server.describe()
                context = Context(
                    experiment,
                    variant=variant,
                    server=server,
                    description=description,
                    peers=dict(first),
                    workload=workload,
                )
                findings += checks.run(Moment.READY, context, _codes(experiment, variant))
            first.setdefault(variant.name, description)
    once = {(finding.code, finding.subject, finding.text): finding for finding in findings}
    return sorted(once.values(), key=lambda finding: checks.LEVELS.index(finding.level))


def _codes(experiment: Experiment, variant: Variant) -> list[str]:
    """The checks that can be made: there are data to check where a snapshot has brought them."""
    with_data = has_snapshot(experiment, variant)
    return [check.code for check in checks.ALL if with_data or check.code not in checks.OF_DATA]


@contextlib.contextmanager
def _server(
    experiment: Experiment,
    workload: Workload,
    variant: Variant,
    workspace: Workspace,
    *,
    engine: Engine,
    tell: Tell,
) -> Iterator[Server]:
    """One variant's server, up and with the workload's data, for a while."""

    def say(text: str) -> None:
        tell(progress.Step(text, 0.0))

    holding = Holding(experiment, workspace, engine, tell, say)
    with contextlib.ExitStack() as stack:
        snapshot = holding.snapshot(workload, variant)
        if snapshot is not None:
            stack.enter_context(contextlib.closing(snapshot))
        server = stack.enter_context(closing(holding.open(variant, snapshot), tell))
        if variant.server.started:
            say(f"{variant.name}: restoring the data")
            server.restore()
        say(f"{variant.name}: starting the server")
        server.start()
        yield server
