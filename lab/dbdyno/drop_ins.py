"""Programs that dbdyno replaces, and how one is started: dbdyno-compat takes over this very process.

`exec` keeps the process: its number, standard input, signals sent to it and the exit code are then that
program's own, as a script that waits for the original expects them.
"""

from __future__ import annotations

import os
import signal

from dbdyno.binary import COMPAT, find_program

# Command of dbdyno -> the name under which dbdyno-compat is that program. A test starts each of them.
DROP_INS = {"sysbench": "sysbench", "slap": "mysqlslap"}

# Names under which `dbdyno shims` links dbdyno-compat: MariaDB calls its mysqlslap by a name of its own.
LINKS = (*DROP_INS.values(), "mariadb-slap")

# Python ignores these for itself, and what is ignored stays so across exec: `… | head` would never end.
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def hand_over(command: str, arguments: list[str]) -> None:
    """Become dbdyno-compat as `command`: does not return. Raises EngineProblem where there is none."""
    path = find_program(COMPAT)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execv(path, [DROP_INS[command], *arguments])  # noqa: S606 — to become a program is the point.
