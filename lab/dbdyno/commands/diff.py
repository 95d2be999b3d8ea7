"""`dbdyno diff RUN RUN`: whether the effects of one stored run are in another one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from dbdyno.commands import diff_documents
from dbdyno.commands.choices import TextFormat
from dbdyno.commands.console import SafeConsole, print_text, result_console
from dbdyno.commands.stored_run import judge_if_needed, open_run
from dbdyno.experiment.metrics import metric_text
from dbdyno.problem import ExitCode, Problem
from dbdyno.report import formatting
from dbdyno.runs.comparable import Side, differences, has_same_points, is_unpaired, side
from dbdyno.runs.replication import TITLES, Names, compare_comparisons, compare_factors
from dbdyno.runs.unpaired import compare_unpaired
from dbdyno.store import Run, StoreProblem
from dbdyno.store.listing import EXPERIMENT, READING, find_folder, is_imported
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.several_runs import RepeatedComparison, Replication, UnpairedComparison

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
        diff_documents.diff(folders[0], folders[1], results, output, accept_changes=accept_changes)
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
