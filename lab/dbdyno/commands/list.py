"""`dbdyno list`: one line for each stored run, or JSON for scripts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem

if TYPE_CHECKING:
    from dbdyno.report.summary import Summary

# Default of --limit.
SHOWN = 20


def list(  # noqa: A001, PLR0917 — the command's name; one parameter per option.
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Only the runs of this experiment; * stands for any text, as in 'pool*'.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only runs that began at or after 2026-11-20, or 7d ago."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only runs that began on or before this day (UTC).")
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Only runs with such a result, as in faster, slower, undecided or running."
        ),
    ] = None,
    results: options.Results = options.RESULTS,
    limit: Annotated[int, typer.Option(help="Show at most this many runs, the newest.", min=1)] = SHOWN,
    everything: Annotated[bool, typer.Option("--all", help="Show all runs.")] = False,
    language: options.Language = "en",
    output_format: options.TextOrJson = "text",
) -> None:
    """List stored runs with their verdicts, the newest first."""
    from dbdyno.report.summary import summarize
    from dbdyno.store.listing import began, list_runs

    paths = list_runs(results)
    if experiment:
        paths = [path for path in paths if fnmatchcase(path.parent.name, experiment)]
    if not paths:
        of_experiment = f" of {experiment}" if experiment else ""
        raise Problem(f"there is no run{of_experiment} below {results}", "Choose a folder with --results DIR")
    first, last = _parse_date("--since", since), _parse_date("--until", until, is_end=True)
    paths = [path for path in paths if _is_between(began(path), first, last)]
    most = None if everything else limit
    if verdict is None:
        summaries = [summarize(path) for path in paths[:most]]
    else:
        # How many more there are is known only when all are read.
        having = (entry for entry in map(summarize, paths) if verdict in entry.words)
        summaries = [*islice(having, most)]
        paths = [Path(entry.path) for entry in summaries]
    if not summaries:
        raise Problem(
            f"none of the runs below {results} is like that", "Leave out --since, --until or --verdict"
        )
    if output_format == "json":
        shown = [
            {key: value for key, value in asdict(summary).items() if key != "texts"} for summary in summaries
        ]
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        _print_table(summaries, options.require_language(language))
    if len(summaries) < len(paths):
        _print_more(len(paths) - len(summaries), language)


def _parse_date(option: str, text: str | None, *, is_end: bool = False) -> datetime | None:
    """The time of "2026-11-20", "2026-11-20T14:30" or "7d" (ago), in UTC; as an end, that of the day's end.
    Raises Problem.
    """
    if text is None:
        return None
    if match := re.fullmatch(r"(\d{1,5})d", text.strip()):
        return datetime.now(UTC) - timedelta(days=int(match[1]))
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Problem(f"{option} {text}: this is no date", f"Write {option} 2026-11-20, or 7d") from None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return time + timedelta(days=1) if is_end and len(text.strip()) == len("2026-11-20") else time


def _is_between(time: datetime | None, first: datetime | None, last: datetime | None) -> bool:
    if time is None:
        return first is None and last is None
    return (first is None or time >= first) and (last is None or time < last)


def _print_more(number: int, language: str) -> None:
    from dbdyno.languages import translator
    from dbdyno.text import compose_count

    text = compose_count(
        number,
        "{number} older run is not shown (--all shows it)",
        "{number} older runs are not shown (--all shows them)",
    )
    print(translator(language)(text), file=sys.stderr)


def _print_table(summaries: Sequence[Summary], language: str) -> None:
    """One line for each run; on a terminal the last column is cut off at its width."""
    from dbdyno.languages import translator
    from dbdyno.result_text import MISSING
    from dbdyno.terminal.console import Column, result_console, table_lines
    from dbdyno.text import compose

    translate = translator(language)
    columns = [
        Column(translate(compose("number")), right=True),
        Column(translate(compose("began (UTC)"))),
        Column(translate(compose("experiment"))),
        Column(translate(compose("trials")), right=True),
        Column(translate(compose("result"))),
    ]
    rows = [
        (
            # Runs of the first versions have no number.
            str(summary.number) if summary.number else Path(summary.path).name,
            summary.began.replace("T", " ")[:16] or MISSING,
            summary.experiment,
            f"{summary.trials}/{summary.planned}" if summary.planned else MISSING,
            " ".join(translate(summary.text).split()),
        )
        for summary in summaries
    ]
    console = result_console()
    for text in table_lines(columns, rows):
        if console.is_terminal:
            console.print(text, markup=False, no_wrap=True, overflow="ellipsis")
        else:
            console.print(text, markup=False, soft_wrap=True)
