"""The table of a comparison: under each variant a row for each load, with medians over the blocks, and the
change from the baseline with its interval. At 80 columns it fits for any names of variants. A suite has a row
for each test, and a change with its verdict for each variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from dbdyno import result_text
from dbdyno.commands.text_table import GAP, Column, fit, heading, line
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.languages import Translator
from dbdyno.report import formatting
from dbdyno.report.tables import SuiteCellText, median_text, suite_tables
from dbdyno.store.measured import MeasuredFile, MeasuredTrial
from dbdyno.store.verdict import Comparison, Effect, VerdictFile
from dbdyno.text import compose, mark

_BASELINE = mark("{name} (baseline)")


def result_lines(
    measured: MeasuredFile, experiment: Experiment, verdict: VerdictFile, workload: str, translate: Translator
) -> Iterator[Text]:
    """The lines of the table of one workload; `say` translates."""
    comparisons = {one.variant: one for one in verdict.comparisons if one.workload == workload}
    trials = [trial for trial in measured.trials if trial.workload == workload]
    columns = [replace(one, heading=translate(one.heading)) for one in _columns(experiment, comparisons)]
    rows = {
        variant.name: [
            _translate(row, translate)
            for row in _rows(
                [trial for trial in trials if trial.variant == variant.name],
                experiment,
                comparisons.get(variant.name),
                verdict,
            )
        ]
        for variant in experiment.variants
    }
    last = {
        variant.name: _translate(_last_row(comparisons, variant.name, verdict) or (), translate)
        for variant in experiment.variants
    }
    fit(columns, [row for of_variant in rows.values() for row in of_variant])
    # The title of the last row may extend over the two columns that it does not fill.
    fit(columns[3:], [row[3:] for row in last.values() if row])
    if len(experiment.workloads) > 1:
        yield Text(workload, style="bold")
    yield Text(f" {heading(columns)}", style="dim")
    for name, of_variant in rows.items():
        is_baseline = bool(comparisons) and name not in comparisons
        yield Text(translate(compose(_BASELINE, name=name)) if is_baseline else name, style="bold")
        yield from (Text(f" {line(columns, row)}") for row in of_variant)
        if summary := last[name]:
            yield Text(f" {_wide(columns, summary)}")


def latency_heading(experiment: Experiment) -> str:
    """The heading of the column with the latency that tables show."""
    return f"{metric_text(experiment.latency_metric).removesuffix(' latency')} ms"


def change_note(experiment: Experiment) -> str:
    """What the column "change" means."""
    note = formatting.CHANGE_NOTE
    if experiment.design.metrics:
        return compose("{metric}: {note}", metric=metric_text(experiment.metrics[0]), note=note)
    return note


def _columns(experiment: Experiment, comparisons: dict[str, Comparison]) -> list[Column]:
    confidence = next((formatting.ci_heading(one.points) for one in comparisons.values()), compose("CI"))
    load = compose("rate/s") if experiment.load.is_open else compose("connections")
    latency = latency_heading(experiment)
    names = (load, compose("transactions/s"), latency, compose("change"), confidence)
    return [*(Column(name, right=True) for name in names), Column(compose("verdict"))]


def _rows(
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
    comparison: Comparison | None,
    verdict: VerdictFile,
) -> Iterator[tuple[str, ...]]:
    """A row for each load of one variant."""
    for point in experiment.load.points():
        at = point.as_dict()
        of_point = [trial for trial in trials if trial.at == at]
        medians = [median_text(of_point, figure) for figure in ("throughput", experiment.latency_metric)]
        entry = next((one for one in comparison.points if one.at == at), None) if comparison else None
        effect = _effect(entry, entry, verdict) if entry else ("", "", "")
        yield (f"{next(iter(at.values())):g}", *medians, *effect)


def _last_row(
    comparisons: dict[str, Comparison], variant: str, verdict: VerdictFile
) -> tuple[str, ...] | None:
    """The effect over all loads, or the capacity; None if a variant has neither."""
    comparison = comparisons.get(variant)
    one = comparison or next(iter(comparisons.values()), None)
    if one is None:
        return None
    title, *values = formatting.combined(one)
    capacity_a, capacity_b = (value.removesuffix(" /s") for value in values)
    if comparison and len(comparison.points) > 1:
        return title, capacity_b, "", *_effect(comparison.curve, comparison.points[0], verdict)
    if not comparison and capacity_a:
        return title, capacity_a, "", "", "", ""
    return None


def _wide(columns: Sequence[Column], row: Sequence[str]) -> str:
    """The last row: its title extends into the next columns if they are empty."""
    title, throughput, _, *effect = row
    if throughput:
        return line(columns, row)
    merged = Column("", sum(one.width for one in columns[:3]) + 2 * len(GAP))
    return line([merged, *columns[3:]], [title, *effect])


def _effect(entry: Effect, default: Effect, judged: VerdictFile) -> tuple[str, str, str]:
    """Change, interval and verdict."""
    change, interval = formatting.estimate(entry), formatting.interval(entry, default.confidence)
    word = formatting.verdict(entry.verdict, judged.checks)
    return change, interval, word


def _translate(row: Sequence[str], translate: Translator) -> tuple[str, ...]:
    """A row in the language, with ASCII hyphens as minus signs, for scripts that parse them."""
    return tuple(translate(cell).replace(result_text.MINUS, "-") for cell in row)


_STYLES = {"faster": "green", "slower": "red"}


def suite_lines(verdict: VerdictFile, translate: Translator) -> Iterator[Text]:
    """The lines of the table of changes. Costs are in the report."""
    table = next(suite_tables(verdict))
    columns = [Column(translate(compose("test"))), *(Column(name, right=True) for name in table.variants)]
    rows = [
        (test, cells, [test, *(_suite_cell(one, translate) for one in cells)]) for test, cells in table.rows
    ]
    fit(columns, [texts for _, _, texts in rows])
    yield Text(translate(table.title), style="bold")
    yield Text(f" {heading(columns)}", style="dim")
    for _, cells, texts in rows:
        styles = {_STYLES.get(one.code or "", "") for one in cells}
        # A line with one direction has its colour.
        yield Text(f" {line(columns, texts)}", style=styles.pop() if len(styles) == 1 else "")


def _suite_cell(cell: SuiteCellText, translate: Translator) -> str:
    parts = (cell.estimate, cell.interval, cell.word)
    text = " ".join(translate(one) for one in parts if one)
    return text.replace(result_text.MINUS, "-")
