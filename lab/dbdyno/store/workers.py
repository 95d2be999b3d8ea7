"""Stores the number of event loops of the load generator, and the pilot that determined it.

::

    workers.json                    `Workers`
    pilot/01-NAME.jsonl.gz          the engine's records of one step of the pilot
          01-NAME-hook-NAME.txt     output of the user's hooks around the steps of one variant and workload
"""

from __future__ import annotations

import shutil
from typing import TypedDict

from dbdyno.store import files
from dbdyno.store.run import Run

WORKERS = "workers.json"
FOLDER = "pilot"


class Usage(TypedDict):
    """What one step of the pilot measured."""

    # CPU time of the busiest event loop, and its time of waiting for a CPU, divided by wall time.
    busy: float
    waiting: float
    # Transactions per second.
    events_per_s: float


class Step(TypedDict):
    """One step of the pilot: a few seconds of load with a number of event loops."""

    variant: str
    workload: str
    workers: int
    # None if the step failed.
    usage: Usage | None
    failure: str | None
    # Name of the file with the engine's records.
    records: str


class Workers(TypedDict):
    """The content of workers.json."""

    schema: int
    # Event loops in every trial.
    workers: int
    # The largest number that the pilot may choose.
    limit: int
    # Why there was no pilot; "" if there was one.
    reason: str
    steps: list[Step]


def read_workers(run: Run) -> Workers | None:
    """workers.json; None if the run has none. Raises StoreProblem."""
    path = run.path / WORKERS
    if not path.exists():
        return None
    value: Workers = files.read_json(path)
    return value


def write_workers(run: Run, value: Workers) -> None:
    """Write workers.json. Raises StoreProblem."""
    files.write_json(run.path / WORKERS, value)


def discard_steps(run: Run) -> None:
    """Delete the files of a pilot that was interrupted. Raises StoreProblem."""
    folder = run.path / FOLDER
    if folder.exists():
        with files.store_errors(folder):
            shutil.rmtree(folder)


def chosen_workers(run: Run) -> int | None:
    """The number of event loops that the pilot has chosen; None if the experiment declares it."""
    stored = read_workers(run)
    return None if stored is None else stored["workers"]
