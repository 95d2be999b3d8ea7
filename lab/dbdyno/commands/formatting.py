"""Problems as text, the same for every command."""

from __future__ import annotations

import sys

from dbdyno.problem import Problem


def print_problem(problem: Problem) -> None:
    """Print a problem and its fix to standard error."""
    print(f"dbdyno: {problem.text}", file=sys.stderr)
    if problem.fix:
        print(f"  {problem.fix}", file=sys.stderr)
