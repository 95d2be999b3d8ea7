"""One measured result in a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbdyno.reading.limits import decimal
from dbdyno.text import compose

# Figures of which more is better, and those of which less is better; the rest is neither.
THROUGHPUTS = ("tps", "qps", "nopm", "tpm")
TIMES = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "mean_s")

FIGURE_TEXTS = {
    "tps": compose("transactions/s"),
    "qps": compose("statements/s"),
    "nopm": compose("new orders/min"),
    "tpm": compose("transactions/min"),
    "mean_ms": compose("mean latency"),
    "p50_ms": compose("median latency"),
    "p95_ms": compose("p95 latency"),
    "p99_ms": compose("p99 latency"),
    "max_ms": compose("maximum latency"),
    "mean_s": compose("mean seconds"),
    "errors": compose("errors"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, and the index of the line that has it."""

    value: float
    index: int


@dataclass(frozen=True, slots=True)
class Result:
    """What one run measured: the output of a tool, or a row or a cell of a table.

    The names of the figures: `tps` and `qps` (transactions and statements per second), `nopm` and `tpm` (new
    orders and transactions per minute), `transactions`, `queries`, `reads`, `writes`, `others`, `errors`,
    `reconnects` (counts), `elapsed_s`, `min_s`, `mean_s`, `max_s` (time of a whole list of queries, in
    seconds), `min_ms`, `mean_ms`, `p50_ms`, `p95_ms`, `p99_ms`, `max_ms`, `sum_ms`.
    """

    tool: str
    # Indexes of the first and the last line.
    first: int
    last: int
    connections: int | None
    figures: Mapping[str, Figure]
    # The name of the workload; "" if the output does not say it.
    workload: str = ""
    # What names the variant in the output itself, such as the heading of a table's column; "" if nothing
    # does.
    label: str = ""
    # Index of the heading of the table that has the result; -1 outside of tables.
    table: int = -1
    # Throughput of each interval that the tool printed during the run, in the order of time.
    intervals: Sequence[float] = field(default=())
    # What was taken for what, if the table does not say it.
    doubt: str = ""
    # Whether the output says that the load was a rate, not as much as the server can do.
    is_rate_limited: bool = False

    def value(self, name: str) -> float | None:
        """A figure; None if the result has none of this name."""
        figure = self.figures.get(name)
        return None if figure is None else figure.value


def keep(figures: dict[str, Figure], name: str, number: str, index: int) -> None:
    """Adds a figure, unless it is no number or the result has it already."""
    if (value := decimal(number)) is not None:
        figures.setdefault(name, Figure(value, index))
