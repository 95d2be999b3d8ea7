"""Feeds mutated experiment files, stored runs, plans and documents to dbdyno, and prints how they end.

A document is accepted, or refused with a message. A traceback, a panic, 5 s without an end or 512 MiB for one
document are wrong: the exit code is then 1, and a document of each kind is kept in `--keep`. Equal seeds give
equal documents.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import documents, experiments, plans, runs
from .trial import Tally


def main() -> int:
    """Exit code 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("--experiments", type=int, default=10_000, help="number of experiment files")
    parser.add_argument("--runs", type=int, default=1_000, help="number of stored runs")
    parser.add_argument("--plans", type=int, default=1_000, help="number of plans")
    parser.add_argument("--documents", type=int, default=2_000, help="number of documents of `dbdyno read`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, default=Path("results/mutations"), help="folder of bad documents"
    )
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for tally in _measure(options, Path(folder)):
            print(tally.text(), flush=True)
            tally.keep(options.keep)
            wrong += tally.counts.total()
    return 1 if wrong else 0


def _measure(options: argparse.Namespace, folder: Path) -> Iterator[Tally]:
    yield experiments.measure(options.experiments, options.seed)
    yield documents.measure(options.documents, options.seed)
    yield plans.measure(options.plans, options.seed)
    yield runs.measure(options.runs, options.seed, folder)


if __name__ == "__main__":
    sys.exit(main())
