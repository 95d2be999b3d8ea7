"""Stored runs as data frames of pandas, for notebooks and scripts (`dbdyno.open`). Reads the store alone.

The methods' docstrings name the columns and their units.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.experiment.metrics import FEW_PERCENTILES, LATENCY_MEAN, PERCENTILES
from dbdyno.problem import Problem
from dbdyno.stats.histogram import merge, percentile
from dbdyno.store import Run, files
from dbdyno.store.document import PointDict
from dbdyno.store.listing import find_run
from dbdyno.store.measured import MeasuredFile, MeasuredTrial
from dbdyno.store.records import Interval, Slice
from dbdyno.store.verdict import Effect, VerdictFile

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
        return self._verdict.summary_sentences

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
        return _frame(_trial_rows(self._run, self._measured))

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
        return _frame(_interval_rows(self._run))

    @cached_property
    def statements(self) -> pd.DataFrame:
        """One row per kind of statement of every trial.

        `trial`, `block`, `variant`, `workload`, `connections`, `rate`, `statement`, `per_transaction`,
        `latency_p50_us`, `latency_p95_us`, `latency_p99_us` (from sending a statement to the end of its
        result). Empty in slices.
        """
        return _frame(_statement_rows(self._run, self._measured))

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """One row per comparison and load, and one for all loads combined, whose load is missing.

        `variant`, `baseline`, `workload`, `connections`, `rate`, `metric`, `effect_percent`,
        `interval_low_percent`, `interval_high_percent` (missing where an end is unknown), `confidence`,
        `blocks`, `verdict`, `sentence` (of all loads combined alone).
        """
        return _frame(_comparison_rows(self._run, self._verdict))

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


def _frame(rows: Iterator[_Row]) -> pd.DataFrame:
    """The rows as a frame. The type of a column depends on its name alone, so that frames of several runs can
    be concatenated.
    """
    _require("pandas")
    import pandas as pd  # noqa: PLC0415 — an optional dependency.

    frame = pd.DataFrame.from_records(list(rows))
    kinds = {str(name): _kind(str(name)) for name in frame.columns}
    return frame.astype(kinds)


def _kind(column: str) -> str:
    return "string" if column in _TEXTS else "Int64" if column in _INTEGERS else "float64"


def _require(package: str) -> None:
    """Raises Problem if an optional package is missing."""
    import importlib.util  # noqa: PLC0415 — only frames need it.

    if importlib.util.find_spec(package) is None:
        text = f"data frames need the Python package {package}, which is not installed"
        raise Problem(text, "pip install 'dbdyno[pandas]'")


_Row = dict[str, Any]
_LATENCIES = (LATENCY_MEAN, *PERCENTILES, "latency_max_us")
# Columns that are not floating-point numbers.
_TEXTS = frozenset(
    {"variant", "baseline", "workload", "status", "failure", "failed_by", "lower_bound_of", "phase",
     "statement", "metric", "verdict", "sentence"}
)  # fmt: skip
_INTEGERS = frozenset(
    {"trial", "block", "connections", "transactions", "statements", "dropped", "backlog", "errors", "reads",
     "writes", "other", "reconnects", "blocks"}
)  # fmt: skip
_COUNTS = ("reads", "writes", "other", "reconnects", "dropped")


def _trial_rows(run: Run, measured: MeasuredFile) -> Iterator[_Row]:
    """A row per planned trial."""
    for trial in measured.trials:
        figures = trial.figures
        yield {
            **_place_of(run, trial),
            "status": trial.status,
            "failure": trial.failure,
            "failed_by": None if trial.failed_by == "not-run" else trial.failed_by,
            "throughput": trial.value("throughput") if trial.is_result else None,
            **{name: figures.metric(name) if figures else None for name in _LATENCIES},
            **(figures.percentiles if figures else {}),
            "lower_bound_of": " ".join(figures.censored) if figures else None,
            "transactions": figures.events if figures else None,
            "statements": figures.statements if figures else None,
            "errors_per_1000": figures.errors_per_1000 if figures else None,
            "longest_gap_us": figures.longest_gap_us if figures else None,
            "dropped": figures.dropped if figures else None,
            "backlog": figures.backlog if figures else None,
            "start_s": trial.window.start_us / 1e6 if trial.window else None,
            "end_s": trial.window.end_us / 1e6 if trial.window else None,
        }


def _interval_rows(run: Run) -> Iterator[_Row]:
    """A row per interval or slice of every trial, from the engine's records. Raises StoreProblem."""
    for trial in run.trials():
        meta = trial.meta
        names = {"variant": meta["variant"], "workload": meta["workload"]}
        place = _place(trial.index, meta["block"], names) | _load(run, meta["at"])
        warmup_slices = (meta.get("slices") or {}).get("warmup", 0)
        for record in trial.records():
            if record["type"] == "interval":
                yield {**place, "phase": record["data"]["phase"], **_span(record["data"])}
            elif record["type"] == "slice":
                phase = "measure" if record["data"]["slice"] >= warmup_slices else "warmup"
                yield {**place, "phase": phase, **_span(record["data"])}


