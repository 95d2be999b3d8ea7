"""The measured figures as rows: medians over the blocks of every variant at every load, of its kinds of
statements and of its background loads, and the longest gaps; the tables of a suite; and a run as CSV or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TypeVar

from dbdyno import result_text
from dbdyno.experiment.metrics import FEW_PERCENTILES, LATENCY_MEAN, PERCENTILES, THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.report import formatting
from dbdyno.report.model import Report, gather, value
from dbdyno.result_text import write_csv
from dbdyno.store import Run
from dbdyno.store.measured import (
    SHOWN_PERCENTILES,
    BackgroundFigures,
    Figures,
    MeasuredTrial,
    Point,
    StatementFigures,
)
from dbdyno.store.verdict import FactorEffect, Suite, VerdictFile
from dbdyno.text import compose

# What a trial has by name: figures of its statements, or of its background loads.
AnyPart = TypeVar("AnyPart", StatementFigures, BackgroundFigures)

COLUMNS = (
    "trial", "block", "variant", "workload", "unit", "level", "status", "failure", "failed_by",
    "throughput_per_s", LATENCY_MEAN, *PERCENTILES, "latency_max_us", "lower_bound_of", "events",
    "errors_per_1000", "dropped", "backlog", "longest_gap_us",
)  # fmt: skip


def as_json(run: Run) -> str:
    """verdict.json. Raises StoreProblem if the run was not judged."""
    return json.dumps(gather(run).verdict.model_dump(mode="json"), indent=1, ensure_ascii=False)


def as_csv(run: Run) -> str:
    """One line per planned trial. Times are in microseconds.

    The columns of a trial without a result are empty. If its server failed, its throughput is 0, so that an
    average over the column includes the failure.
    """
    report = gather(run)
    # Metrics of design.metrics that no column has.
    further = [metric for metric in report.experiment.metrics if metric not in (THROUGHPUT, *COLUMNS)]
    columns = (*COLUMNS, *further)
    rows: list[list[object]] = [[*columns]]
    for trial in report.trials:
        plan = [trial.index + 1, trial.block + 1, trial.variant, trial.workload]
        load = [trial.point.unit, f"{trial.point.value:g}"]
        status = [trial.status, trial.failure or "", trial.failed_by or ""]
        throughput = value(trial, "throughput")
        figures = {
            **({**asdict(trial.figures), **trial.figures.percentiles} if trial.figures else {}),
            "throughput_per_s": "" if throughput is None else throughput,
            "lower_bound_of": " ".join(trial.figures.censored) if trial.figures else "",
            "longest_gap_us": _known(trial.figures.longest_gap_us) if trial.figures else "",
        }
        values = [figures.get(column, "") for column in columns[len(plan) + len(load) + len(status) :]]
        rows.append([*plan, *load, *status, *values])
    return write_csv(rows)


def _known(figure: int | None) -> int | str:
    return "" if figure is None else figure


# Column -> figure. Latencies are milliseconds.
LOAD_COLUMNS = {
    compose("transactions/s"): "throughput",
    compose("mean ms"): "latency_mean_us",
    **{f"p{percent:g} ms": name for name, percent in SHOWN_PERCENTILES.items()},
    compose("errors per 1,000"): "errors_per_1000",
}


@dataclass(frozen=True)
class LoadRow:
    """One variant at one load."""

    variant: str
    load: str
    # In the order of LOAD_COLUMNS.
    cells: Sequence[str]
    # Why there are no figures; empty if there are some.
    failure: str = ""


def load_rows(report: Report, workload: str) -> Iterator[LoadRow]:
    """A row for each variant and load, without those that were not run."""
    for variant in report.variants:
        trials = [trial for trial in report.trials if (trial.variant, trial.workload) == (variant, workload)]
        for point in loads_in_order(trials, report.experiment):
            of_point = [trial for trial in trials if trial.point == point]
            if any(trial.failed_by != "not-run" for trial in of_point):
                yield _load_row(variant, of_point)


def loads_in_order(trials: Sequence[MeasuredTrial], experiment: Experiment) -> list[Point]:
    """The loads of the trials in the order of the experiment file; a block runs them in random order."""
    of_trials = {trial.point for trial in trials}
    points = [Point.of(point.as_dict()) for point in experiment.load.points()]
    return [point for point in points if point in of_trials]


def _load_row(variant: str, trials: Sequence[MeasuredTrial]) -> LoadRow:
    cells = [median_text(trials, figure) for figure in LOAD_COLUMNS.values()]
    failures = [trial.failure or "" for trial in trials if trial.figures is None]
    failure = failures[0] if len(failures) == len(trials) else ""
    return LoadRow(variant, formatting.load(*trials[0].point), cells, failure)


def median_text(trials: Sequence[MeasuredTrial], figure: str) -> str:
    """The median of a figure, without its unit (latencies in milliseconds): "> x" if a trial knows only a
    lower bound, an en dash without results. A trial in which the server failed has a throughput of 0, and no
    other figure.
    """
    is_throughput = figure == "throughput"
    with_result = [
        trial for trial in trials if trial.figures is not None or (is_throughput and trial.is_result)
    ]
    if not with_result:
        return result_text.MISSING
    value = median(trial.value(figure) for trial in with_result)
    if not figure.startswith("latency_"):
        return result_text.rate(value) if is_throughput else f"{value:,.2f}" if value else "0"
    is_bound = any(trial.figures is not None and figure in trial.figures.censored for trial in with_result)
    return ("> " if is_bound else "") + result_text.milliseconds(value)


@dataclass(frozen=True)
class StatementRow:
    """One kind of statement of one variant at one load."""

    name: str
    load: str
    variant: str
    # Statements per transaction, then p50, p95 and p99 in milliseconds.
    cells: Sequence[str]


@dataclass(frozen=True)
class BackgroundRow(StatementRow):
    """One background load, with one variant and load. Its cells: transactions per second, demanded and
    reached; p50, p95 and p99 in milliseconds; errors per 1,000 transactions; row-count mismatches of all
    blocks.
    """

    @property
    def sentence(self) -> str:
        """The row in words."""
        demanded, reached, _, p95, _, errors, mismatches = self.cells
        of_rate = compose(" of {rate}", rate=demanded) if demanded != result_text.MISSING else ""
        return compose(
            "background load {name} with {variant} at {load}: {reached}{of_rate} transactions/s, "
            "p95 {p95} ms, {errors} errors per 1,000, {mismatches} row-count mismatches",
            name=self.name,
            variant=self.variant,
            load=self.load,
            reached=reached,
            of_rate=of_rate,
            p95=p95,
            errors=errors,
            mismatches=mismatches,
        )


def background_rows(
    trials: Sequence[MeasuredTrial], experiment: Experiment, workload: str
) -> Iterator[BackgroundRow]:
    """A row for each background load of a workload, load and variant."""
    for name, load, variant, loads in _by_row(trials, experiment, workload, lambda trial: trial.background):
        yield BackgroundRow(name, load, variant, _background_cells(loads))


def _background_cells(loads: Sequence[BackgroundFigures]) -> list[str]:
    rate = loads[0].rate
    with_figures = [load.figures for load in loads if load.figures is not None]
    return [
        result_text.MISSING if rate is None else result_text.rate(rate),
        result_text.rate(median(load.throughput for load in loads)),
        *(_background_latency(with_figures, name) for name in FEW_PERCENTILES),
        f"{median(entry.errors_per_1000 for entry in with_figures):.2f}"
        if with_figures
        else result_text.MISSING,
        f"{sum(entry.row_count_mismatches for entry in with_figures):,}"
        if with_figures
        else result_text.MISSING,
    ]


def _background_latency(figureses: Sequence[Figures], name: str) -> str:
    if not figureses:
        return result_text.MISSING
    bound = "> " if any(name in entry.censored for entry in figureses) else ""
    return bound + result_text.milliseconds(median(entry.metric(name) for entry in figureses))


def statement_rows(report: Report, workload: str) -> list[StatementRow]:
    """A row for each statement, load and variant; [] if the workload has one kind of statement at most, whose
    latencies are those of the transaction.
    """
    rows = [
        StatementRow(name, load, variant, _statement_cells(figures))
        for name, load, variant, figures in _by_row(
            report.trials, report.experiment, workload, lambda trial: trial.statements
        )
    ]
    return rows if len({row.name for row in rows}) > 1 else []


def _by_row(
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
    workload: str,
    parts: Callable[[MeasuredTrial], Mapping[str, AnyPart]],
) -> Iterator[tuple[str, str, str, list[AnyPart]]]:
    """Name of a part of the trials, load, variant, and that part of each trial which has it."""
    with_parts = [trial for trial in trials if trial.workload == workload and parts(trial)]
    for name in dict.fromkeys(name for trial in with_parts for name in parts(trial)):
        for point in loads_in_order(with_parts, experiment):
            for variant in (entry.name for entry in experiment.variants):
                of_row = [
                    parts(trial)[name]
                    for trial in with_parts
                    if (trial.variant, trial.point) == (variant, point) and name in parts(trial)
                ]
                if of_row:
                    yield name, formatting.load(*point), variant, of_row


def _statement_cells(figures: Sequence[StatementFigures]) -> list[str]:
    return [
        f"{median(figure.per_transaction for figure in figures):.4g}",
        *(
            result_text.milliseconds(median(getattr(figure, name) for figure in figures))
            for name in FEW_PERCENTILES
        ),
    ]


# Prefix of the names of the charts.
STALLS = "stalls-"
# A gap from which on the charts are unfolded, in microseconds.
GAP_US_MIN = 500_000


def longest_gaps(trials: Sequence[MeasuredTrial]) -> dict[str, tuple[MeasuredTrial, int]]:
    """Variant -> the trial with its longest gap, and the gap in microseconds; only of 1 ms or more."""
    longest: dict[str, tuple[MeasuredTrial, int]] = {}
    for trial in trials:
        gap_us = (trial.figures.longest_gap_us if trial.figures else None) or 0
        if gap_us > longest.get(trial.variant, (trial, 0))[1]:
            longest[trial.variant] = trial, gap_us
    return longest


def gap_text(trials: Sequence[MeasuredTrial]) -> str:
    """The longest gap without a completed transaction, and the trial that has it; empty if none is known."""
    longest = longest_gaps(trials)
    if not longest:
        return ""
    trial, gap_us = max(longest.values(), key=lambda entry: entry[1])
    return compose(
        "Stalls: the longest gap without a completed transaction is {gap} ms ({variant}, trial {number})",
        gap=result_text.milliseconds(gap_us),
        variant=trial.variant,
        number=trial.index + 1,
    )


def has_stall(trials: Sequence[MeasuredTrial]) -> bool:
    """Whether a gap is so long that the charts are unfolded."""
    return any(gap_us >= GAP_US_MIN for _, gap_us in longest_gaps(trials).values())


@dataclass(frozen=True)
class SuiteCellText:
    """One cell: the change of one variant in one test."""

    estimate: str = result_text.MISSING
    interval: str = ""
    # The verdict, or whether a cost rose or fell; empty if that is not significant.
    word: str = ""
    # The class of its colour, and how strong it is, from 0 to 3. A cell without a significant direction has
    # no colour, whatever its size.
    css_class: str = "neutral"
    strength: int = 0
    # The verdict's code; None for a cost.
    code: str | None = None
    # Numbers of the trials that it comes from.
    trials: Sequence[int] = ()


@dataclass(frozen=True)
class SuiteTable:
    """One table."""

    title: str
    # The heading of the rows, and those of the cells: variants, or workloads.
    heading: str
    columns: Sequence[str]
    # Test or factor -> a cell for each column.
    rows: Sequence[tuple[str, Sequence[SuiteCellText]]]


# Changes in percent from which a colour is stronger.
_STRENGTHS = (2.0, 5.0, 15.0)
_WORDS = {"more": compose("more"), "less": compose("less")}


def suite_tables(verdict: VerdictFile) -> Iterator[SuiteTable]:
    """The table of the changes, and one for each cost; or that of the factors on several workloads."""
    suites = verdict.suites or []
    if not suites:
        yield from _factor_table(verdict.factors or [])
        return
    tests = list(dict.fromkeys(comparison.workload for comparison in verdict.comparisons))
    variants = [suite.variant for suite in suites]
    first = next((entry for entry in verdict.comparisons if not entry.identical), verdict.comparisons[0])
    column = first.curve.confidence
    title = compose(
        "{metric} against {baseline}, {confidence} intervals",
        metric=formatting.metric_name(first.curve.metric),
        baseline=verdict.baseline,
        confidence=formatting.confidence(column),
    )
    changes = [(test, [_change(verdict, test, variant, column) for variant in variants]) for test in tests]
    yield SuiteTable(title, compose("test"), variants, changes)
    for key in dict.fromkeys(cost.key for suite in suites for cost in suite.costs):
        rows = [(test, [_cost(suite, key, test) for suite in suites]) for test in tests]
        cost = next(cost for suite in suites for cost in suite.costs if cost.key == key)
        title = compose(
            "{cost} per transaction against {baseline}, {confidence} intervals",
            cost=cost.title,
            baseline=verdict.baseline,
            confidence=formatting.confidence(cost.confidence),
        )
        yield SuiteTable(title, compose("test"), variants, rows)


def _factor_table(factors: Sequence[FactorEffect]) -> Iterator[SuiteTable]:
    """The factors by their largest effects and then the interactions, on several workloads."""
    workloads = list(dict.fromkeys(entry.workload for entry in factors))
    if len(workloads) < 2:
        return
    by_name = {
        f"{entries[0].factors[0]} {entries[0].levels[0]}": entries
        for entries in formatting.ranked_effects(factors)
    }
    for entry in factors:
        if len(entry.factors) == 2:
            pairs = zip(entry.factors, entry.levels, strict=True)
            by_name.setdefault(" x ".join(f"{factor} {level}" for factor, level in pairs), []).append(entry)
    title = compose(
        "{metric}: effect of each factor on each workload, {confidence} intervals",
        metric=formatting.metric_name(factors[0].metric),
        confidence=formatting.confidence(factors[0].confidence),
    )
    rows = [
        (name, [_factor(next(entry for entry in entries if entry.workload == title)) for title in workloads])
        for name, entries in by_name.items()
    ]
    yield SuiteTable(title, compose("factor"), workloads, rows)


def _factor(effect: FactorEffect) -> SuiteCellText:
    """A main effect with its size, or the verdict: the table has room for one of them."""
    css_class, word = formatting.css_class(effect.verdict, effect.factors), formatting.factor_verdict(effect)
    if len(effect.factors) > 1 or effect.verdict not in formatting.WITH_SIZE:
        return SuiteCellText("", "", word, css_class)
    is_directed = effect.verdict in ("faster", "slower")
    return SuiteCellText(
        formatting.estimate(effect),
        formatting.interval(effect),
        "" if is_directed else word,
        css_class,
        _strength(effect.effect_percent) if is_directed else 0,
        effect.verdict,
    )


def _change(verdict: VerdictFile, test: str, variant: str, column: float) -> SuiteCellText:
    comparison = next(
        entry for entry in verdict.comparisons if (entry.workload, entry.variant) == (test, variant)
    )
    effect = comparison.curve
    return SuiteCellText(
        formatting.estimate(effect),
        formatting.interval(effect, column),
        formatting.heading(comparison),
        formatting.css_class(effect.verdict),
        _strength(effect.effect_percent) if effect.verdict in ("faster", "slower") else 0,
        effect.verdict,
        sorted(
            index for point in comparison.points for index in (*point.trials.baseline, *point.trials.variant)
        ),
    )


def _cost(suite: Suite, key: str, test: str) -> SuiteCellText:
    cells = [cell for cost in suite.costs if cost.key == key for cell in cost.tests if cell.workload == test]
    if not cells:
        return SuiteCellText()
    (cell,) = cells
    return SuiteCellText(
        formatting.estimate(cell),
        formatting.interval(cell),
        _WORDS[cell.direction] if cell.direction else "",
        {"more": "slower", "less": "faster", None: "neutral"}[cell.direction],
        _strength(cell.effect_percent) if cell.direction else 0,
    )


def _strength(percent: float | None) -> int:
    return sum(abs(percent or 0.0) >= limit for limit in _STRENGTHS)
