"""A private server, and plans of the bundled workload tpcc."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from dbdyno.experiment.model import Experiment, ServerSpec, Variant
from dbdyno.experiment.reading import from_document
from dbdyno.run.engine import Engine
from dbdyno.run.plan import plan
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.server import Address

# Names of the five transactions; the last statement of each has its name.
TRANSACTIONS = ("new-order", "payment", "order-status", "delivery", "stock-level")


@contextmanager
def private_server(
    product: Literal["mariadb", "mysql", "postgresql"],
    variables: Mapping[str, str | int],
    scratch: Path | None,
) -> Iterator[Address]:
    """The address of a private server, which stops at the end."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        Path(directory).chmod(0o711)
        workspace = Workspace.open(Path(directory))
        variant = Variant(name="tpcc", server=ServerSpec(product=product, variables=dict(variables)))
        with closing(workspace), closing(open_server(variant, workspace, None)) as server:
            server.restore()
            server.start()
            yield server.address()


def experiment(workload: Mapping[str, Any], connections: int, seconds: int, warmup: int) -> Experiment:
    """An experiment with the workload; its variants are not used."""
    return from_document(
        {
            "experiment": {"name": "tpcc"},
            "workload": [{"name": "tpcc", **workload}],
            "load": {
                "connections": [connections],
                "duration": f"{seconds}s",
                "warmup": f"{warmup}s",
                # Locks of the warehouses make some transactions wait.
                "answer_timeout": "10m",
            },
            "variant": [{"name": name, "server": {"product": "mariadb"}} for name in "ab"],
        },
        "tpcc",
        Path.cwd(),
    )


def engine_plan(of: Experiment, address: Address) -> dict[str, Any]:
    """The plan of the experiment's only workload."""
    return plan(of, of.workloads[0], address.target())


def prepare(of: Experiment, address: Address) -> None:
    """Load the tables. Raises SystemExit."""
    result = Engine().run("prepare", engine_plan(of, address), address.environment())
    if not result.done:
        raise SystemExit(f"dbdyno-engine prepare: {result.failure()}")
