"""A line for each trial that ended: its figures, and on a terminal how it went over time.

::

    block  variant       connections  transactions/s  p95 ms
        1  every-commit            1         1,221.5    1.06  ▆▇█▇▇▆▃▇
        1  every-commit           16         3,700.2    7.17  █▇▇▇█▇▇█

The sparkline shows the throughput of every second from 0 on. In an open loop, where the throughput is the
offered rate, line and sparkline show the latency that the verdict compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.cells import cell_len

from dbdyno.commands.text_table import Column, heading, line
from dbdyno.experiment.metrics import THROUGHPUT, metric_text
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.measure.preview import Preview, preview
from dbdyno.report import formatting
from dbdyno.store import StoredTrial

_BARS = "▁▂▃▄▅▆▇█"
# Cells of a sparkline; with fewer than the first it would show nothing.
_LENGTHS = (5, 30)


def latency_heading(experiment: Experiment) -> str:
    """The heading of the column with the latency that tables show."""
    return f"{metric_text(experiment.latency_metric).removesuffix(' latency')} ms"


class TrialTable:
    """The table of one run. `width` are the cells of a line; 0 prints no sparklines, for logs."""

    def __init__(self, experiment: Experiment, width: int = 0) -> None:
        self._width, self._is_open = width, experiment.load.is_open
        self._latency, title = experiment.latency_metric, latency_heading(experiment)
        self._percentile = title.removesuffix(" ms")
        self._has_workloads = len(experiment.workloads) > 1
        points = [f"{point.rate or point.connections:g}" for point in experiment.load.points()]
        blocks = experiment.design.stop.max_blocks if experiment.design.stop else experiment.design.blocks
        self._columns = [
            Column("block", len(str(blocks)), right=True),
            Column("variant", max(cell_len(one.name) for one in experiment.variants)),
            Column(
                "rate/s" if self._is_open else "connections", max(map(len, points), default=0), right=True
            ),
            Column(title, 7, right=True),
        ]
        if self._has_workloads:
            longest = max(cell_len(one.title) for one in experiment.workloads)
            self._columns.insert(2, Column("workload", longest))
        if not self._is_open:
            self._columns.insert(-1, Column("transactions/s", right=True))

    def heading(self) -> str:
        """The line of the headings."""
        return heading(self._columns)

    def row(self, trial: Trial, stored: StoredTrial, failure: str) -> str:
        """The line of a trial; `failure` is why it failed."""
        load = f"{trial.point.rate or trial.point.connections:g}"
        workload = [trial.workload] if self._has_workloads else []
        cells = [f"{trial.block + 1}", trial.variant, *workload, load]
        known = None if failure else self._preview(stored)
        if known is None:
            return f"{line(self._columns[: len(cells)], cells)}  failed: {failure or 'no figures'}"
        throughput = [] if self._is_open else [formatting.rate(known.figures.throughput)]
        text = line(self._columns, [*cells, *throughput, formatting.latency(known.figures, self._latency)])
        return f"{text}  {self._sparkline(known, cell_len(text))}".rstrip()

    def figures_text(self, stored: StoredTrial) -> str:
        """The figures of a trial in a sentence: its throughput, or in an open loop its latency."""
        known = self._preview(stored)
        if known is None:
            return "no figures"
        if not self._is_open:
            return f"{formatting.rate(known.figures.throughput)} transactions/s"
        return f"{self._percentile} {formatting.latency(known.figures, self._latency)} ms"

    def _preview(self, stored: StoredTrial) -> Preview | None:
        return preview(stored, self._latency if self._is_open else THROUGHPUT)

    def _sparkline(self, known: Preview, used: int) -> str:
        shortest, longest = _LENGTHS
        length = min(self._width - used - 2, longest, len(known.series))
        return "" if length < min(shortest, len(known.series)) else sparkline(known.series, length)


def sparkline(values: Sequence[float], length: int) -> str:
    """At most `length` bars from 0 to the highest of `values`. If there are more values, neighbours share a
    bar, which shows their mean.
    """
    length = min(length, len(values))
    if length < 1:
        return ""
    ends = [round(index * len(values) / length) for index in range(length + 1)]
    means = [sum(values[low:high]) / (high - low) for low, high in pairwise(ends)]
    highest = max(means)
    return "".join(_BARS[round(mean / highest * (len(_BARS) - 1))] if highest else _BARS[0] for mean in means)
