"""Where the load engine lies. The drop-ins import it before anything else, so it needs next to nothing."""

from __future__ import annotations

import os
import sys

from dbdyno.problem import Problem

BINARY = "dbdyno-engine"


class EngineProblem(Problem):
    """The engine is missing, broke its contract, or did not end."""


def engine_path() -> str:
    """The engine's binary: beside the Python that runs, then on PATH. Raises EngineProblem listing both."""
    search = os.environ.get("PATH", os.defpath)
    # os.path and not pathlib or shutil, which cost more than all the rest of a drop-in's start.
    beside = os.path.join(os.path.dirname(sys.executable), BINARY)  # noqa: PTH118, PTH120
    for path in (beside, *(f"{folder or '.'}/{BINARY}" for folder in search.split(os.pathsep))):
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return path
    raise EngineProblem(
        f"the load engine {BINARY} was not found: not at {beside} and not in PATH, which is {search}",
        "Run make build in the clone, or pip install dbdyno, which brings it",
    )
