"""The live view as a Textual application. No other file imports Textual (extra `watch`)."""

from __future__ import annotations

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Footer, Static

from dbdyno.experiment.model import Experiment
from dbdyno.store import Run, StoreProblem
from dbdyno.store.live import LiveRun, RunFollower
from dbdyno.watch import view

# Seconds between two readings of the run: the engine writes an interval a second, and reading takes CPU time.
REFRESH_S = 2.0


class WatchApp(App[None]):
    """Shows one run until the user quits. When the run has ended it stays, and reads no more."""

    CSS = """
    #head, #findings-title { height: auto; }
    #trials { height: 1fr; min-height: 5; }
    #findings { height: auto; max-height: 7; }
    """
    BINDINGS = [  # noqa: RUF012 — a list, as Textual declares it
        Binding("q", "quit", "Quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run, self._follower = run, RunFollower(run)
        self._experiment: Experiment = run.experiment()
        # What is shown.
        self.now: LiveRun | None = None
        self._rows: list[tuple[str, ...]] = []
        self._texts: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        """Head, trials, and findings with the verdict."""
        yield Static(id="head", markup=False)
        table: DataTable[Text] = DataTable(id="trials", cursor_type="row", zebra_stripes=True, cell_padding=1)
        table.add_columns(*view.COLUMNS)
        yield table
        with VerticalScroll(id="findings"):
            yield Static(id="texts", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Show the run, and again every second."""
        self.refresh_run()
        self._timer = self.set_interval(REFRESH_S, self.refresh_run)

    def on_resize(self) -> None:
        """The lines of the head depend on the width."""
        if self.now is not None:
            self._show(self.now)

    def refresh_run(self) -> None:
        """Read what is new, and show it. Ends the application if the run cannot be read."""
        if self.now is not None and not self.now.is_running:
            return
        try:
            now = self._follower.read()
        except StoreProblem as problem:
            self.exit(return_code=problem.exit_code, message=f"dbdyno: {problem.text}. {problem.fix}")
            return
        if now != self.now:
            self.now = now
            self._show(now)

    def _show(self, now: LiveRun) -> None:
        lines = [
            f"{self._experiment.name}  {self._run.path.name}",
            view.state_line(now),
            *view.progress_lines(now, self.size.width),
        ]
        if line := view.interval_line(now):
            lines.append(line)
        self._update("#head", lines)
        self._show_rows(view.rows(now, self._experiment, self.size.width))
        verdict = view.verdict_lines(now, self._experiment)
        findings = view.finding_lines(now) or ["no findings so far" if now.is_running else "no findings"]
        self._update("#texts", [*verdict, *findings])

    def _show_rows(self, rows: list[tuple[str, ...]]) -> None:
        """Show the rows of the table. Only cells that have changed are drawn: drawing all takes ten times the
        CPU time, which the measured server cannot have.
        """
        table = self.query_one("#trials", DataTable)
        if len(rows) != len(self._rows):
            row, scrolled = table.cursor_row, table.scroll_offset
            table.clear()
            for cells in rows:
                table.add_row(*(Text(_visible(cell)) for cell in cells))
            table.move_cursor(row=row, scroll=False)
            table.scroll_to(scrolled.x, scrolled.y, animate=False)
        else:
            for number, (cells, before) in enumerate(zip(rows, self._rows, strict=True)):
                for column, (cell, shown) in enumerate(zip(cells, before, strict=True)):
                    if cell != shown:
                        # A longer text makes its column wider.
                        is_wider = len(cell) > len(shown)
                        table.update_cell_at(
                            Coordinate(number, column), Text(_visible(cell)), update_width=is_wider
                        )
        self._rows = rows

    def _update(self, place: str, lines: list[str]) -> None:
        """Show lines, if they have changed; the screen is laid out again only if their height may have."""
        before = self._texts.get(place, [])
        if lines != before:
            is_same_height = len(lines) == len(before) and max(map(len, [*lines, *before])) <= self.size.width
            self.query_one(place, Static).update(_text(lines), layout=not is_same_height)
            self._texts[place] = lines


def _text(lines: list[str]) -> Text:
    return Text("\n".join(map(_visible, lines)))


def _visible(text: str) -> str:
    """The text without control characters, which a server may have put into an error message."""
    return "".join(entry if entry.isprintable() else " " for entry in text)
