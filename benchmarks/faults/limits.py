"""Limits of a process that are reached: file handles and memory, of dbdyno and of the load generator."""

from __future__ import annotations

import itertools
import resource
from pathlib import Path

import psutil

from .fault import WITH_ENGINE, Fault
from .scene import Scene

# Memory that a process may still get after the limit is set.
SPARE_BYTES = 4 << 20


def _limit_handles(process: psutil.Process) -> None:
    """Set the limit to the lowest number that is free; open files with higher numbers stay open."""
    opened = {int(path.name) for path in Path(f"/proc/{process.pid}/fd").iterdir()}
    limit = next(number for number in itertools.count() if number not in opened)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (limit, limit))


def _limit_memory(process: psutil.Process) -> None:
    limit = process.memory_info().vms + SPARE_BYTES
    resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))


def _lab(scene: Scene) -> psutil.Process:
    return psutil.Process(scene.lab.pid)


def _no_handles_in_engine(scene: Scene) -> None:
    for process in scene.wait_for(scene.engines):
        _limit_handles(process)


def _no_memory_in_engine(scene: Scene) -> None:
    for process in scene.wait_for(scene.engines):
        _limit_memory(process)


FAULTS = [
    Fault(
        "no-handles",
        "dbdyno may open no further file",
        lambda scene: _limit_handles(_lab(scene)),
    ),
    Fault(
        "no-handles-engine",
        "the load generator may open no further connection",
        _no_handles_in_engine,
        never=WITH_ENGINE,
    ),
    Fault(
        "no-memory",
        f"dbdyno gets at most {SPARE_BYTES >> 20} MiB more memory",
        lambda scene: _limit_memory(_lab(scene)),
    ),
    Fault(
        "no-memory-engine",
        f"the load generator gets at most {SPARE_BYTES >> 20} MiB more memory",
        _no_memory_in_engine,
        never=WITH_ENGINE,
    ),
]
