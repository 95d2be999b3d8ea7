"""Measures how precise an answer is after 10 and 20 minutes, for designs of dbdyno and for sysbench.

Four questions: equal servers and a planted difference, for point selects on MariaDB and for oltp_read_write
on PostgreSQL; the server has CPU 0 and the client CPU 1. Every pair of a question and a design is a cell,
which takes the longest of `--minutes`. Finished cells are files in `--results`/cells, which the next call
keeps, so the command can be interrupted at any time. The machine must be quiet: all cells take seven hours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from results import machine, write_section

from dbdyno.problem import Problem

from . import lab, sysbench
from .cells import Cell, Result
from .questions import QUESTIONS, TRIAL_S, WARMUP_S
from .table import table

DESIGNS = {**{name: one.text for name, one in lab.DESIGNS.items()}, **sysbench.DESIGNS}


def main() -> int:
    """Exit code 0 if all selected cells are done, 1 if some failed."""
    options = _options()
    cells = _cells(options.repeats, options.minutes)
    selected = [cell for cell in cells if any(fnmatch(cell.name, one) for one in options.cells)]
    folder = options.results / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    if options.list:
        for cell in selected:
            print(f"{'done' if cell.load(folder) else 'open'}  {cell.name}")
        return 0
    failed = 0
    for cell in selected:
        if cell.load(folder) is not None:
            continue
        print(f"{cell.name}: {max(options.minutes):g} min", file=sys.stderr, flush=True)
        measure = lab.measure if cell.design in lab.DESIGNS else sysbench.measure
        try:
            result = measure(cell, options.minutes, options.results)
        except (SystemExit, Problem, LookupError) as error:
            # The other cells do not need this one.
            print(f"FAILED {cell.name}: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        cell.store(folder, result)
        print(_describe(result), file=sys.stderr)
        print(_progress(cells, folder, options.minutes), file=sys.stderr, flush=True)
        _write(cells, options)
    _write(cells, options, show=True)
    print(_progress(cells, folder, options.minutes), file=sys.stderr)
    return 1 if failed else 0


def _cells(repeats: int, minutes: Sequence[float]) -> list[Cell]:
    """All cells. An interrupted series has every question and design once before it has any twice."""
    return [
        Cell(question, design, repeat, tuple(minutes))
        for repeat in range(1, repeats + 1)
        for design in DESIGNS
        for question in QUESTIONS
    ]


def _progress(cells: Sequence[Cell], folder: Path, minutes: Sequence[float]) -> str:
    done = [one for cell in cells if (one := cell.load(folder))]
    hours = sum(one.wall_s for one in done) / 3600.0
    all_hours = len(cells) * max(minutes) / 60.0
    return f"{len(done)} of {len(cells)} cells, {hours:.1f} of {all_hours:.1f} hours"


def _describe(result: Result) -> str:
    said = [
        f"{one.minutes:g} min " + ("no interval" if one.half_width is None else f"±{one.half_width:.2f} %")
        for one in result.answers
    ]
    return f"  {', '.join(said)}; measuring {result.measuring * 100:.0f} % of the time"


def _write(cells: Sequence[Cell], options: argparse.Namespace, *, show: bool = False) -> None:
    """Print the tables, or replace the section of the Markdown file."""
    folder = options.results / "cells"
    results = {cell: one for cell in cells if (one := cell.load(folder))}
    text = "\n\n".join(
        [
            "## Precision per minute",
            f"{machine()}; server on CPU 0, client on CPU 1; trials of {TRIAL_S:g} s after a warm-up of "
            f"{WARMUP_S:g} s (sysbench: without). Wall time from the start of the command, with the data "
            f"already loaded. {_progress(cells, folder, options.minutes)}.",
            table(results, options.minutes, DESIGNS),
        ]
    )
    if options.output:
        write_section(options.output, "precision", text)
    if show:
        print(text)


def _minutes(text: str) -> list[float]:
    return sorted(float(one) for one in text.split(","))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__)
    parser.add_argument("--minutes", type=_minutes, default=[10.0, 20.0], help="such as 10,20 (the default)")
    parser.add_argument(
        "--results", type=Path, default=Path("results/precision"), help="folder of all results"
    )
    parser.add_argument("--cells", nargs="+", default=["*"], help="names, or patterns such as '*.slices.*'")
    parser.add_argument("--repeats", type=int, default=1, help="how often every cell is measured")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write a section of")
    parser.add_argument("--list", action="store_true", help="list the cells, and measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
