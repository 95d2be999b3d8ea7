"""The two Rust programs: where they are, and the drop-ins for sysbench and mysqlslap, which replace this
process by dbdyno-compat. `exec` keeps the process id, so scripts get signals, standard input and exit code
as from the original. The drop-ins import this module first, so it imports only what it needs.
"""

from __future__ import annotations

import os
import signal
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
    beside_python = os.path.join(os.path.dirname(sys.executable), name)  # noqa: PTH118, PTH120
    for path in (beside_python, *(f"{folder or '.'}/{name}" for folder in search.split(os.pathsep))):
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return path
    raise EngineProblem(
        f"{name} was not found: not at {beside_python} and not in PATH, which is {search}",
        "Run make build in the clone, or pip install dbdyno, which brings it",
    )


# Command of dbdyno -> the program name with which dbdyno-compat is started. A test starts each of them.
DROP_INS = {"sysbench": "sysbench", "slap": "mysqlslap"}

# Names of the links that `dbdyno shims` creates; mariadb-slap is MariaDB's name of mysqlslap.
LINKS = (*DROP_INS.values(), "mariadb-slap")

# Python ignores these signals, and ignored signals stay ignored after exec: `… | head` would never end.
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def hand_over(command: str, arguments: list[str]) -> None:
    """Replace this process by dbdyno-compat as `command`. Raises EngineProblem if it is not installed."""
    path = find_program(COMPAT)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execv(path, [DROP_INS[command], *arguments])  # noqa: S606 — no shell is needed.
