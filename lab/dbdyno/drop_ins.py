"""Starts the drop-ins for sysbench and mysqlslap: replaces this process by dbdyno-compat.

`exec` keeps the process id, so scripts get signals, standard input and exit code as from the original.
"""

from __future__ import annotations

import os
import signal

from dbdyno.binary import COMPAT, find_program

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
