"""Every check that needs no load: the design, then each variant's server with the real data.

Unlike a comparison it goes on after a stop, so that everything is told at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dbdyno import checks
from dbdyno.checks import Context, Finding, Moment
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.run import progress
from dbdyno.run.engine import Engine
from dbdyno.run.loading import Tell, load_snapshot
from dbdyno.servers import open_server
from dbdyno.servers.server import Description, Server
from dbdyno.servers.workspace import Workspace


def preflight(experiment: Experiment, results: Path, engine: Engine, tell: Tell) -> list[Finding]:
    """What all checks find before the first trial, each thing once, gravest first.

    Raises Problem where a server cannot be started or its data cannot be loaded.
    """
    findings = checks.run(Moment.DESIGN, Context(experiment))
    first: dict[str, Description] = {}
    with closing(Workspace.open(results)) as workspace:
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
                findings += checks.run(Moment.READY, context)
            first.setdefault(variant.name, description)
    once = {(finding.code, finding.subject, finding.text): finding for finding in findings}
    return sorted(once.values(), key=lambda finding: checks.LEVELS.index(finding.level))


@contextmanager
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

    with (
        closing(
            load_snapshot(experiment, workload, variant, workspace, engine=engine, tell=tell, say=say)
        ) as snapshot,
        closing(open_server(variant, workspace, snapshot)) as server,
    ):
        say(f"{variant.name}: restoring the data, starting the server")
        server.restore()
        server.start()
        yield server
