"""Progress of a comparison on standard error: one moving line on a terminal, plain lines everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from dbdyno.experiment.durations import format_duration
from dbdyno.experiment.model import Point
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.run import progress
from dbdyno.run.affinity import on_cpus

# The line moves once a second: the lab is to be quiet while a trial runs.
REFRESH_PER_S = 1.0
STYLES = {"stop": "bold red", "warn": "yellow", "note": "dim"}

Tell = Callable[[progress.Progress], None]


@contextmanager
def watching(console: Console, cpus: str | None) -> Iterator[Tell]:
    """What `run.compare` tells, shown on `console`. A moving line is drawn by a thread held to `cpus`."""
    if not console.is_terminal:
        yield _Plain(console).tell
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        _Left(),
        console=console,
        transient=True,
        refresh_per_second=REFRESH_PER_S,
    )
    with on_cpus(cpus):
        bar.start()
    try:
        yield _Live(console, bar).tell
    finally:
        bar.stop()


def level(point: Point) -> str:
    """A load level for people: "20 connections", "500/s"."""
    return f"{point.connections} connections" if point.rate is None else f"{point.rate:g}/s"


def show(console: Console, finding: Finding) -> None:
    """One finding: level and code, then its text."""
    console.print(Text(f"{finding.level} {finding.line}", style=STYLES[finding.level]), soft_wrap=True)
    if finding.override is not None:
        console.print(Text(f"  overridden: {finding.override}", style="dim"))


class _Left(ProgressColumn):
    """The time left, counted down between two pieces of news."""

    def render(self, task: Task) -> Text:
        ends_at = task.fields["ends_at"]
        return Text("" if ends_at is None else f"{format_duration(ends_at - time.monotonic())} left")


class _Plain:
    """A line per trial, with the time left: for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._trials = 0
        self._ended = 0
        # Rows are told by tenths.
        self._tenth = 0

    def tell(self, news: progress.Progress) -> None:
        match news:
            case progress.Began():
                self._trials, self._ended = news.trials + news.kept, news.kept
                _began(self._console, news)
            case progress.Step():
                self._line(f"{news.text}{_left(news.left_s)}")
            case progress.Trouble():
                _trouble(self._console, news)
            case progress.Loading():
                tenth = 10 * news.rows // max(1, news.rows_planned)
                if tenth > self._tenth:
                    self._line(f"{news.rows:,} of {news.rows_planned:,} rows")
                self._tenth = tenth
            case progress.TrialEnded():
                self._ended += 1
                self._line(f"[{self._ended}/{self._trials}] {_ended(news)}{_left(news.left_s)}")
            case progress.Extended():
                self._trials += news.trials
                self._line(f"{news.text}{_left(news.left_s)}")
            case progress.Found():
                for finding in news.findings:
                    show(self._console, finding)

    def _line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


class _Live:
    """One moving line; failures and findings stay above it."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console, self._bar = console, bar
        self._task = bar.add_task("starting", total=None, ends_at=None)
        self._began = time.monotonic()
        self._trials = 0
        self._ended = 0
        self._last = ""

    def tell(self, news: progress.Progress) -> None:
        match news:
            case progress.Began():
                self._trials, self._ended = news.trials + news.kept, news.kept
                _began(self._console, news)
            case progress.Step():
                self._move(news.text, news.left_s)
            case progress.Trouble():
                _trouble(self._console, news)
            case progress.Loading():
                text = f"loading: {news.rows:,} of {news.rows_planned:,} rows"
                self._bar.update(self._task, description=text)
            case progress.TrialBegan():
                self._move(f"[{self._ended + 1}/{self._trials}] {_name(news.trial)}{self._last}", news.left_s)
            case progress.TrialEnded():
                self._ended += 1
                self._last = f" (before: {news.events_per_s:,.0f} tps)" if news.events_per_s else ""
                if not news.done:
                    self._console.print(Text(_ended(news), style="red"))
                self._move(f"[{self._ended}/{self._trials}] {_ended(news)}", news.left_s)
            case progress.Extended():
                self._trials += news.trials
                self._console.print(Text(news.text), soft_wrap=True)
            case progress.Found():
                for finding in news.findings:
                    show(self._console, finding)

    def _move(self, text: str, left_s: float) -> None:
        passed_s = time.monotonic() - self._began
        self._bar.update(
            self._task,
            description=text,
            completed=passed_s,
            total=passed_s + left_s,
            ends_at=time.monotonic() + left_s,
        )


def _began(console: Console, news: progress.Began) -> None:
    kept = f", {news.kept} are there already" if news.kept else ""
    console.print(
        Text(f"{news.trials} trials in {news.groups} groups{kept}; about {format_duration(news.estimate_s)}")
    )
    console.print(Text(f"results in {news.path}"), soft_wrap=True)


def _trouble(console: Console, news: progress.Trouble) -> None:
    console.print(Text(news.text, style="red"), soft_wrap=True)


def _name(trial: Trial) -> str:
    again = "" if trial.repeats is None else f" (block {trial.repeats + 1} again)"
    return f"block {trial.block + 1}{again}, {trial.variant}, {level(trial.point)}"


def _ended(news: progress.TrialEnded) -> str:
    if not news.done:
        return f"{_name(news.trial)}: failed: {news.reason}"
    rate = f": {news.events_per_s:,.1f} tps" if news.events_per_s is not None else ""
    return f"{_name(news.trial)}{rate}"


def _left(seconds: float) -> str:
    return f"; {format_duration(seconds)} left"
