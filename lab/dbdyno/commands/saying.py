"""How a problem is told, by every command alike."""

from __future__ import annotations

import sys

from dbdyno.problem import Problem


def say(problem: Problem) -> None:
    """One problem on standard error: what is wrong, then the way out."""
    print(f"dbdyno: {problem.text}", file=sys.stderr)
    if problem.way_out:
        print(f"  {problem.way_out}", file=sys.stderr)
