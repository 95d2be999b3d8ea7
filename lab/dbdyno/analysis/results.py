"""A judged run as pandas frames. The methods' docstrings name the columns and their units."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.analysis.rows import (
    INTEGERS,
    TEXTS,
    Row,
    comparison_rows,
    interval_rows,
    statement_rows,
    trial_rows,
)
from dbdyno.problem import Problem
from dbdyno.store import Run, files
from dbdyno.store.listing import find_run
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.verdict import VerdictFile

if TYPE_CHECKING:
    import pandas as pd

FRAMES = ("trials", "intervals", "statements", "comparisons")


def open_results(name: str | Path | None = None, results: str | Path = "results") -> Results:
    """The results of a run: its folder, its number, its experiment (the newest run of it), or None for the
    newest run below the folder `results`.

    Raises StoreProblem if there is no such run, if its files were changed since they were measured, or if it
    was not judged, and Problem if pandas is missing.
    """
    return Results(find_run(Path(results), None if name is None else Path(name)))


class Results:
    """The trials, intervals, statements and comparisons of a judged run.

    Times are seconds, latencies microseconds, throughput transactions per second. Trials and blocks are
    numbered from 1. A load is in the column `connections`, and for a rate in `rate` too.
    """

    def __init__(self, run: Run) -> None:
        """Raises StoreProblem if the run was not judged."""
        judged = run.judge_files()
        if judged is None:
            raise Problem(f"{run.path} has not been judged", f"Run dbdyno report {run.path}, which judges it")
        self._run = run
        self._verdict, self._measured, _ = judged

    def __repr__(self) -> str:
        return f"dbdyno.open({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._run.path

    @property
    def verdict(self) -> VerdictFile:
        """The content of verdict.json."""
        return self._verdict

    @property
    def measured(self) -> MeasuredFile:
        """The content of measured.json: every trial, and the effect of every block."""
        return self._measured

    @property
    def sentences(self) -> list[str]:
        """The verdict sentences, in the order of the experiment file."""
        return self._verdict.headlines

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per planned trial.

        `trial`, `block`, `variant`, `workload`, `connections`, `rate`; `status` ("done", "failed" or
        "not-run"), `failure`, `failed_by` ("server" or "harness"); `throughput` (transactions/s; 0 if the
        server failed), `latency_mean_us`, `latency_p50_us` to `latency_p999_us`, `latency_max_us`,
        `lower_bound_of` (names of latencies that are lower bounds), `transactions`, `statements`,
        `errors_per_1000`, `longest_gap_us` (the longest time without a completed transaction), `dropped`,
        `backlog`, `start_s` and `end_s` of the window that counts, and further percentiles of design.metrics.
        What a failed trial lacks is missing.
        """
        return _frame(trial_rows(self._run, self._measured))

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """One row per interval (usually 1 s) or slice of every trial, warm-up included, from the engine's
        records.

        `trial`, `block`, `variant`, `workload`, `connections`, `rate`, `phase` ("warmup" or "measure"),
        `start_s`, `end_s` (since the start of the trial), `throughput`, `transactions`, `reads`, `writes`,
        `other` (statements), `errors`, `reconnects`, `dropped`, `latency_mean_us`, `latency_p50_us`,
        `latency_p95_us`, `latency_p99_us` and `latency_max_us`, which are missing in an interval without a
        transaction, and `longest_gap_us`, the longest time without a completed transaction.
        """
        return _frame(interval_rows(self._run))

    @cached_property
    def statements(self) -> pd.DataFrame:
        """One row per kind of statement of every trial.

        `trial`, `block`, `variant`, `workload`, `connections`, `rate`, `statement`, `per_transaction`,
        `latency_p50_us`, `latency_p95_us`, `latency_p99_us` (from sending a statement to the end of its
        result). Empty in slices.
        """
        return _frame(statement_rows(self._run, self._measured))

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """One row per comparison and load, and one for all loads combined, whose load is missing.

        `variant`, `baseline`, `workload`, `connections`, `rate`, `metric`, `effect_percent`,
        `interval_low_percent`, `interval_high_percent` (missing where an end is unknown), `confidence`,
        `blocks`, `verdict`, `sentence` (of all loads combined alone).
        """
        return _frame(comparison_rows(self._run, self._verdict))

    def write_parquet(self, folder: Path) -> list[Path]:
        """Write trials.parquet, intervals.parquet, statements.parquet and comparisons.parquet into a folder;
        returns their paths. Raises Problem if pyarrow is missing, or if a file cannot be written.
        """
        _require("pyarrow")
        files.make_folder(folder)
        paths = []
        for name in FRAMES:
            # The library would leave a part of a file on a full disk.
            content = io.BytesIO()
            getattr(self, name).to_parquet(content, index=False)
            paths.append(folder / f"{name}.parquet")
            files.write(paths[-1], content.getvalue())
        return paths


def _frame(rows: Iterator[Row]) -> pd.DataFrame:
    """The rows as a frame. The type of a column depends on its name alone, so that frames of several runs can
    be concatenated.
    """
    _require("pandas")
    import pandas as pd  # noqa: PLC0415 — an optional dependency.

    frame = pd.DataFrame.from_records(list(rows))
    kinds = {str(name): _kind(str(name)) for name in frame.columns}
    return frame.astype(kinds)


def _kind(column: str) -> str:
    return "string" if column in TEXTS else "Int64" if column in INTEGERS else "float64"


def _require(package: str) -> None:
    """Raises Problem if an optional package is missing."""
    import importlib.util  # noqa: PLC0415 — only frames need it.

    if importlib.util.find_spec(package) is None:
        text = f"data frames need the Python package {package}, which is not installed"
        raise Problem(text, "pip install 'dbdyno[pandas]'")
