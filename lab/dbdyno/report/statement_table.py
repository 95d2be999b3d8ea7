"""The latencies of each kind of statement: medians over the blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from dbdyno.report import formatting
from dbdyno.report.model import Report
from dbdyno.store.measured import StatementFigures


@dataclass(frozen=True)
class StatementRow:
    """One kind of statement of one variant at one load."""

    name: str
    load: str
    variant: str
    # Statements per transaction, then p50, p95 and p99 in milliseconds.
    cells: Sequence[str]


def statement_rows(report: Report, workload: str) -> list[StatementRow]:
    """A row for each statement, load and variant; [] if the workload has one kind of statement at most, whose
    latencies are those of the transaction.
    """
    rows = list(_rows(report, workload))
    return rows if len({row.name for row in rows}) > 1 else []


def _rows(report: Report, workload: str) -> Iterator[StatementRow]:
    trials = [one for one in report.trials if one.workload == workload and one.statements]
    for name in dict.fromkeys(name for one in trials for name in one.statements):
        for point in sorted({one.point for one in trials}):
            for variant in report.variants:
                figures = [
                    one.statements[name]
                    for one in trials
                    if (one.variant, one.point) == (variant, point) and name in one.statements
                ]
                if figures:
                    yield StatementRow(name, formatting.load(*point), variant, _cells(figures))


def _cells(figures: Sequence[StatementFigures]) -> list[str]:
    latencies = ("latency_p50_us", "latency_p95_us", "latency_p99_us")
    return [
        f"{median(one.per_transaction for one in figures):.4g}",
        *(formatting.milliseconds(median(getattr(one, name) for one in figures)) for name in latencies),
    ]
