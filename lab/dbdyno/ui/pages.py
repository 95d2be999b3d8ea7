"""The content of the pages as HTML, from the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from dbdyno.report.model import Report, gather
from dbdyno.report.page import environment_for
from dbdyno.report.summary import Summary, summarize
from dbdyno.report.writing import draw_result, render_page
from dbdyno.store import Run, StoreProblem
from dbdyno.store.judgement import newest_verdict_ns
from dbdyno.store.listing import is_running, list_runs
from dbdyno.store.live import LiveRun, RunFollower
from dbdyno.watch import view

# Runs in a list; older ones are found by the filter.
LISTED_MAX = 200
# Seconds between two readings of a run, however many pages show it.
READ_S = 1.9
# The newest trials in the table, and the newest intervals in the drawing.
ROWS_MAX, POINTS_MAX = 200, 120
# Reports and charts that stay in memory.
RENDERED_MAX = 16
# Room for a row of the table: no name of a variant is cut.
WIDTH_CELLS = 400
WIDTH, HEIGHT = 640, 120

_Rendered = TypeVar("_Rendered")


@dataclass
class Pages:
    """Reads the runs below a folder, and writes them as HTML in a language."""

    results: Path
    language: str = "en"
    # The runs in progress that pages show.
    _readers: dict[Path, RunReader] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # Rendered reports and charts, with the time of the verdict in nanoseconds; one is rendered at a time.
    _rendered: dict[tuple[str, Path], tuple[int, Any]] = field(default_factory=dict)
    _rendering: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        loader = ChoiceLoader([PackageLoader("dbdyno.ui"), PackageLoader("dbdyno.report")])
        self.templates: Environment = environment_for(self.language).overlay(loader=loader)
        self.templates.globals = {**self.templates.globals, "view": view, "drawing": drawing}

    def render(self, name: str, **values: Any) -> str:
        """A template with these values."""
        return self.templates.get_template(name).render(**values)

    def runs(self, words: str = "") -> str:
        """The newest runs whose experiment, state or result contains all words."""
        shown: list[Summary] = []
        for path in list_runs(self.results):
            summary = summarize(path)
            text = f"{summary.number} {summary.experiment} {summary.state} {summary.text}".lower()
            if all(word in text for word in words.lower().split()):
                shown.append(summary)
            if len(shown) > LISTED_MAX:
                break
        has_more = len(shown) > LISTED_MAX
        return self.render("runs.html.j2", runs=shown[:LISTED_MAX], has_more=has_more, words=words)

    def find(self, experiment: str, folder: str) -> Run:
        """The run in results/experiment/folder. Raises StoreProblem if it is none of the listed ones."""
        for path in list_runs(self.results):
            if (path.parent.name, path.name) == (experiment, folder):
                return Run.open(path, quick=True)
        raise StoreProblem(f"there is no run {experiment}/{folder} below {self.results}")

    def run(self, run: Run, *, draws: bool = True) -> tuple[str, bool]:
        """A run's page, and whether the run goes on. `draws`: with the charts of its result, which take some
        seconds the first time.
        """
        with self._lock:
            reader = self._readers.setdefault(run.path, RunReader(run))
        now, experiment = reader.now(), run.experiment()
        if not now.is_running:
            with self._lock:
                self._readers.pop(run.path, None)
        report = _report(run, is_running=now.is_running)
        charts: Sequence[object] = ()
        if report is not None and draws:
            charts = self._once("charts", run, partial(draw_result, report, self.language))
        content = self.render(
            "run.html.j2",
            run=run,
            now=now,
            experiment=experiment,
            report=report,
            charts=charts,
            rows=view.rows(now, experiment, WIDTH_CELLS)[:ROWS_MAX],
        )
        return content, now.is_running

    def report(self, run: Run) -> str:
        """The page of a run's report. Raises StoreProblem if the run has no verdict, or was changed."""
        run.require_unchanged("dbdyno report --accept-changes judges the run as it is")
        if is_running(run) or run.judge_files() is None:
            raise StoreProblem(f"{run.path} has no verdict", "dbdyno report judges a run that has ended")
        return self._once("report", run, lambda: render_page(run, self.language)[0])

    def _once(self, what: str, run: Run, render: Callable[[], _Rendered]) -> _Rendered:
        """What `render` returns; it is called once for each judgement of the run. Raises StoreProblem."""
        judged_ns = newest_verdict_ns(run)
        with self._rendering:
            cached = self._rendered.get((what, run.path))
            if cached is None or cached[0] != judged_ns:
                # The newest ones only: a report may have some megabytes.
                self._rendered = dict(list(self._rendered.items())[-RENDERED_MAX + 1 :])
                with run.reading():
                    cached = self._rendered[what, run.path] = judged_ns, render()
            rendered: _Rendered = cached[1]
            return rendered

    def compare(self, runs: Sequence[Run], answer: str) -> str:
        """Two runs next to each other, and what `dbdyno diff` says of them."""
        shown = [(run, _report(run, is_running=is_running(run))) for run in runs]
        return self.render("compare.html.j2", runs=shown, answer=answer)

    def problem(self, text: str) -> str:
        """Why a page cannot be shown."""
        return self.render("problem.html.j2", text=text)


def _report(run: Run, *, is_running: bool) -> Report | None:
    """The content of the run's report; None before the run is judged."""
    return None if is_running or run.judge_files() is None else gather(run)


class RunReader:
    """Reads a run in progress, once for all pages that show it."""

    def __init__(self, run: Run) -> None:
        self._follower, self._lock = RunFollower(run), threading.Lock()
        self._now: LiveRun | None = None
        self._read_at = 0.0

    def now(self) -> LiveRun:
        """The run, read again if the last time is too long ago. Raises StoreProblem."""
        with self._lock:
            if self._now is None or time.monotonic() - self._read_at > READ_S:
                self._now, self._read_at = self._follower.read(), time.monotonic()
            return self._now


def drawing(now: LiveRun) -> Markup:
    """The throughput of the running trials in every second, as a line each; empty without two seconds."""
    series: Mapping[str, Sequence[float]] = {
        entry.trial.variant: [part.throughput for part in entry.parts[-POINTS_MAX:]] for entry in now.running
    }
    highest = max((value for values in series.values() for value in values), default=0.0)
    if highest <= 0.0 or max(map(len, series.values())) < 2:
        return Markup("")
    place = partial(_place, highest=highest, count=max(map(len, series.values())))
    lines = Markup("").join(
        Markup('<polyline points="{}"/>').format(
            " ".join(place(at, value) for at, value in enumerate(values))
        )
        for values in series.values()
    )
    return Markup('<svg class="live" role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>').format(
        f"{highest:,.0f}", WIDTH, HEIGHT, lines
    )


def _place(at: int, value: float, *, highest: float, count: int) -> str:
    return f"{at * WIDTH / (count - 1):.1f},{HEIGHT - 4 - value / highest * (HEIGHT - 8):.1f}"
