"""Injects every fault into real comparisons, and writes the table of docs/reliability.md.

Every cell is a fault in a phase, for a kind of server and a product. A cell takes 10 to 20 s. Finished cells
are files in `--results`/cells, which the next call keeps, so the command can be interrupted at any time. Root
has all faults; without it those that need small disks or a network of their own have that as their reason.
With `--jobs` several cells are measured at once, each job with servers, directories and a network of its own.
The exit code is 1 if a cell has a forbidden outcome: lost, hangs, fault of dbdyno.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path

from . import kills
from .cells import KINDS, PHASES, PRODUCTS, Cell, Result
from .namespaces import enter
from .observe import Observer, PhaseNotReached
from .registry import FAULTS, cells, reason
from .scene import NothingToHit
from .table import table

BEGIN, END = "<!-- table of make bench-faults -->", "<!-- end of the table -->"
# Directories of one results folder or another in messages.
FOLDERS = re.compile(r"(?:/[\w.:-]+){2,}/")


def main() -> int:
    """Measure the selected cells that are not done, then write the table."""
    options = _options()
    enter()
    folder = options.results / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    selected = [
        cell
        for cell in cells()
        if _is_selected(cell, options) and not reason(cell, every_phase=options.every_phase)
    ]
    if options.fresh:
        for cell in selected:
            (folder / f"{cell.name}.json").unlink(missing_ok=True)
    if options.list:
        for cell in selected:
            print(f"{'done' if cell.load(folder) else 'open'}  {cell.name}")
        return 0
    if options.part:
        number, count = map(int, options.part.split("/"))
        selected = _together(selected)[number::count]
    elif options.jobs > 1:
        _run_jobs(options, selected)
    bad = 0
    with closing(Observer(options.results / "runs" / options.part.partition("/")[0])) as observer:
        for number, cell in enumerate(selected, start=1):
            result = cell.load(folder)
            if result is None or (options.again and result.outcome.is_forbidden):
                result = _measure(observer, cell, folder)
                if result is not None:
                    _show(number, len(selected), cell, result)
                    if not options.part:
                        _write(folder, options)
            bad += result is None or result.outcome.is_forbidden
        if options.kills:
            bad += kills.measure(options.results, options.kills, options.kill_places)
    if not options.part:
        _write(folder, options, show=True)
    return 1 if bad else 0


def _together(selected: Sequence[Cell]) -> list[Cell]:
    """The cells that can be measured at the same time as others: containers share one engine."""
    return [cell for cell in selected if cell.kind != "docker"]


def _run_jobs(options: argparse.Namespace, selected: Sequence[Cell]) -> None:
    """Measure cells in `options.jobs` processes. The caller then measures alone what they could not reach."""
    cells_of_jobs = _together(selected)
    count = min(options.jobs, len(cells_of_jobs))
    command = [sys.executable, "-m", "benchmarks.faults", "--results", str(options.results)]
    command += ["--cells", *(cell.name for cell in cells_of_jobs)]
    command += ["--every-phase"] if options.every_phase else []
    jobs = [subprocess.Popen([*command, "--part", f"{number}/{count}"]) for number in range(count)]
    for job in jobs:
        job.wait()


def _is_selected(cell: Cell, options: argparse.Namespace) -> bool:
    return (
        any(fnmatch(cell.name, pattern) for pattern in options.cells)
        and cell.fault in options.only
        and cell.phase in options.phases
        and cell.kind in options.kinds
        and cell.product in options.products
    )


def _measure(observer: Observer, cell: Cell, folder: Path) -> Result | None:
    try:
        result = observer.run(cell)
    except (PhaseNotReached, NothingToHit) as error:
        # The other cells do not need this one.
        print(f"FAILED {cell.name}: {error}", file=sys.stderr, flush=True)
        return None
    cell.store(folder, result)
    return result


def _show(number: int, total: int, cell: Cell, result: Result) -> None:
    said = f"{result.outcome}" + (f" ({result.why})" if result.why else "")
    mark = "BAD " if result.outcome.is_forbidden else "    "
    print(
        f"{mark}[{number}/{total}] {cell.name}: {said}; exit code {result.exit_code}, "
        f"{result.kept} of {result.before} kept, {result.took_s:.0f} s: {' / '.join(result.sees)}",
        flush=True,
    )


def _write(folder: Path, options: argparse.Namespace, *, show: bool = False) -> None:
    """Put the tables between the markers of the Markdown file, or print them."""
    results = {cell: one for cell in cells() if (one := cell.load(folder))}
    text = FOLDERS.sub("…/", table(results, list(kills.lines(options.results))))
    if options.output:
        page = options.output.read_text(encoding="utf-8")
        before, begin, rest = page.partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            raise SystemExit(f"{options.output} lacks the lines {BEGIN} and {END}")
        options.output.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    elif show:
        print(text)


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--cells", nargs="+", default=["*"], help="names, or patterns such as '*.measure.*'")
    parser.add_argument("--only", nargs="+", metavar="FAULT", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--phases", nargs="+", metavar="PHASE", choices=PHASES, default=list(PHASES))
    parser.add_argument("--kinds", nargs="+", metavar="KIND", choices=KINDS, default=list(KINDS))
    parser.add_argument("--products", nargs="+", metavar="PRODUCT", choices=PRODUCTS, default=list(PRODUCTS))
    parser.add_argument("--every-phase", action="store_true", help="of MySQL and PostgreSQL too")
    parser.add_argument("--results", type=Path, default=Path("results/faults"), help="folder of all results")
    parser.add_argument(
        "--output", type=Path, default=None, help="Markdown file with the markers of the table"
    )
    parser.add_argument(
        "--kills",
        type=int,
        default=0,
        help="how many kill points of dbdyno are tried for each of --kill-places",
    )
    parser.add_argument("--kill-places", nargs="+", choices=kills.PLACES, default=[kills.PLACES[0]])
    parser.add_argument("--jobs", type=int, default=1, help="how many cells are measured at once")
    # One of the processes of --jobs: its number, and how many there are.
    parser.add_argument("--part", default="", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help="repeat cells with a forbidden outcome")
    parser.add_argument("--fresh", action="store_true", help="measure finished cells again")
    parser.add_argument("--list", action="store_true", help="list the cells, and measure nothing")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
