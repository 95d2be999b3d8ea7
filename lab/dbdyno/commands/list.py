"""`dbdyno list`: one line for each stored run, or JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from dbdyno import result_text
from dbdyno.commands.choices import TextFormat
from dbdyno.problem import Problem
from dbdyno.report.summary import Summary, summarize
from dbdyno.store.listing import list_runs
from dbdyno.terminal.console import result_console


def list(  # noqa: A001 — the command's name
    results: Path, experiment: str | None, limit: int | None, output: TextFormat
) -> None:
    """Print the newest runs; all without a limit. Raises Problem if there is none."""
    paths = list_runs(results, experiment)
    if not paths:
        of_experiment = f" of {experiment}" if experiment else ""
        raise Problem(f"there is no run{of_experiment} below {results}", "Choose a folder with --results DIR")
    summaries = [summarize(path) for path in paths[:limit]]
    if output is TextFormat.JSON:
        print(json.dumps([_as_dict(one) for one in summaries], indent=1, ensure_ascii=False))
    else:
        _print_table(summaries)
    if len(summaries) < len(paths):
        print(f"{len(paths) - len(summaries)} older runs are not shown (--all shows them)", file=sys.stderr)


def _as_dict(one: Summary) -> dict[str, Any]:
    return {key: value for key, value in asdict(one).items() if key != "texts"}


def _print_table(summaries: Sequence[Summary]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_column("began (UTC)", no_wrap=True)
    table.add_column("experiment", overflow="fold")
    table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("result", overflow="fold")
    for one in summaries:
        # Runs of the first versions have no number.
        number = str(one.number) if one.number else Path(one.path).name
        trials = f"{one.trials}/{one.planned}" if one.planned else result_text.MISSING
        time = one.began.replace("T", " ")[:16] or result_text.MISSING
        table.add_row(number, time, Text(one.experiment), trials, Text(one.text))
    result_console().print(table)
