"""Common command line options and exit code of the comparisons over numbers of connections."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def parser(prog: str, about: str | None, points: Sequence[int]) -> argparse.ArgumentParser:
    """The options of all comparisons; `points` is the default of `--connections`."""
    options = argparse.ArgumentParser(prog=prog, description=about)
    options.add_argument("--workload", nargs="+", default=["oltp_point_select", "oltp_read_write"])
    options.add_argument("--connections", nargs="+", type=int, default=points)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--seconds", type=int, default=10, help="length of one run")
    options.add_argument("--count-from", type=int, default=5, help="seconds of a run before the window")
    options.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    options.add_argument("--output", type=Path, default=None, help="Markdown file to write sections of")
    return options


def require(program: str, package: str) -> None:
    """Exit with the installation command if a peer is missing."""
    if shutil.which(program) is None:
        raise SystemExit(f"{program} is not installed: apt-get install {package}")


def end(missed: Iterable[str]) -> int:
    """Print the missed targets; the exit code is 0 if there are none, 1 otherwise."""
    lines = list(missed)
    for line in lines:
        print(f"MISSED {line}", file=sys.stderr)
    return 1 if lines else 0
