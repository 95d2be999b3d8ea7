"""Stores the client ceilings: ceiling.json has the throughput of the load generator without a server."""

from __future__ import annotations

from typing import TypedDict

from dbdyno.store import files
from dbdyno.store.run import Run

CEILING = "ceiling.json"


class Ceiling(TypedDict):
    """The ceiling of one workload."""

    # Connections of its highest load, with which it was measured.
    connections: int
    # Transactions per second; None if the measurement failed.
    events_per_s: float | None
    failure: str | None


def read_ceilings(run: Run) -> dict[str, Ceiling]:
    """Title of a workload -> its ceiling; {} if none was measured. Raises StoreProblem."""
    path = run.path / CEILING
    if not path.exists():
        return {}
    value: dict[str, Ceiling] = files.read_json(path)["workloads"]
    return value


def write_ceilings(run: Run, value: dict[str, Ceiling]) -> None:
    """Write ceiling.json. Raises StoreProblem."""
    files.write_json(run.path / CEILING, {"schema": 1, "workloads": value})
