"""Paths of the two Rust programs. The drop-ins import this module first, so it imports only what it needs."""

from __future__ import annotations

import os
import sys

from dbdyno.problem import Problem

# The load generator.
ENGINE = "dbdyno-engine"
# Other tools' programs on that engine: sysbench, mysqlslap, mariadb-slap; and workloads that are Lua scripts.
COMPAT = "dbdyno-compat"


class EngineProblem(Problem):
    """The engine is missing, wrote invalid records, or did not end."""


def find_program(name: str) -> str:
    """The path of ENGINE or COMPAT: in the folder of this Python, then on PATH.

    Raises EngineProblem that lists both places.
    """
    search = os.environ.get("PATH", os.defpath)
    # os.path, since importing pathlib or shutil costs more than the rest of a drop-in's start.
    own = os.path.join(os.path.dirname(sys.executable), name)  # noqa: PTH118, PTH120
    for path in (own, *(f"{folder or '.'}/{name}" for folder in search.split(os.pathsep))):
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return path
    raise EngineProblem(
        f"{name} was not found: not at {own} and not in PATH, which is {search}",
        "Run make build in the clone, or pip install dbdyno, which brings it",
    )
