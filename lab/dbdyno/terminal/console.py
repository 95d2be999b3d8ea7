"""rich's console, on the streams that make control characters visible, and tables of plain text.

The columns of a table are aligned in the cells of a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dbdyno.terminal.streams import SafeText, visible

# Columns of a table if standard output is not a terminal.
WIDTH = 160
GAP = "  "


class _RawStream:
    """A `SafeText` for rich, whose sequences must reach the terminal."""

    def __init__(self, stream: SafeText) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write_raw(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class SafeConsole(Console):
    """A console of rich that makes the control characters of what it shows visible."""

    def __init__(self, **options: Any) -> None:
        """`options` are those of `rich.console.Console`, without `file`."""
        super().__init__(**options)
        stream: TextIO = sys.stderr if self.stderr else sys.stdout
        if isinstance(stream, SafeText):
            self.file = _RawStream(stream)  # type: ignore[assignment]

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See rich; the text of the segments is visible."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def print_text(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """Print a text. On a terminal its lines break between words, and go on `indent` cells to the right; a
    path or another word that is longer than a line does not break. In a log it is one line.
    """
    if not console.is_terminal:
        console.print(Text(text, style=style), soft_wrap=True)
        return
    for number, part in enumerate(_lines(text, console.width, indent)):
        console.print(Text(" " * indent * (number > 0) + part, style=style), soft_wrap=True)


def _lines(text: str, width: int, indent: int) -> list[str]:
    """The text in lines of at most `width` cells, if its words allow that. The first keeps its spaces."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        body = paragraph.lstrip(" ")
        current = " " * (len(paragraph) - len(body))
        is_empty = True
        for word in body.split(" "):
            room = width - indent * bool(lines)
            if not is_empty and cell_len(current) + 1 + cell_len(word) > room:
                lines.append(current)
                current, is_empty = word, False
            else:
                current, is_empty = current + word if is_empty else f"{current} {word}", False
        lines.append(current)
    return lines


def result_console() -> Console:
    """A console on standard output, wide enough for a table if that is not a terminal."""
    console = SafeConsole(highlight=False)
    return console if console.is_terminal else SafeConsole(highlight=False, width=WIDTH)


@dataclass
class Column:
    """One column: its heading, and its width in cells, which is at least that of the heading."""

    heading: str
    width: int = 0
    right: bool = False

    def __post_init__(self) -> None:
        self.width = max(self.width, cell_len(self.heading))


def fit(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Widen the columns to the widest cell of `rows`."""
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            column.width = max(column.width, cell_len(cell))


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The headings and a line for each row, in columns as wide as their cells."""
    fit(columns, rows)
    yield heading(columns)
    for row in rows:
        yield line(columns, row)


def heading(columns: Sequence[Column]) -> str:
    """The line of the headings."""
    return line(columns, [column.heading for column in columns])


def line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    """The line of one row."""
    padded = (_pad(column, cell) for column, cell in zip(columns, cells, strict=True))
    return GAP.join(padded).rstrip()


def _pad(column: Column, cell: str) -> str:
    spaces = " " * (column.width - cell_len(cell))
    return spaces + cell if column.right else cell + spaces
