"""`dbdyno list`: one line for each stored run, or JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from dbdyno.commands.choices import TextFormat
from dbdyno.commands.console import result_console
from dbdyno.problem import Problem
from dbdyno.report import formatting
from dbdyno.store import Run, StoreProblem
from dbdyno.store.listing import began, is_running, list_runs
from dbdyno.store.run import run_order
from dbdyno.store.verdict import CombinedEffect, Comparison, FactorEffect


@dataclass(frozen=True)
class Summary:
    """A stored run in a few words and numbers."""

    number: int
    path: str
    experiment: str
    # ISO 8601 without a time zone, which is UTC; empty if the folder's name does not tell it.
    began: str
    # judged, not-judged, running or unreadable.
    state: str
    # Number of trials that have begun, and of planned ones.
    trials: int = 0
    planned: int = 0
    # One per verdict sentence.
    results: Sequence[dict[str, Any]] = ()
    # The same as text, or why the run cannot be read.
    text: str = ""


def list(  # noqa: A001 — the command's name
    results: Path, experiment: str | None, limit: int | None, output: TextFormat
) -> None:
    """Print the newest runs; all without a limit. Raises Problem if there is none."""
    paths = list_runs(results, experiment)
    if not paths:
        of_experiment = f" of {experiment}" if experiment else ""
        raise Problem(f"there is no run{of_experiment} below {results}", "Choose a folder with --results DIR")
    summaries = [_summary(path) for path in paths[:limit]]
    if output is TextFormat.JSON:
        print(json.dumps([asdict(one) for one in summaries], indent=1, ensure_ascii=False))
    else:
        _print_table(summaries)
    if len(summaries) < len(paths):
        print(f"{len(paths) - len(summaries)} older runs are not shown (--all shows them)", file=sys.stderr)


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
        trials = f"{one.trials}/{one.planned}" if one.planned else formatting.MISSING
        time = one.began.replace("T", " ")[:16] or formatting.MISSING
        table.add_row(number, time, Text(one.experiment), trials, Text(one.text))
    result_console().print(table)


def _summary(path: Path) -> Summary:
    time = began(path)
    known: dict[str, Any] = {
        "number": run_order(path)[0],
        "path": str(path),
        "experiment": path.parent.name,
        "began": "" if time is None else f"{time:%Y-%m-%dT%H:%M:%S}",
    }
    try:
        run = Run.open(path)
        trials, planned = run.trials_begun(), len(run.schedule())
        verdict = None if is_running(run) else run.verdict()
        if verdict is None:
            state = "running" if is_running(run) else "not-judged"
            return Summary(**known, state=state, trials=trials, planned=planned, text=state.replace("-", " "))
    except StoreProblem as problem:
        return Summary(**known, state="unreadable", text=f"cannot be read: {problem.text}")
    several = len({entry.workload for _, entry in verdict.sentences}) > 1
    return Summary(
        **known,
        state="judged",
        trials=trials,
        planned=planned,
        results=[_result(effect, entry) for effect, entry in verdict.sentences],
        text="; ".join(_text(entry, with_workload=several) for _, entry in verdict.sentences)
        or "one variant",
    )


def _result(effect: CombinedEffect | FactorEffect, entry: Comparison | FactorEffect) -> dict[str, Any]:
    name = {"factors": entry.factors} if isinstance(entry, FactorEffect) else {"variant": entry.variant}
    figures = {"effect_percent": effect.effect_percent, "interval_percent": effect.interval_percent}
    return {
        **name,
        "workload": entry.workload,
        "metric": effect.metric,
        "verdict": effect.verdict,
        **figures,
        "sentence": effect.sentence,
    }


def _text(entry: Comparison | FactorEffect, *, with_workload: bool) -> str:
    """A verdict in a few words: "b: faster +10.0 % [+8.0, +12.0]"."""
    on = f" on {entry.workload}" if with_workload else ""
    if isinstance(entry, FactorEffect):
        name, word, effect = " x ".join(entry.factors), formatting.factor_verdict(entry), entry
        return f"{name}{on}: {word} {formatting.estimate_and_interval(effect)}"
    return f"{entry.variant}{on}: {formatting.heading(entry)} {formatting.estimate_and_interval(entry.curve)}"
