"""The Python part of dbdyno: experiment files, servers, statistics, verdicts and reports.

`dbdyno.open("results/…")` reads a stored run as data frames.
"""

from __future__ import annotations

# Type checkers take it for true; importing typing would delay each start of a drop-in.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from dbdyno.analysis import Results

__version__ = "0.2.0"


def open(name: str | Path | None = None, results: str | Path = "results") -> Results:  # noqa: A001 — dbdyno.open
    """The results of a stored run as data frames; see `dbdyno.analysis.open_results`.

    `name` is the run's folder, its number, or its experiment (the newest run of it); None is the newest run
    below the folder `results`. Raises `dbdyno.problem.Problem`.
    """
    from dbdyno.analysis import open_results  # noqa: PLC0415 — every command imports this module.

    return open_results(name, results)
