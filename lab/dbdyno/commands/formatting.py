"""Problems as text, the same for every command."""

from __future__ import annotations

import os
import sys

from dbdyno.problem import Problem


def print_problem(problem: Problem) -> None:
    """Print a problem and its fix to standard error."""
    print(f"dbdyno: {problem.text}", file=sys.stderr)
    if problem.fix:
        print(f"  {problem.fix}", file=sys.stderr)


def discard_output() -> None:
    """After a broken pipe: without this Python reports it again when it closes standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
