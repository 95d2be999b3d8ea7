"""The table of a suite in the terminal: tests in rows, a change with its verdict for each variant."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from dbdyno.commands.text_table import Column, fit, heading, line
from dbdyno.languages import Translator
from dbdyno.report import formatting
from dbdyno.report.suite_table import SuiteCellText, suite_tables
from dbdyno.store.verdict import VerdictFile
from dbdyno.text import compose

_STYLES = {"faster": "green", "slower": "red"}


def suite_lines(verdict: VerdictFile, translate: Translator) -> Iterator[Text]:
    """The lines of the table of changes. Costs are in the report."""
    table = next(suite_tables(verdict))
    columns = [Column(translate(compose("test"))), *(Column(name, right=True) for name in table.variants)]
    rows = [(test, cells, [test, *(_text(one, translate) for one in cells)]) for test, cells in table.rows]
    fit(columns, [texts for _, _, texts in rows])
    yield Text(translate(table.title), style="bold")
    yield Text(f" {heading(columns)}", style="dim")
    for _, cells, texts in rows:
        styles = {_STYLES.get(one.code or "", "") for one in cells}
        # A line with one direction has its colour.
        yield Text(f" {line(columns, texts)}", style=styles.pop() if len(styles) == 1 else "")


def _text(cell: SuiteCellText, translate: Translator) -> str:
    parts = (cell.estimate, cell.interval, cell.word)
    text = " ".join(translate(one) for one in parts if one)
    return text.replace(formatting.MINUS, "-")
