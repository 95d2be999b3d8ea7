"""`dbdyno diff` with a document of others: its figures next to those of a run, or of another document."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dbdyno.commands.choices import TextFormat
from dbdyno.commands.console import SafeConsole, print_text
from dbdyno.commands.stored_run import judge_if_needed, open_run
from dbdyno.problem import ExitCode, Problem
from dbdyno.reading.result import FIGURE_TEXTS
from dbdyno.runs.imported import Measured, Row, of_document, of_trials, rows
from dbdyno.store.listing import Imported, is_imported

_CANNOT_TELL = (
    "Cannot tell whether they differ: the results were not measured in the same blocks, and a document has "
    "too few of each load."
)


def diff(first: Path, second: Path, results: Path, output: TextFormat, *, accept_changes: bool) -> None:
    """Print the figures that both have at equal loads. Raises Problem if there are none."""
    sides = [_variants(path, results, accept_changes=accept_changes) for path in (first, second)]
    pairs = [(one, other, list(rows(one, other))) for one in sides[0] for other in sides[1]]
    pairs = [pair for pair in pairs if pair[2]]
    if not pairs:
        raise Problem(
            f"{first} and {second} have no number of connections and no figure in common",
            "Measure the loads of the document: dbdyno read FILE --to-experiment FILE.toml",
            ExitCode.NOT_COMPARABLE,
        )
    if output is TextFormat.JSON:
        print(json.dumps([_as_dict(*pair) for pair in pairs], indent=1, ensure_ascii=False))
        return
    console = SafeConsole(highlight=False)
    for text in _lines(pairs):
        print_text(console, text, indent=4)
    print_text(console, _CANNOT_TELL, "bold")


def _variants(path: Path, results: Path, *, accept_changes: bool) -> list[Measured]:
    if is_imported(path):
        return of_document(Imported.open(path).reading)
    run = open_run(results, path, accept_changes=accept_changes)
    with run.reading():
        judge_if_needed(run)
        judged = run.judge_files()
    return [] if judged is None else of_trials(judged[1].trials)


def _lines(pairs: Sequence[tuple[Measured, Measured, list[Row]]]) -> Iterator[str]:
    for one, other, listed in pairs:
        yield f"{_name(one)}, then {_name(other)}"
        for row in listed:
            yield (
                f"  {row.connections} connections: {FIGURE_TEXTS[row.figure]} {_values(row.first)}, then "
                f"{_values(row.second)}: {row.change_percent:+.1f} %"
            )


def _name(one: Measured) -> str:
    name = one.name or "a variant without a name"
    return f"{name} ({one.workload})" if one.workload else name


def _values(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.5g}"
    return (
        f"{statistics.median(values):.5g} ({min(values):.5g} to {max(values):.5g} in {len(values)} results)"
    )


def _as_dict(one: Measured, other: Measured, listed: Sequence[Row]) -> dict[str, Any]:
    values = [{**asdict(row), "change_percent": round(row.change_percent, 3)} for row in listed]
    return {"first": _name(one), "second": _name(other), "rows": values}
