"""rich's console, on the streams that make control characters visible."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from dbdyno.commands.terminal import SafeText, visible

# Columns of a table if standard output is not a terminal.
WIDTH = 160


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


def result_console() -> Console:
    """A console on standard output, wide enough for a table if that is not a terminal."""
    console = SafeConsole(highlight=False)
    return console if console.is_terminal else SafeConsole(highlight=False, width=WIDTH)
