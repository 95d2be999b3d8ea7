"""The lines of the table that `dbdyno run` prints, one per point, with columns that sysbench users know.

::

     thc   elaptime      reads     writes   others       tps        qps    errs        min        avg
     max        p95
       2   60.0215s      64540      18440     9220     76.80    1536.08       0      24.59      26.04
       30.33      27.17

Latencies are milliseconds from the intended start to the end; `errs` counts every error of the server,
retried or not. A failed point shows the reason instead of numbers.
"""

from __future__ import annotations

from dbdyno.judge.figures import figures
from dbdyno.judge.recording import failure, read
from dbdyno.report.formatting import load, plateau, rate
from dbdyno.store import StoredTrial
from dbdyno.store.measured import Figures, Window
from dbdyno.store.verdict import VerdictFile

COLUMNS = ("thc", "elaptime", "reads", "writes", "others", "tps", "qps", "errs", "min", "avg", "max", "p95")
_WIDTHS = (4, 10, 10, 10, 8, 9, 10, 7, 10, 10, 10, 10)
_US_PER_S = 1e6
_US_PER_MS = 1e3


def header() -> str:
    """The line of column names."""
    return _line(COLUMNS)


def row(trial: StoredTrial) -> str:
    """The line of one point, from its stored trial."""
    connections = str(trial.plan["load"]["connections"])
    recording = read(trial.records())
    failed = failure(trial, recording)
    if failed is not None:
        reason, _ = failed
        return f"{connections:>{_WIDTHS[0]}} failed: {' '.join(reason.split())}"
    measured = recording.measure
    elapsed_s = (measured["end_us"] - measured["start_us"]) / _US_PER_S
    whole = figures(recording, Window(measured["start_us"], measured["end_us"], cut_us=None))
    statements = measured["reads"] + measured["writes"] + measured["other"]
    latencies = ("latency_min_us", "latency_mean_us", "latency_max_us", "latency_p95_us")
    return _line(
        (
            connections,
            f"{elapsed_s:.4f}s",
            str(measured["reads"]),
            str(measured["writes"]),
            str(measured["other"]),
            f"{measured['events'] / elapsed_s:.2f}",
            f"{statements / elapsed_s:.2f}",
            str(sum(measured["errors"].values())),
            *(_latency(whole, name) for name in latencies),
        )
    )


def peak(verdict: VerdictFile) -> str:
    """Where throughput is highest; "" with fewer loads than the judge needs for that."""
    for one in verdict.scaling or ():
        at = load("connections", one.highest.connections)
        text = f"highest throughput: {rate(one.highest.throughput)} transactions/s at {at}"
        return text if one.plateau is None else f"{text}; within 2 % of it {plateau(one)} connections"
    return ""


def _latency(measured: Figures, name: str) -> str:
    lower_bound = ">" if name in measured.censored else ""
    return f"{lower_bound}{measured.metric(name) / _US_PER_MS:.2f}"


def _line(cells: tuple[str, ...]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
