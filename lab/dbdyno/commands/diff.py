"""`dbdyno diff RUN RUN`: whether the effects of one stored run are in another one; with a document of others,
its figures next to those of a run, or of another document.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from dbdyno.commands.choices import TextFormat
from dbdyno.commands.stored_run import judge_if_needed, open_run
from dbdyno.experiment.metrics import metric_text
from dbdyno.problem import ExitCode, Problem
from dbdyno.reading.result import FIGURE_TEXTS
from dbdyno.report import formatting
from dbdyno.runs.comparable import Side, differences, has_same_points, is_unpaired, side
from dbdyno.runs.replication import TITLES, Names, compare_comparisons, compare_factors
from dbdyno.runs.unpaired import Measured, Row, compare_unpaired, of_document, of_trials, rows
from dbdyno.store import Run, StoreProblem
from dbdyno.store.listing import EXPERIMENT, READING, Imported, find_folder, is_imported
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.several_runs import RepeatedComparison, Replication, UnpairedComparison
from dbdyno.terminal.console import SafeConsole, print_text, result_console

# The intervals of both runs hold together for all comparisons, and again for all loads of one.
_FAMILY = (
    "The chance that any of these words is wrong is at most 5 % for all loads combined, and 5 % for single "
    "loads."
)
_NOT_COMPARABLE_FIX = (
    "Compare two runs of the same experiment; the differences that are notes need not be removed"
)


def diff(first: Path, second: Path, results: Path, output: TextFormat, *, accept_changes: bool) -> None:
    """Print whether the effects of the first run are in the second. Raises Problem, with all differences if
    the runs cannot be compared.
    """
    folders = [find_folder(results, name, (EXPERIMENT, READING)) for name in (first, second)]
    if any(map(is_imported, folders)):
        _diff_documents(folders[0], folders[1], results, output, accept_changes=accept_changes)
        return
    runs = [open_run(results, name, accept_changes=accept_changes) for name in (first, second)]
    if runs[0].path.resolve() == runs[1].path.resolve():
        raise Problem(f"both runs are {runs[0].path}", "Name two runs; dbdyno list shows all")
    for run in runs:
        with run.reading():
            judge_if_needed(run)
    names = Names()
    with runs[0].reading():
        one = side(runs[0], names.first)
    with runs[1].reading():
        other = side(runs[1], names.second)
    notes = require_comparable(one, other)
    if is_unpaired(one.experiment, other.experiment):
        measured = [_measured(run) for run in runs]
        unpaired = compare_unpaired((one.experiment, measured[0]), (other.experiment, measured[1]))
        baseline = one.experiment.variants[0].name
        answer = Replication(
            first=one.place, second=other.place, baseline=baseline, notes=notes, unpaired=unpaired
        )
    else:
        answer = replication(one, other, notes, names)
    show(answer, output, names)


def require_comparable(one: Side, other: Side) -> list[str]:
    """The differences that weaken the comparison. Raises Problem with all that forbid it."""
    known = differences(one, other)
    if known.refusals:
        listed = "".join(f"\n  {text}" for text in known.refusals)
        raise Problem(
            f"{one.name} and {other.name} cannot be compared:{listed}",
            _NOT_COMPARABLE_FIX,
            ExitCode.NOT_COMPARABLE,
        )
    return list(known.notes)


def replication(one: Side, other: Side, notes: list[str], names: Names) -> Replication:
    """The answer for two comparisons. Raises Problem if there is nothing to compare."""
    same_points = has_same_points(one.experiment, other.experiment)
    answer = Replication(
        first=one.place,
        second=other.place,
        baseline=one.verdict.baseline,
        notes=notes,
        comparisons=compare_comparisons(one.verdict, other.verdict, names, same_points=same_points),
        factors=compare_factors(one.verdict, other.verdict, names) if same_points else [],
    )
    if not (answer.factors or any(part.curve or part.points for part in answer.comparisons)):
        raise Problem(
            f"{one.name} and {other.name} have no effect in common",
            "Compare runs with different variants",
            ExitCode.NOT_COMPARABLE,
        )
    return answer


def show(answer: Replication, output: TextFormat, names: Names) -> None:
    """Print the answer: the notes on standard error, and on standard output the loads, then the sentences."""
    if output is TextFormat.JSON:
        print(json.dumps(answer.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False))
        return
    err = SafeConsole(stderr=True, highlight=False)
    for note in answer.notes:
        print_text(err, f"note: {note}", indent=2)
    console = result_console()
    for part in answer.comparisons:
        _show_points(console, part, answer.baseline, names)
    for unpaired in answer.unpaired:
        _show_unpaired(console, unpaired)
    if answer.has_word:
        print_text(console, _FAMILY)
    for sentence in answer.sentences:
        print_text(console, sentence, "bold")
    sys.stdout.flush()


def _show_points(console: Console, part: RepeatedComparison, baseline: str, names: Names) -> None:
    """A line for each load, if there are several."""
    if len(part.points) < 2 and part.curve is not None:
        return
    print_text(console, f"{part.variant} against {baseline}, {part.workload}, {metric_text(part.metric)}")
    for point in part.points:
        effects = (
            f"{formatting.estimate_and_interval(effect)} in {name}"
            for effect, name in ((point.first, names.first), (point.second, names.second))
        )
        print_text(
            console, f"  {_at(point.at)}: {TITLES[point.word].lower()}; {', '.join(effects)}", indent=4
        )


def _show_unpaired(console: Console, part: UnpairedComparison) -> None:
    print_text(console, f"{part.workload}, {metric_text(part.metric)}")
    for point in part.points:
        values = (formatting.metric_value(part.metric, value) for value in (point.first, point.second))
        word = formatting.verdict(point.verdict)
        change = formatting.estimate_and_interval(point)
        print_text(console, f"  {_at(point.at or {})}: {', then '.join(values)}, {change}, {word}", indent=4)


def _at(at: object) -> str:
    ((unit, value),) = dict(at).items()  # type: ignore[call-overload]
    return formatting.load(unit, value)


def _measured(run: Run) -> MeasuredFile:
    judged = run.judge_files()
    if judged is None:
        raise StoreProblem(f"{run.path} has not been judged", f"Run dbdyno report {run.path}")
    return judged[1]


_CANNOT_TELL = (
    "Cannot tell whether they differ: the results were not measured in the same blocks, and a document has "
    "too few of each load."
)


def _diff_documents(
    first: Path, second: Path, results: Path, output: TextFormat, *, accept_changes: bool
) -> None:
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
    for text in _figure_lines(pairs):
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


def _figure_lines(pairs: Sequence[tuple[Measured, Measured, list[Row]]]) -> Iterator[str]:
    for one, other, listed in pairs:
        yield f"{_title(one)}, then {_title(other)}"
        for row in listed:
            yield (
                f"  {row.connections} connections: {FIGURE_TEXTS[row.figure]} {_values(row.first)}, then "
                f"{_values(row.second)}: {row.change_percent:+.1f} %"
            )


def _title(one: Measured) -> str:
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
    return {"first": _title(one), "second": _title(other), "rows": values}
