"""`dbdyno diff RUN RUN`: whether the effects of one stored run are in another one; with a document of others,
its figures next to those of a run, or of another document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbdyno.commands import options
from dbdyno.commands.completion import stored_runs
from dbdyno.problem import ExitCode, Problem

if TYPE_CHECKING:
    from dbdyno.runs.independent import Measured, Row
    from dbdyno.runs.replication import Names
    from dbdyno.store import Run
    from dbdyno.store.measured import MeasuredFile
    from dbdyno.store.several_runs import Replication

# The intervals of both runs hold together for all comparisons, and again for all loads of one.
_FAMILY = (
    "The chance that any of these words is wrong is at most 5 % for all loads combined, and 5 % for single "
    "loads."
)
_CANNOT_TELL = (
    "Cannot tell whether they differ: the results were not measured in the same blocks, and a document has "
    "too few of each load."
)


def diff(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Folder or number of the first run, or the name of an experiment for its newest run.",
            show_default=False,
            autocompletion=stored_runs,
        ),
    ],
    second: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The second run.", show_default=False, autocompletion=stored_runs),
    ],
    results: options.Results = options.RESULTS,
    accept_changes: options.AcceptChanges = False,
    output_format: options.TextOrJson = "text",
) -> None:
    """Show whether the effects of one run replicate in another one."""
    from dbdyno.commands.stored_run import judge_if_needed, open_run
    from dbdyno.runs.comparable import are_independent, require_comparable, side
    from dbdyno.runs.independent import compare_independent
    from dbdyno.runs.replication import Names, compare_runs
    from dbdyno.store.listing import EXPERIMENT, READING, find_folder, is_imported
    from dbdyno.store.several_runs import Replication

    folders = [find_folder(results, name, (EXPERIMENT, READING)) for name in (first, second)]
    if any(map(is_imported, folders)):
        sides = [_variants(path, results, accept_changes=accept_changes) for path in folders]
        _show_documents(folders, sides, output_format)
        return
    runs = [open_run(results, name, accept_changes=accept_changes) for name in (first, second)]
    if runs[0].path.resolve() == runs[1].path.resolve():
        raise Problem(f"both runs are {runs[0].path}", "Name two runs; dbdyno list shows all")
    for run in runs:
        with run.reading():
            judge_if_needed(run)
    names = Names()
    with runs[0].reading():
        first_side = side(runs[0], names.first)
    with runs[1].reading():
        second_side = side(runs[1], names.second)
    notes = require_comparable(first_side, second_side)
    if are_independent(first_side.experiment, second_side.experiment):
        baseline = first_side.experiment.variants[0].name
        answer = Replication(
            first=first_side.place,
            second=second_side.place,
            baseline=baseline,
            notes=notes,
            independent=compare_independent(
                (first_side.experiment, _measured(runs[0])), (second_side.experiment, _measured(runs[1]))
            ),
        )
    else:
        answer = compare_runs(first_side, second_side, notes, names)
    show(answer, output_format, names)


def show(answer: Replication, output_format: options.TextFormat, names: Names) -> None:
    """Print the answer: the notes on standard error, and on standard output the loads, then the sentences."""
    from dbdyno.terminal.console import SafeConsole, print_text, result_console

    if output_format == "json":
        print(json.dumps(answer.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False))
        return
    err = SafeConsole(stderr=True, highlight=False)
    for note in answer.notes:
        print_text(err, f"note: {note}", indent=2)
    console = result_console()
    for text in _load_lines(answer, names):
        print_text(console, text, indent=4 if text.startswith(" ") else 0)
    if answer.has_word:
        print_text(console, _FAMILY)
    for sentence in answer.sentences:
        print_text(console, sentence, "bold")
    sys.stdout.flush()


def _load_lines(answer: Replication, names: Names) -> Iterator[str]:
    """For each comparison a heading and a line for each load; of two variants only if there are several."""
    from dbdyno.experiment.metrics import metric_text
    from dbdyno.report import formatting
    from dbdyno.runs.replication import TITLES

    def load(at: Any) -> str:
        ((unit, value),) = dict(at).items()
        return formatting.load(unit, value)

    for part in answer.comparisons:
        if len(part.points) < 2 and part.curve is not None:
            continue
        yield f"{part.variant} against {answer.baseline}, {part.workload}, {metric_text(part.metric)}"
        for point in part.points:
            effects = (
                f"{formatting.estimate_and_interval(effect)} in {name}"
                for effect, name in ((point.first, names.first), (point.second, names.second))
            )
            yield f"  {load(point.at)}: {TITLES[point.word].lower()}; {', '.join(effects)}"
    for entry in answer.independent:
        yield f"{entry.workload}, {metric_text(entry.metric)}"
        for at in entry.points:
            values = (formatting.metric_value(entry.metric, value) for value in (at.first, at.second))
            yield (
                f"  {load(at.at or {})}: {', then '.join(values)}, {formatting.estimate_and_interval(at)}, "
                f"{formatting.verdict(at.verdict)}"
            )


def _variants(path: Path, results: Path, *, accept_changes: bool) -> list[Measured]:
    from dbdyno.commands.stored_run import judge_if_needed, open_run
    from dbdyno.runs.independent import of_document, of_trials
    from dbdyno.store.listing import Imported, is_imported

    if is_imported(path):
        return of_document(Imported.open(path).reading)
    run = open_run(results, path, accept_changes=accept_changes)
    with run.reading():
        judge_if_needed(run)
        return of_trials(_measured(run).trials)


def _measured(run: Run) -> MeasuredFile:
    judged = run.judge_files()
    assert judged is not None, "the run has been judged"
    return judged[1]


def _show_documents(
    folders: Sequence[Path], sides: Sequence[Sequence[Measured]], output_format: options.TextFormat
) -> None:
    """Print the figures that both have at equal loads. Raises Problem if there are none."""
    from dbdyno.runs.independent import rows
    from dbdyno.terminal.console import SafeConsole, print_text

    pairs = [(entry, side, list(rows(entry, side))) for entry in sides[0] for side in sides[1]]
    pairs = [pair for pair in pairs if pair[2]]
    if not pairs:
        raise Problem(
            f"{folders[0]} and {folders[1]} have no number of connections and no figure in common",
            "Measure the loads of the document: dbdyno read FILE --to-experiment FILE.toml",
            ExitCode.NOT_COMPARABLE,
        )
    if output_format == "json":
        print(json.dumps([_as_dict(*pair) for pair in pairs], indent=1, ensure_ascii=False))
        return
    console = SafeConsole(highlight=False)
    for text in _figure_lines(pairs):
        print_text(console, text, indent=4)
    print_text(console, _CANNOT_TELL, "bold")


def _figure_lines(pairs: Sequence[tuple[Measured, Measured, list[Row]]]) -> Iterator[str]:
    from dbdyno.reading.result import FIGURE_TEXTS
    from dbdyno.result_text import counted

    for pair, second_measured, listed in pairs:
        yield f"{_title(pair)}, then {_title(second_measured)}"
        for row in listed:
            yield (
                f"  {counted(row.connections, 'connection')}: {FIGURE_TEXTS[row.figure]} "
                f"{_values(row.first)}, then {_values(row.second)}: {row.change_percent:+.1f} %"
            )


def _title(measured: Measured) -> str:
    name = measured.name or "a variant without a name"
    return f"{name} ({measured.workload})" if measured.workload else name


def _values(values: Sequence[float]) -> str:
    from statistics import median

    if len(values) == 1:
        return f"{values[0]:.5g}"
    return f"{median(values):.5g} ({min(values):.5g} to {max(values):.5g} in {len(values)} results)"


def _as_dict(first: Measured, second: Measured, listed: Sequence[Row]) -> dict[str, Any]:
    values = [{**asdict(row), "change_percent": round(row.change_percent, 3)} for row in listed]
    return {"first": _title(first), "second": _title(second), "rows": values}
