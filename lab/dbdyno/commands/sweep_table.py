"""The lines of the table that `dbdyno run` prints, one per point; at most 80 columns wide.

::

    connections       tps        qps  errors  mean ms   p95 ms   p99 ms   max ms
              2     76.80    1536.08       0    26.04    27.17    28.40    30.33

tps and qps are transactions and statements per second, as in sysbench. With a rate the first column is the
offered rate. Latencies count from the scheduled start to the end; `errors` counts every error of the server,
retried or not. A failed point shows the reason instead of numbers.
"""

from __future__ import annotations

from dbdyno.commands.text_table import Column, heading, line
from dbdyno.measure.figures import figures
from dbdyno.measure.recording import failure, read
from dbdyno.report.formatting import load, plateau
from dbdyno.result_text import rate
from dbdyno.store import StoredTrial
from dbdyno.store.measured import Figures, Window
from dbdyno.store.verdict import VerdictFile

_US_PER_S = 1e6
_US_PER_MS = 1e3
_LATENCIES = ("latency_mean_us", "latency_p95_us", "latency_p99_us", "latency_max_us")


def _columns(first: str) -> list[Column]:
    widths = {"tps": 9, "qps": 10, "errors": 6, "mean ms": 7, "p95 ms": 7, "p99 ms": 7, "max ms": 7}
    return [
        Column(first, len("connections"), right=True),
        *(Column(name, width, right=True) for name, width in widths.items()),
    ]


def header(trial: StoredTrial) -> str:
    """The line of column names above the row of this trial and of those after it."""
    return heading(_columns(_load(trial)[0]))


def row(trial: StoredTrial) -> str:
    """The line of one point, from its stored trial."""
    unit, point = _load(trial)
    columns = _columns(unit)
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
    for one in verdict.scaling or ():
        at = load("connections", one.highest.connections)
        text = f"highest throughput: {rate(one.highest.throughput)} transactions/s at {at}"
        return text if one.plateau is None else f"{text}; within 2 % of it {plateau(one)} connections"
    return ""


def _load(trial: StoredTrial) -> tuple[str, float]:
    """Heading and value of the column with the load."""
    at = trial.meta["at"]
    return ("rate/s", at["rate"]) if "rate" in at else ("connections", at["connections"])


def _latency(measured: Figures, name: str) -> str:
    lower_bound = ">" if name in measured.censored else ""
    return f"{lower_bound}{measured.metric(name) / _US_PER_MS:.2f}"
