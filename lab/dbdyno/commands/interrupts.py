"""Ctrl-C, for commands that have something to stop first."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# A second Ctrl-C is impatience while things are being stopped; the third one is meant.
SIGNALS_IGNORED = 1


@contextmanager
def interruptible(stopping: str) -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does; impatience does not keep it from cleaning up.

    `stopping` says what is being done meanwhile, as in "stopping the servers".
    """
    received = 0

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1 or received > 1 + SIGNALS_IGNORED:
            raise KeyboardInterrupt
        print(f"dbdyno: {stopping}; once more to leave at once", file=sys.stderr)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
