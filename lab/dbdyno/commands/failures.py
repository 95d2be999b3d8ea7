"""Failures as text, the same for every command: problems, and limits of this process or machine."""

from __future__ import annotations

import errno
import sys

from dbdyno.problem import Problem


def print_problem(problem: Problem) -> None:
    """Print a problem and its fix to standard error."""
    print(f"dbdyno: {problem.text}", file=sys.stderr)
    if problem.fix:
        print(f"  {problem.fix}", file=sys.stderr)


def exhausted_resource(error: Exception) -> str:
    """The resource of this process or machine whose limit caused an error; empty if none did."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return "file handles (ulimit -n)"
    # Python's only error of a thread that cannot start.
    if isinstance(error, MemoryError) or number == errno.ENOMEM or str(error) == "can't start new thread":
        return "memory or threads (ulimit -v, ulimit -u)"
    return ""
