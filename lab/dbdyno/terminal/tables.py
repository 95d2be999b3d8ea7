"""The tables of results.

Of a comparison: under each variant a row for each load, with medians over the blocks, and the change from the
baseline with its interval. At 80 columns it fits for any names of variants. A suite has a row for each test,
and a change with its verdict for each variant.

Of `dbdyno run`: a row for each point; at most 80 columns wide::

    connections       tps        qps  errors  mean ms   p95 ms   p99 ms   max ms
              2     76.80    1536.08       0    26.04    27.17    28.40    30.33

tps and qps are transactions and statements per second, as in sysbench. With a rate the first column is the
offered rate. Latencies count from the scheduled start to the end; `errors` counts every error of the server,
retried or not. A failed point shows the reason instead of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from dbdyno import result_text
from dbdyno.experiment.metrics import metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.languages import Translator
from dbdyno.report import formatting
from dbdyno.report.tables import SuiteCellText, median_text, suite_tables
from dbdyno.store import StoredTrial
from dbdyno.store.measured import Figures, MeasuredFile, MeasuredTrial, Window
from dbdyno.store.verdict import Comparison, Effect, VerdictFile
from dbdyno.terminal.console import GAP, Column, fit, heading, line
from dbdyno.text import compose, join, mark

_BASELINE = mark("{name} (baseline)")


def result_lines(
    measured: MeasuredFile, experiment: Experiment, verdict: VerdictFile, workload: str, translate: Translator
) -> Iterator[Text]:
    """The lines of the table of one workload; `translate` translates."""
    comparisons = {
        comparison.variant: comparison
        for comparison in verdict.comparisons
        if comparison.workload == workload
    }
    trials = [trial for trial in measured.trials if trial.workload == workload]
    columns = [
        replace(column, heading=translate(column.heading)) for column in _columns(experiment, comparisons)
    ]
    rows = {
        variant.name: [
            _translate(row[: len(columns)], translate)
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


def table_note(experiment: Experiment, verdict: VerdictFile) -> str:
    """What the columns of the tables mean."""
    note = join("; ", formatting.table_notes(verdict))
    if experiment.design.metrics:
        return compose("{metric}: {note}", metric=metric_text(experiment.metrics[0]), note=note)
    return note


def _columns(experiment: Experiment, comparisons: dict[str, Comparison]) -> list[Column]:
    confidence = next(
        (formatting.ci_heading(comparison.points) for comparison in comparisons.values()), compose("CI")
    )
    load = compose("rate/s") if experiment.load.is_open else compose("connections")
    latency = latency_heading(experiment)
    names = (load, compose("transactions/s"), latency, compose("change"), confidence)
    if len(experiment.variants) == 1:
        return [Column(name, right=True) for name in names[:3]]
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
        entry = next((point for point in comparison.points if point.at == at), None) if comparison else None
        effect = _effect(entry, entry, verdict) if entry else ("", "", "")
        yield (f"{next(iter(at.values())):g}", *medians, *effect)


def _last_row(
    comparisons: dict[str, Comparison], variant: str, verdict: VerdictFile
) -> tuple[str, ...] | None:
    """The effect over all loads, or the capacity; None if a variant has neither."""
    comparison = comparisons.get(variant)
    first_comparison = comparison or next(iter(comparisons.values()), None)
    if first_comparison is None:
        return None
    title, *values = formatting.combined(first_comparison)
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
    merged = Column("", sum(column.width for column in columns[:3]) + 2 * len(GAP))
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


def suite_lines(verdict: VerdictFile, translate: Translator, width: int) -> Iterator[Text]:
    """The lines of the table of changes, or of that of factors, if there is one; costs are in the report.

    Columns that do not fit into `width` cells follow below, with the names of the rows again.
    """
    table = next(suite_tables(verdict), None)
    if table is None:
        return
    names = Column(translate(table.heading))
    columns = [Column(name, right=True) for name in table.columns]
    rows = [(cells, [name, *(_suite_cell(cell, translate) for cell in cells)]) for name, cells in table.rows]
    fit([names, *columns], [texts for _, texts in rows])
    yield Text(translate(table.title), style="bold")
    first = 0
    while first < len(columns):
        room, last = width - 1 - names.width, first
        while last < len(columns) and (last == first or room >= len(GAP) + columns[last].width):
            room -= len(GAP) + columns[last].width
            last += 1
        shown = [names, *columns[first:last]]
        yield Text(f" {heading(shown)}", style="dim")
        for cells, texts in rows:
            styles = {_STYLES.get(cell.code or "", "") for cell in cells[first:last]}
            # A line with one direction has its colour.
            style = styles.pop() if len(styles) == 1 else ""
            yield Text(f" {line(shown, [texts[0], *texts[first + 1 : last + 1]])}", style=style)
        first = last


def _suite_cell(cell: SuiteCellText, translate: Translator) -> str:
    parts = (cell.estimate, cell.interval, cell.word)
    text = " ".join(translate(part) for part in parts if part)
    return text.replace(result_text.MINUS, "-")


_US_PER_S = 1e6
_US_PER_MS = 1e3
_LATENCIES = ("latency_mean_us", "latency_p95_us", "latency_p99_us", "latency_max_us")


def _sweep_columns(first: str) -> list[Column]:
    widths = {"tps": 9, "qps": 10, "errors": 6, "mean ms": 7, "p95 ms": 7, "p99 ms": 7, "max ms": 7}
    return [
        Column(first, len("connections"), right=True),
        *(Column(name, width, right=True) for name, width in widths.items()),
    ]


def sweep_header(trial: StoredTrial) -> str:
    """The line of column names above the row of this trial and of those after it."""
    return heading(_sweep_columns(_load(trial)[0]))


def sweep_row(trial: StoredTrial) -> str:
    """The line of one point, from its stored trial."""
    # The table of a comparison needs no numpy.
    from dbdyno.measure.figures import figures
    from dbdyno.measure.recording import failure, read

    unit, point = _load(trial)
    columns = _sweep_columns(unit)
    recording = read(trial.records())
    failed = failure(trial, recording)
    if failed is not None:
        reason, _ = failed
        return f"{line(columns[:1], [f'{point:g}'])}  failed: {' '.join(reason.split())}"
    measured = recording.measure
    elapsed_s = (measured["end_us"] - measured["start_us"]) / _US_PER_S
    whole = figures(recording, Window(measured["start_us"], measured["end_us"], cut_us=None))
    statements = measured["reads"] + measured["writes"] + measured["other"]
    return line(
        columns,
        (
            f"{point:g}",
            f"{measured['events'] / elapsed_s:.2f}",
            f"{statements / elapsed_s:.2f}",
            str(sum(measured["errors"].values())),
            *(_latency(whole, name) for name in _LATENCIES),
        ),
    )


def peak(verdict: VerdictFile) -> str:
    """Where throughput is highest; "" with fewer loads than the judge needs for that."""
    for entry in verdict.scaling or ():
        at = formatting.load("connections", entry.highest.connections)
        text = compose(
            "highest throughput: {rate} transactions/s at {load}",
            rate=result_text.rate(entry.highest.throughput),
            load=at,
        )
        if entry.plateau is None:
            return text
        shown = {"text": text, "plateau": formatting.plateau(entry)}
        if entry.plateau == (1.0, 1.0):
            return compose("{text}; within 2 % of it {plateau} connection", **shown)
        return compose("{text}; within 2 % of it {plateau} connections", **shown)
    return ""


def _load(trial: StoredTrial) -> tuple[str, float]:
    """Heading and value of the column with the load."""
    at = trial.meta["at"]
    return ("rate/s", at["rate"]) if "rate" in at else ("connections", at["connections"])


def _latency(measured: Figures, name: str) -> str:
    lower_bound = ">" if name in measured.censored else ""
    return f"{lower_bound}{measured.metric(name) / _US_PER_MS:.2f}"
