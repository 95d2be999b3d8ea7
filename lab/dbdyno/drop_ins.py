"""Programs that dbdyno replaces: dbdyno-compat takes over this process.

`exec` keeps process id, standard input, signals and exit code, as scripts that call sysbench or mysqlslap
expect.
"""

from __future__ import annotations

import os
import signal

from dbdyno.binary import COMPAT, find_program

# Command of dbdyno -> the program name with which dbdyno-compat is started. A test starts each of them.
DROP_INS = {"sysbench": "sysbench", "slap": "mysqlslap"}

# Names of the links that `dbdyno shims` creates; mariadb-slap is MariaDB's name of mysqlslap.
LINKS = (*DROP_INS.values(), "mariadb-slap")

# Python ignores these signals, and exec keeps them ignored: `… | head` would never end.
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def hand_over(command: str, arguments: list[str]) -> None:
    """Become dbdyno-compat as `command`: does not return. Raises EngineProblem where there is none."""
    path = find_program(COMPAT)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execv(path, [DROP_INS[command], *arguments])  # noqa: S606 — to become a program is the point.
