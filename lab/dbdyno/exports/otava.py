"""Medians and ratios of a run as a row of a CSV file, whose rows of many runs Apache Otava analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.exports.series import read
from dbdyno.spreadsheet import write_csv
from dbdyno.store import Run
from dbdyno.store.listing import began


def as_otava(run: Run) -> str:
    """The names of the columns, and one row."""
    return write_rows([otava_row(run)])


def otava_row(run: Run) -> dict[str, str]:
    """Column -> value: `time` (ISO 8601, when the run began), `experiment`, `run`; of each series a column
    NAME/METRIC, the median over the blocks; of each change NAME/METRIC_ratio, the ratio to the baseline.

    The columns depend on the experiment alone. An unknown value is an empty text, which Otava refuses: after
    a NaN it would find no change in the column.
    """
    judged, time = read(run), began(run.path)
    row = {
        "time": "" if time is None else time.isoformat(),
        "experiment": judged.experiment.name,
        "run": run.path.name,
    }
    for series in judged.series:
        for metric in judged.metrics:
            value = series.summary(metric).get("value")
            row[f"{series.name}/{metric}"] = "" if value is None else f"{value:.10g}"
    for change in judged.changes:
        ratio = change.ratios.get("value")
        row[f"{change.name}/{change.effect.metric}_ratio"] = "" if ratio is None else f"{ratio:.10g}"
    return row


def write_rows(rows: Sequence[Mapping[str, str]]) -> str:
    """The rows as CSV, with the columns of all of them."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return write_csv([columns, *([row.get(column, "") for column in columns] for row in rows)])
