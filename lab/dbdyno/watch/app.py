"""The live view as a Textual application. No other file imports Textual (extra `watch`)."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Footer, Static

from dbdyno.experiment.model import Experiment
from dbdyno.languages import ENGLISH, translator
from dbdyno.store import Run, StoreProblem
from dbdyno.store.live import LiveRun, RunFollower
from dbdyno.text import compose
from dbdyno.watch import view

# Seconds between two readings of the run: the engine writes an interval a second, and reading takes CPU time.
REFRESH_S = 2.0


class WatchApp(App[None]):
    """Shows one run until the user quits. When the run has ended it stays, and reads no more."""

    # At 24 lines, trials and verdict have the room; the key f gives it to the findings.
    CSS = """
    #head, #verdict, #findings-title { height: auto; }
    #verdict { text-style: bold; max-height: 40%; scrollbar-size-vertical: 0; }
    #trials { height: 1fr; min-height: 5; }
    #findings { height: auto; max-height: 2; scrollbar-size-vertical: 0; }
    #texts { text-wrap: nowrap; text-overflow: ellipsis; }
    .reading #trials { display: none; }
    .reading #findings { height: 1fr; max-height: 100%; scrollbar-size-vertical: 1; }
    .reading #texts { text-wrap: wrap; }
    """
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, run: Run, language: str = ENGLISH) -> None:
        super().__init__()
        self._run, self._follow = run, RunFollower(run)
        self._experiment: Experiment = run.experiment()
        self._translate = translator(language)
        self.bind("q", "quit", description=self._translate(compose("Quit")))
        self.bind("f", "read_findings", description=self._translate(compose("Findings")))
        # What is shown.
        self.now: LiveRun | None = None
        self._rows: list[tuple[str, ...]] = []
        self._texts: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        """Head, verdict, trials and findings."""
        yield Static(id="head", markup=False)
        with VerticalScroll(id="verdict"):
            yield Static(id="verdict-texts", markup=False)
        table: DataTable[Text] = DataTable(id="trials", cursor_type="row", zebra_stripes=True, cell_padding=1)
        table.add_columns(*map(self._translate, view.COLUMNS))
        yield table
        yield Static(id="findings-title", markup=False)
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

    def action_read_findings(self) -> None:
        """Show all findings instead of the trials, or the trials again."""
        self.screen.toggle_class("reading")

    def refresh_run(self) -> None:
        """Read what is new, and show it. Ends the application if the run cannot be read."""
        if self.now is not None and not self.now.is_running:
            return
        try:
            now = self._follow.read()
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
        if text := view.newest_text(now):
            lines.append(compose("now     {text}", text=text))
        self._update("#head", lines)
        self._update("#verdict-texts", view.verdict_lines(now, self._experiment))
        self._show_rows(view.rows(now, self._experiment, self.size.width))
        self._update("#findings-title", [view.findings_title(now)])
        self._update("#texts", view.finding_lines(now))

    def _show_rows(self, rows: list[tuple[str, ...]]) -> None:
        """Show the rows of the table. Only cells that have changed are drawn: drawing all takes ten times the
        CPU time, which the measured server cannot have.
        """
        rows = [tuple(map(self._visible, cells)) for cells in rows]
        table = self.query_one("#trials", DataTable)
        if len(rows) != len(self._rows):
            row, scrolled = table.cursor_row, table.scroll_offset
            table.clear()
            for cells in rows:
                table.add_row(*map(Text, cells))
            table.move_cursor(row=row, scroll=False)
            table.scroll_to(scrolled.x, scrolled.y, animate=False)
        else:
            for number, (cells, before) in enumerate(zip(rows, self._rows, strict=True)):
                for column, (cell, shown) in enumerate(zip(cells, before, strict=True)):
                    if cell != shown:
                        # A longer text makes its column wider.
                        is_wider = len(cell) > len(shown)
                        table.update_cell_at(Coordinate(number, column), Text(cell), update_width=is_wider)
        self._rows = rows

    def _update(self, place: str, texts: Iterable[str]) -> None:
        """Show lines, if they have changed; the screen is laid out again only if their height may have."""
        lines, before = list(map(self._visible, texts)), self._texts.get(place, [])
        if lines != before:
            is_same_height = len(lines) == len(before) and max(map(len, [*lines, *before])) <= self.size.width
            self.query_one(place, Static).update(Text("\n".join(lines)), layout=not is_same_height)
            self._texts[place] = lines

    def _visible(self, text: str) -> str:
        """The text in the language of the view, without control characters, which a server may have put into
        an error message.
        """
        return "".join(entry if entry.isprintable() else " " for entry in self._translate(text))
