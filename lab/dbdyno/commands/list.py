"""`dbdyno list`: one line for each stored run, or JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem

if TYPE_CHECKING:
    from dbdyno.report.summary import Summary

# Default of --limit.
SHOWN = 20


def list(  # noqa: A001 — the command's name
    experiment: Annotated[
        str | None,
        typer.Argument(metavar="EXPERIMENT", help="Only the runs of this experiment.", show_default=False),
    ] = None,
    results: options.Results = options.RESULTS,
    limit: Annotated[int, typer.Option(help="Show at most this many runs, the newest.", min=1)] = SHOWN,
    everything: Annotated[bool, typer.Option("--all", help="Show all runs.")] = False,
    output_format: options.TextOrJson = options.TextFormat.TEXT,
) -> None:
    """List stored runs with their verdicts, the newest first."""
    from dbdyno.report.summary import summarize
    from dbdyno.store.listing import list_runs

    paths = list_runs(results, experiment)
    if not paths:
        of_experiment = f" of {experiment}" if experiment else ""
        raise Problem(f"there is no run{of_experiment} below {results}", "Choose a folder with --results DIR")
    summaries = [summarize(path) for path in paths[: None if everything else limit]]
    if output_format is options.TextFormat.JSON:
        shown = [
            {key: value for key, value in asdict(summary).items() if key != "texts"} for summary in summaries
        ]
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        _print_table(summaries)
    if len(summaries) < len(paths):
        print(f"{len(paths) - len(summaries)} older runs are not shown (--all shows them)", file=sys.stderr)


def _print_table(summaries: Sequence[Summary]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from dbdyno.result_text import MISSING
    from dbdyno.terminal.console import result_console

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_column("began (UTC)", no_wrap=True)
    table.add_column("experiment", overflow="fold")
    table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("result", overflow="fold")
    for summary in summaries:
        # Runs of the first versions have no number.
        number = str(summary.number) if summary.number else Path(summary.path).name
        trials = f"{summary.trials}/{summary.planned}" if summary.planned else MISSING
        time = summary.began.replace("T", " ")[:16] or MISSING
        table.add_row(number, time, Text(summary.experiment), trials, Text(summary.text))
    result_console().print(table)