def _span(part: Interval | Slice) -> _Row:
    start_s, end_s = part["start_us"] / 1e6, part["end_us"] / 1e6
    events = part["events"]
    latencies_us = merge([part["latency_us"]])
    low_us, high_us = part.get("latency_min_us"), part.get("latency_max_us")
    latencies: _Row = dict.fromkeys((LATENCY_MEAN, *FEW_PERCENTILES, "latency_max_us"))
    if events and low_us is not None and high_us is not None:
        latencies[LATENCY_MEAN] = part["latency_sum_us"] / events
        for name, percent in FEW_PERCENTILES.items():
            value = percentile(latencies_us, percent, low_us, high_us)
            latencies[name] = value.value_us if value else None
        latencies["latency_max_us"] = high_us
    counts: Mapping[str, Any] = part
    return {
        "start_s": start_s,
        "end_s": end_s,
        "throughput": events / (end_s - start_s) if end_s > start_s else None,
        "transactions": events,
        "errors": sum(part["errors"].values()),
        **{name: counts[name] for name in _COUNTS},
        **latencies,
        "longest_gap_us": part["gaps"]["longest_us"] if "gaps" in part else None,
    }


def _statement_rows(run: Run, measured: MeasuredFile) -> Iterator[_Row]:
    """A row per kind of statement of every trial."""
    for trial in measured.trials:
        for name, figures in trial.statements.items():
            yield {
                **_place_of(run, trial),
                "statement": name,
                "per_transaction": figures.per_transaction,
                **{name: getattr(figures, name) for name in FEW_PERCENTILES},
            }


def _comparison_rows(run: Run, verdict: VerdictFile) -> Iterator[_Row]:
    """A row per comparison, metric and load, and one for all loads combined."""
    is_open = run.experiment().load.is_open
    for comparison in verdict.comparisons:
        names = {"variant": comparison.variant, "baseline": verdict.baseline, "workload": comparison.workload}
        for entry in (comparison, *(comparison.metrics or ())):
            for point in entry.points:
                yield {**names, **_load(run, point.at), **_effect(point), "sentence": None}
            nowhere: _Row = {"connections": None, **({"rate": None} if is_open else {})}
            yield {**names, **nowhere, **_effect(entry.curve), "sentence": entry.curve.sentence}


def _effect(effect: Effect) -> _Row:
    low, high = effect.interval_percent or (None, None)
    return {
        "metric": effect.metric,
        "effect_percent": effect.effect_percent,
        "interval_low_percent": low,
        "interval_high_percent": high,
        "confidence": effect.confidence,
        "blocks": effect.blocks,
        "verdict": effect.verdict,
    }


def _place_of(run: Run, trial: MeasuredTrial) -> _Row:
    names = {"variant": trial.variant, "workload": trial.workload}
    return _place(trial.index, trial.block, names) | _load(run, trial.at)


def _place(index: int, block: int, names: _Row) -> _Row:
    """The place of a trial in the design, without its load."""
    return {"trial": index + 1, "block": block + 1, **names}


def _load(run: Run, at: PointDict) -> _Row:
    """Connections, and in an open loop the rate."""
    load = run.experiment().load
    if "rate" in at:
        return {"connections": load.connections[0], "rate": at["rate"]}
    return {"connections": at["connections"]}
