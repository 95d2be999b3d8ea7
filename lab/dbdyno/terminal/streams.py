"""Standard output and standard error: what reaches a terminal, and what happens if nothing can be written.

Text of servers, hooks, files and stored runs may contain escape sequences, which could clear or forge what
the user sees. All printed text passes `visible`; only the sequences of `console.SafeConsole` do not.

Streams that cannot be written never end a command: the reader of a pipe may go away, a terminal may be
closed, a disk may be full. The command then goes on, and its results are stored. If standard output is
incomplete for another reason than a reader that went away, such as `head`, the command ends with exit code 4
instead of 0.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO

from dbdyno.problem import ExitCode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


import re

# The control characters of ASCII and Latin-1 except tab and the end of a line; what changes the direction of
# the text; Unicode's separators of lines and paragraphs.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)


def visible(text: str) -> str:
    r"""The text with `\u001b` and the like for its control characters. Valid JSON stays valid and equal."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class SafeText(io.TextIOWrapper):
    """A text stream that makes control characters visible."""

    def write(self, text: str, /) -> int:
        """Write the text. Returns its length, as the callers of a text stream expect."""
        super().write(visible(text))
        return len(text)

    def write_raw(self, text: str) -> int:
        """Write the text unchanged."""
        return super().write(text)


class _Descriptor(io.FileIO):
    """An open file descriptor; drops what cannot be written."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        # The first failure.
        self.error: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or drop the data. Returns the number of bytes that were written or dropped."""
        try:
            written: int | None
            while (written := super().write(data)) is None:
                # The descriptor does not block, because another process has set that.
                select.select([], [self], [])
        except OSError as error:
            self.error = self.error or error
            return memoryview(data).nbytes
        return written


@contextmanager
def guard_streams() -> Iterator[None]:
    """Replace the standard streams, unless a test did. SystemExit gets code 4 instead of 0 if standard output
    is incomplete.
    """
    if sys.stdin is None:
        _occupy(0)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 — a descriptor, open until the end.
    output: _Descriptor | None = None
    if sys.stdout is sys.__stdout__:
        output, sys.stdout = _guarded(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        _, sys.stderr = _guarded(sys.stderr, 2)
    try:
        yield
    except SystemExit as end:
        sys.stdout.flush()
        if output is None or output.error is None or output.error.errno == errno.EPIPE:
            raise
        print(f"dbdyno: standard output is incomplete: {output.error.strerror}", file=sys.stderr)
        if end.code:
            raise
        raise SystemExit(ExitCode.NOT_COMPARABLE) from None


def _guarded(stream: TextIO | None, number: int) -> tuple[_Descriptor, TextIO]:
    """A stream that replaces `stream`, which is None if its descriptor was closed at the start."""
    if stream is None:
        _occupy(number)
    descriptor = _Descriptor(number)
    is_buffered = isinstance(stream, io.TextIOWrapper) and not (stream.line_buffering or stream.write_through)
    replacement = SafeText(
        io.BufferedWriter(descriptor),
        encoding=stream.encoding if stream is not None else "utf-8",
        # A terminal that cannot show a character gets a question mark instead of an error.
        errors="replace",
        line_buffering=not is_buffered,
    )
    return descriptor, replacement


def _occupy(number: int) -> None:
    """Open a closed descriptor, so that no file that is opened later gets its number. It is open for reading
    only, so that writing fails.
    """
    opened = os.open(os.devnull, os.O_RDONLY)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)


@contextmanager
def on_standard_error() -> Iterator[None]:
    """What is printed meanwhile goes to standard error, because standard output has the answer alone."""
    with redirect_stdout(sys.stderr):
        yield
