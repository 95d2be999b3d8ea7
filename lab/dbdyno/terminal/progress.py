"""Shows the progress of a comparison on standard error: a line per trial, and on a terminal a live line.

The line of a trial that ended has its figures, and on a terminal how it went over time::

    block  variant       connections  transactions/s  p95 ms
        1  every-commit            1         1,221.5    1.06
        1  every-commit           16         3,700.2    7.17

In an open loop, where the throughput is the offered rate, the line shows the latency that
the verdict compares.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column as ProgressCells
from rich.text import Text

from dbdyno import result_text
from dbdyno.checks import CHECKS
from dbdyno.decide.stopping import ComparisonProgress
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.model import Experiment, Point
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.measure.figures import preview
from dbdyno.report import formatting
from dbdyno.result_text import counted, signed
from dbdyno.run import progress
from dbdyno.run.affinity import on_cpus
from dbdyno.run.times import Estimate
from dbdyno.store import Run, StoredTrial
from dbdyno.store.run import trial_folder
from dbdyno.terminal.console import Column, heading, line, print_text
from dbdyno.terminal.messages import announce, is_verbose
from dbdyno.terminal.tables import latency_heading, sweep_header, sweep_row
from dbdyno.waiting import reported_by

# The line is updated once a second, since the lab must not disturb a trial.
REFRESH_PER_S = 1.0
# On a narrower terminal, the bar's cells are needed for the text.
BAR_FROM_WIDTH = 110
STYLES = {"stop": "bold red", "warn": "yellow", "note": "dim"}


@contextmanager
def show_progress(console: Console, experiment: Experiment) -> Iterator[progress.Listener]:
    """A listener that shows progress on `console`. The thread of the live line runs on the client's CPUs."""
    with reported_by(lambda text: print_text(console, text, "yellow")):
        yield from _listener(console, experiment)


