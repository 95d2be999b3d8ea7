"""Handles Ctrl-C, SIGTERM and SIGHUP, so that a command cleans up before it ends.

Signals within `BURST_S` of the first count as one request to stop: GNU timeout signals its child and then the
child's process group, so the second signal follows within microseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dbdyno.problem import ExitCode, is_interrupted

# Seconds; two key presses are further apart. The engine has the same limit (engine/cli/src/signals.rs).
BURST_S = 0.5
# A second request during the clean-up only prints a message; the third one ends the process.
REQUESTS_IGNORED = 1
# Interval in seconds at which an unhandled KeyboardInterrupt is raised again.
INSIST_S = 0.1
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Requests:
    """The requests to stop this process, each the first signal of a burst."""

    def __init__(self) -> None:
        self._burst_began: float | None = None
        # Whether KeyboardInterrupt was raised while there was nothing to clean up.
        self.was_raised = False
        # What the clean-up does, as in "stopping the servers"; empty while there is nothing to clean up.
        self._stopping = ""
        self._count = 0

    def begin(self, stopping: str) -> None:
        """Make the next request end the command after a clean-up."""
        self._stopping, self._count = stopping, 0

    def end(self) -> None:
        """Make the next request end the command at once."""
        self._stopping = ""
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def is_in_burst(self) -> bool:
        """Whether a signal that arrives now belongs to the previous request."""
        return self._burst_began is not None and time.monotonic() - self._burst_began < BURST_S

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle one signal. Raises KeyboardInterrupt to end the command or its clean-up."""
        if self.is_in_burst():
            return
        self._burst_began = time.monotonic()
        if not self._stopping:
            if number != signal.SIGINT:
                # Restore the default action, which ends the process.
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            self.was_raised = True
            signal.setitimer(signal.ITIMER_REAL, INSIST_S, INSIST_S)
            raise KeyboardInterrupt
        self._count += 1
        if self._count == 1:
            # Python swallows an exception in a callback, such as those that run after a fork.
            signal.setitimer(signal.ITIMER_REAL, INSIST_S, INSIST_S)
        if self._count == 1 or self._count > 1 + REQUESTS_IGNORED:
            raise KeyboardInterrupt
        print(f"dbdyno: {self._stopping}; interrupt once more to end at once", file=sys.stderr)

    def insist(self, _number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt again if a library that was being imported or a destructor swallowed it."""
        if is_interrupted():
            # For example while a report is written.
            return
        if self._stopping:
            self._count = max(self._count, 1)
        raise KeyboardInterrupt


_requests = _Requests()


def was_interrupted() -> bool:
    """Whether KeyboardInterrupt was raised while there was nothing to clean up."""
    return _requests.was_raised


@contextmanager
def handle_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt once per burst, and ends the process with one line and exit code 130.

    If the signal was ignored at the start, as for a background job of a shell, it stays ignored.
    """
    signal.signal(signal.SIGALRM, _requests.insist)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _requests.handle)
    try:
        yield
    except KeyboardInterrupt:
        print("dbdyno: interrupted", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


@contextmanager
def interruptible(stopping: str) -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does; a second request does not interrupt the clean-up.

    `stopping` is what the command does meanwhile, as in "stopping the servers". Under nohup SIGHUP stays
    ignored.
    """
    _requests.begin(stopping)
    ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else set()
    before = {number: signal.signal(number, _requests.handle) for number in STOPPING if number not in ignored}
    try:
        yield
    finally:
        _requests.end()
        # The rest of a burst must not end the command before it prints its result.
        if not _requests.is_in_burst():
            for number, handler in before.items():
                signal.signal(number, handler)
