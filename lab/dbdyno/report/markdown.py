"""The report as Markdown, for a ticket or a release note."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from dbdyno.finding import SEVERITIES
from dbdyno.languages import ENGLISH, Translator, translator
from dbdyno.report import formatting
from dbdyno.report.chart import Chart
from dbdyno.report.model import Report
from dbdyno.report.page import design_rows
from dbdyno.report.tables import LOAD_COLUMNS, SuiteTable, background_rows, load_rows, suite_tables
from dbdyno.store.verdict import Comparison, Effect
from dbdyno.text import compose, join

# Special characters of Markdown.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def as_markdown(report: Report, pictures: Sequence[Chart] = (), language: str = ENGLISH) -> str:
    """Design, verdicts, a table for each comparison, and findings, in a language of `languages()`; it
    mentions those of the `pictures` in the folder charts/ that show effects.
    """
    return "\n".join(_Writer(report, translator(language)).lines(pictures))


class _Writer:
    """Writes the lines of the document."""

    def __init__(self, report: Report, translate: Translator) -> None:
        self._report, self._translate = report, translate

    def lines(self, pictures: Sequence[Chart]) -> list[str]:
        report, verdict = self._report, self._report.verdict
        lines = [f"# {self._escaped(report.experiment.name)}", ""]
        if report.experiment.question:
            lines += [self._escaped(report.experiment.question), ""]
        for suite in verdict.suites or ():
            lines += [f"**{self._escaped(suite.sentence)}**", ""]
        if verdict.factors:
            lines += [f"**{self._escaped(formatting.factor_ranking(verdict.factors))}**", ""]
        for table in suite_tables(verdict):
            lines += self._suite(table)
        for judged, entry in verdict.sentences:
            lines += [f"**{self._escaped(judged.sentence)}**", ""]
            lines += self._list(formatting.further_sentences(entry))
        for capacity in verdict.capacities or ():
            lines += [f"**{self._escaped(capacity.sentence)}**", ""]
        if report.experiment.conclusion:
            text = compose("Conclusion of the author: {text}", text=report.experiment.conclusion)
            lines += [self._escaped(text), ""]
        for sentence in verdict.gate.sentences if verdict.gate else ():
            lines += [self._escaped(sentence), ""]
        lines += [self._escaped(verdict.family.text), ""] if verdict.family.text else []
        lines += self._list(report.judgements)
        for chart in pictures:
            if chart.name.startswith("effect-"):
                lines += [f"![{self._escaped(chart.title)}](charts/{quote(chart.name)}.png)", ""]
        for comparison in verdict.comparisons:
            lines += [*self._comparison(comparison), "", *self._metrics(comparison)]
            lines += self._secondary_metrics(comparison)
        if report.has_tied_latency:
            lines += [self._escaped(formatting.TIED), ""]
        for workload in report.workloads:
            lines += self._loads(workload)
        reasons = [
            change.sentence for comparison in verdict.comparisons for change in report.changes(comparison)[:3]
        ]
        lines += [self._translate(compose("Why:")), "", *self._list(reasons)] if reasons else []
        lines += self._findings()
        design = [join(": ", row) for row in design_rows(report)]
        lines += [self._translate(compose("Design:")), "", *self._list(design)]
        run = compose("Run {run_id}, blocks: {blocks}.", run_id=report.run_id, blocks=report.blocks_text)
        return [*lines, self._translate(run)]

    def _suite(self, table: SuiteTable) -> list[str]:
        heading = [self._translate(table.heading), *table.columns]
        lines = [f"{self._escaped(table.title)}:", "", self._row(heading), self._row(["---"] * len(heading))]
        for test, cells in table.rows:
            texts = [" ".join(filter(None, (cell.estimate, cell.interval, cell.word))) for cell in cells]
            lines.append(self._row([self._escaped(test), *map(self._escaped, texts)]))
        return [*lines, ""]

    def _findings(self) -> list[str]:
        if not self._report.checks:
            return []
        lines = [self._translate(compose("Warnings:")), ""]
        for check in self._report.checks:
            text = check.summary
            if check.override:
                text = join("", (text, compose(" (overridden: {override})", override=check.override)))
            lines.append(f"- {self._translate(SEVERITIES[check.level])} {self._escaped(text)}")
        return [*lines, ""]

    def _names(self, comparison: Comparison) -> tuple[str, str]:
        """The headings of the columns of baseline and variant."""
        baseline, variant = self._report.verdict.baseline, comparison.variant
        return formatting.variant_heading(baseline), formatting.variant_heading(variant)

    def _comparison(self, comparison: Comparison) -> list[str]:
        baseline = self._report.verdict.baseline
        ci = formatting.ci_heading(comparison.points)
        title = compose(
            "{workload}, {metric}, medians of the blocks ({change_note}):",
            workload=comparison.workload,
            metric=formatting.metric_name(comparison.points[0].metric),
            change_note=join("; ", formatting.table_notes(self._report.verdict)),
        )
        heading = (
            compose("load"), *self._names(comparison), compose("change"), ci, compose("blocks"),
            compose("verdict"),
        )  # fmt: skip
        column = comparison.points[0].confidence
        rows = [(*formatting.point_cells(point), *self._effect(point, column)) for point in comparison.points]
        if len(comparison.points) > 1:
            rows.append((*formatting.combined(comparison), *self._effect(comparison.curve, column)))
        lines = self._table(title, heading, "|---|---:|---:|---:|---:|---:|---|", rows)
        if comparison.order:
            lines += ["", self._escaped(formatting.order_effect(comparison, baseline))]
        return lines

    def _loads(self, workload: str) -> list[str]:
        rows = list(load_rows(self._report, workload))
        if not rows:
            return []
        title = (
            compose("{workload}, every variant at every load, medians of the blocks:", workload=workload)
            if self._report.experiment.design.blocks > 1
            else compose("{workload}, every variant at every load:", workload=workload)
        )
        heading, cells = (compose("variant"), compose("load"), *LOAD_COLUMNS), []
        for row in rows:
            note = f" ({self._escaped(row.failure)})" if row.failure else ""
            cells.append((self._escaped(row.variant), self._translate(row.load) + note, *row.cells))
        lines = self._table(title, heading, f"|---|---|{'---:|' * len(LOAD_COLUMNS)}", cells)
        background = background_rows(self._report.trials, self._report.experiment, workload)
        return [*lines, "", *self._list(row.sentence for row in background)]

    def _metrics(self, comparison: Comparison) -> list[str]:
        if not comparison.metrics:
            return []
        ci = formatting.ci_heading([metric.curve for metric in comparison.metrics])
        heading = (
            compose("metric"), compose("load"), *self._names(comparison),
            compose("change"), ci, compose("blocks"), compose("verdict"),
        )  # fmt: skip
        title = compose("Further metrics on {workload}:", workload=comparison.workload)
        rows = (row for row, _ in formatting.metric_rows(comparison, self._report.checks))
        return [*self._table(title, heading, "|---|---|---:|---:|---:|---:|---:|---|", rows), ""]

    def _secondary_metrics(self, comparison: Comparison) -> list[str]:
        if not comparison.secondary_metrics:
            return []
        heading = (
            compose("load"), compose("metric"), *self._names(comparison),
            compose("change"), formatting.ci_heading(comparison.secondary_metrics),
            compose("{variant} is", variant=comparison.variant),
        )  # fmt: skip
        title = compose("Secondary metrics on {workload} (lower is better):", workload=comparison.workload)
        rows = formatting.secondary_metrics(comparison)
        return [*self._table(title, heading, "|---|---|---:|---:|---:|---:|---|", rows), ""]

    def _effect(self, effect: Effect, confidence: float) -> tuple[str, ...]:
        """The last four columns of a row; `confidence` is the one in the heading."""
        interval = formatting.interval(effect, confidence)
        word = formatting.verdict(effect.verdict, self._report.checks)
        return formatting.estimate(effect), interval, str(effect.blocks), word

    def _table(
        self, title: str, heading: Iterable[str], ruler: str, rows: Iterable[Iterable[str]]
    ) -> list[str]:
        return [self._escaped(title), "", self._heading(heading), ruler, *map(self._row, rows)]

    def _list(self, items: Iterable[str]) -> list[str]:
        lines = [f"- {self._escaped(item)}" for item in items]
        return [*lines, ""] if lines else []

    def _heading(self, cells: Iterable[str]) -> str:
        return f"| {' | '.join(map(self._escaped, cells))} |"

    def _row(self, cells: Iterable[str]) -> str:
        """Cells without characters of Markdown."""
        return " ".join(f"| {self._translate(cell)}".rstrip() for cell in cells) + " |"

    def _escaped(self, text: str) -> str:
        """The text in the language, with Markdown's special characters escaped."""
        return " ".join(self._translate(text).split()).translate(_SPECIAL)