def _listener(console: Console, experiment: Experiment) -> Iterator[progress.Listener]:
    if not console.is_terminal or console.quiet or is_verbose():
        yield _Plain(console, experiment).listen
        return
    # One line at every width: the text gets the cells that are left.
    bar = Progress(
        SpinnerColumn(),
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=ProgressCells(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        *([BarColumn(bar_width=24)] if console.width >= BAR_FROM_WIDTH else []),
        _RemainingTime(table_column=ProgressCells(no_wrap=True)),
        console=console,
        transient=True,
        refresh_per_second=REFRESH_PER_S,
        expand=True,
    )
    with on_cpus(experiment.client.cpus):
        bar.start()
    try:
        yield _Live(console, experiment, bar).listen
    finally:
        bar.stop()


def point_text(point: Point) -> str:
    """A point as text, such as "20 connections" or "500/s"."""
    return formatting.load("connections", point.connections) if point.rate is None else f"{point.rate:g}/s"


class _RemainingTime(ProgressColumn):
    """The remaining time, counted down between two progress values."""

    def render(self, task: Task) -> Text:
        ends_at = task.fields["ends_at"]
        return Text("" if ends_at is None else f"{format_duration(ends_at - time.monotonic())} left")


class _Plain:
    """Prints a line per trial with the remaining time, for logs."""

    def __init__(self, console: Console, experiment: Experiment) -> None:
        self._console, self._experiment, self._estimate = console, experiment, Estimate(experiment)
        self._trials = 0
        self._completed = 0
        self._loading = progress.LoadingLines()
        # Codes and levels of the findings that were printed.
        self._printed_findings: set[tuple[str, str]] = set()
        self._run: Path | None = None
        self._table: TrialTable | None = None

    def listen(self, value: progress.Progress) -> None:
        self._estimate.listen(value)
        match value:
            case progress.Began():
                self._trials, self._completed = len(value.todo) + value.kept, value.kept
                self._run, self._table = value.path, TrialTable(self._experiment)
                self._begin(value)
            case progress.Step():
                self._show_step(value.text)
            case progress.ProblemOccurred():
                self._print(value.text, "red")
            case progress.Loading():
                self._show_rows(value)
            case progress.TrialBegan():
                self._begin_trial(value.trial)
            case progress.TrialEnded():
                self._completed += 1
                self._end_trial(value)
            case progress.Extended():
                self._trials += len(value.trials)
                self._print(f"{value.text}{self._remaining_text()}")
            case progress.BlockEnded():
                self._print(block_text(value) + ("" if value.why else self._time_left()))
            case progress.NewFindings():
                for finding in value.findings:
                    self._show_finding(finding)

    def _begin(self, value: progress.Began) -> None:
        groups = len({trial.group for trial in value.todo})
        kept = f"; {value.kept} more are stored already" if value.kept else ""
        about = format_duration(self._estimate.left_s())
        todo = f"{counted(len(value.todo), 'trial')} in {counted(groups, 'group')}"
        self._print(f"{todo}{kept}; about {about} until the end")
        self._print(f"results in {value.path}")

    def _show_step(self, text: str) -> None:
        self._print(f"{text}{self._remaining_text()}")

    def _show_rows(self, value: progress.Loading) -> None:
        if line := self._loading.next(value):
            self._print(line)

    def _show_finding(self, finding: Finding) -> None:
        """Print every stop, and the first warning and note of each code; the result has their number. With
        --verbose print all.
        """
        kind = finding.code, finding.level
        if finding.level == "stop" or kind not in self._printed_findings or is_verbose():
            self._printed_findings.add(kind)
            self._print(f"{finding.level} {finding.summary}", STYLES[finding.level])
            if finding.override is not None:
                self._print(f"  overridden: {finding.override}", "dim")

    def _begin_trial(self, trial: Trial) -> None:
        """Print nothing without --verbose: a trial's line is printed at its end."""
        if is_verbose():
            self._show_step(f"trial {self._completed + 1}/{self._trials}: {_trial_text(trial)}")

    def _end_trial(self, value: progress.TrialEnded) -> None:
        figures = f"failed: {value.reason}"
        if not value.reason and self._table is not None:
            figures = self._table.figures_text(self._stored(value.trial))
        text = f"{_trial_text(value.trial)}: {figures}"
        self._print(f"[{self._completed}/{self._trials}] {text}{self._remaining_text()}")

    def _stored(self, trial: Trial) -> StoredTrial:
        assert self._run is not None, "a trial ends after the run began"
        return StoredTrial(trial_folder(self._run, trial.index))

    def _remaining_text(self) -> str:
        return self._time_left()

    def _time_left(self) -> str:
        return f"; {format_duration(self._estimate.left_s())} left"

    def _print(self, text: str, style: str = "") -> None:
        if is_verbose():
            announce(text)
        else:
            print_text(self._console, text, style, indent=2)


class _Live(_Plain):
    """Prints a row of a table for each trial, and below them one live line with the remaining time."""

    def __init__(self, console: Console, experiment: Experiment, bar: Progress) -> None:
        super().__init__(console, experiment)
        self._bar, self._task = bar, bar.add_task("starting", total=None, ends_at=None)
        self._started_at = time.monotonic()
        self._has_heading = False

    def _show_step(self, text: str) -> None:
        elapsed_s, remaining_s = time.monotonic() - self._started_at, self._estimate.left_s()
        self._bar.update(
            self._task,
            description=text,
            completed=elapsed_s,
            total=elapsed_s + remaining_s,
            ends_at=time.monotonic() + remaining_s,
        )

    def _show_rows(self, value: progress.Loading) -> None:
        self._bar.update(self._task, description=f"loading: {value.text}")

    def _begin_trial(self, trial: Trial) -> None:
        self._show_step(f"trial {self._completed + 1}/{self._trials}: {_trial_text(trial)}")

    def _end_trial(self, value: progress.TrialEnded) -> None:
        assert self._table is not None, "a trial ends after the run began"
        if not self._has_heading:
            self._has_heading = True
            self._console.print(Text(self._table.heading(), style="bold"), soft_wrap=True)
        row = self._table.row(value.trial, self._stored(value.trial), value.reason)
        if value.reason:
            self._print(row, "red")
        else:
            self._console.print(Text(row), soft_wrap=True)
        self._show_step(f"{self._completed} of {self._trials} trials")

    def _remaining_text(self) -> str:
        return ""


def block_text(ended: progress.BlockEnded) -> str:
    """The line after a block: "block 9 of at most 20: b -2.1 to +10.5 %, ±6.3 %; about 5 more blocks"."""
    text = f"block {ended.blocks} of at most {ended.at_most}"
    compared = ended.look.comparisons
    with_interval = [entry for entry in compared if entry.interval_percent is not None and not entry.note]
    if with_interval:
        slowest = max(with_interval, key=_expected)
        low, high = (signed(end) for end in slowest.interval_percent or ())
        text += f": {slowest.variant} {low} to {high} %"
        if slowest.half_width_percent is not None:
            text += f", ±{slowest.half_width_percent:.1f} %"
        if len(compared) > 1:
            text += f" (the least precise of {len(compared)} comparisons)"
    text += "".join(f"; {note}" for note in dict.fromkeys(entry.note for entry in compared) if note)
    if ended.why is not None:
        return f"{text}; {ENDS[ended.why]}"
    expected = ended.blocks_expected
    if not with_interval:
        return f"{text}; no verdict is possible yet"
    if not expected:
        return text if expected is None else f"{text}; decided"
    text += f"; about {expected} more block{'' if expected == 1 else 's'}"
    left = ended.at_most - ended.blocks
    return f"{text} would be needed" if expected > left else text


def _expected(comparison_progress: ComparisonProgress) -> tuple[float, float]:
    """Sorts the comparison that takes longest to the end."""
    blocks = comparison_progress.blocks_still_expected
    return math.inf if blocks is None else blocks, comparison_progress.half_width_percent or 0.0


# Why a comparison ends, for the last line after a block.
ENDS = {
    "decided": "decided, so no more blocks are needed (narrower interval: --resume --blocks +N)",
    "blocks": "no blocks are left",
    "time": "the next block would take longer than the time that is left",
}


def _trial_text(trial: Trial) -> str:
    repeats = "" if trial.repeats is None else f" (repeats block {trial.repeats + 1})"
    return f"block {trial.block + 1}{repeats}, {trial.variant}, {point_text(trial.point)}"


class TrialTable:
    """The table of one run."""

    def __init__(self, experiment: Experiment) -> None:
        self._is_open = experiment.load.is_open
        self._latency, title = experiment.latency_metric, latency_heading(experiment)
        self._percentile = title.removesuffix(" ms")
        self._has_workloads = len(experiment.workloads) > 1
        points = [f"{point.rate or point.connections:g}" for point in experiment.load.points()]
        blocks = experiment.design.stop.max_blocks if experiment.design.stop else experiment.design.blocks
        self._columns = [
            Column("block", len(str(blocks)), right=True),
            Column("variant", max(cell_len(variant.name) for variant in experiment.variants)),
            Column(
                "rate/s" if self._is_open else "connections", max(map(len, points), default=0), right=True
            ),
            Column(title, 7, right=True),
        ]
        if self._has_workloads:
            longest = max(cell_len(workload.title) for workload in experiment.workloads)
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
        figures = None if failure else preview(stored, self._latency)
        if figures is None:
            return f"{line(self._columns[: len(cells)], cells)}  failed: {failure or 'no figures'}"
        throughput = [] if self._is_open else [result_text.rate(figures.throughput)]
        return line(self._columns, [*cells, *throughput, formatting.latency(figures, self._latency)])

    def figures_text(self, stored: StoredTrial) -> str:
        """The figures of a trial in a sentence: its throughput, or in an open loop its latency."""
        figures = preview(stored, self._latency)
        if figures is None:
            return "no figures"
        if not self._is_open:
            return f"{result_text.rate(figures.throughput)} transactions/s"
        return f"{self._percentile} {formatting.latency(figures, self._latency)} ms"


class PointTable:
    """Prints a row on standard output as each point ends, and everything else on standard error."""

    def __init__(self, stored: Run) -> None:
        self._stored = stored
        self._has_header = False
        self._loading = progress.LoadingLines()

    def listen(self, value: progress.Progress) -> None:
        """Print a progress value."""
        match value:
            case progress.Step() | progress.ProblemOccurred():
                announce(value.text)
            case progress.Loading():
                if line := self._loading.next(value):
                    announce(f"  {line}")
            case progress.TrialEnded():
                self._print_row(value.trial.index)
            case progress.NewFindings():
                for finding in value.findings:
                    print_finding(finding)
            case _:
                pass

    def _print_row(self, index: int) -> None:
        trial = StoredTrial(trial_folder(self._stored.path, index))
        if not self._has_header:
            self._has_header = True
            print(sweep_header(trial))
        # Flushed for users and scripts that read the table while it grows.
        print(sweep_row(trial), flush=True)


def print_finding(finding: Finding) -> None:
    """Print a finding, unless it is about a comparison: a run of one variant compares nothing."""
    if any(check.of_comparison for check in CHECKS if check.code == finding.code):
        return
    announce(f"{finding.level} {finding.summary}")
    if finding.override is not None:
        announce(f"  overridden: {finding.override}")
    elif finding.is_blocking:
        announce(f"  {finding.how_to_override}")
