"""Tables of plain text, whose columns are aligned in the cells of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = "  "


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
