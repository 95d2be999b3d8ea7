"""Says what a command waits for, if it waits long: a silent command looks the same as one that hangs."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Seconds after which a wait is reported, and then again after each interval.
FIRST_S, AGAIN_S = 5.0, 60.0
_CHECK_S = 1.0
_LOG = logging.getLogger(__name__)


class _Waits:
    """The waits in progress, and the thread that reports them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        # Number of a wait -> what it waits for, its begin, and when to report it.
        self._waits: dict[int, tuple[str, float, float]] = {}
        self._thread: threading.Thread | None = None
        # None until a command reports waits.
        self.report: Callable[[str], None] | None = None

    def begin(self, what: str) -> int:
        now = time.monotonic()
        with self._lock:
            number = next(self._numbers)
            self._waits[number] = (what, now, now + FIRST_S)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="waiting", daemon=True)
                self._thread.start()
        return number

    def end(self, number: int) -> float:
        """The seconds of the wait."""
        with self._lock:
            _, began, _ = self._waits.pop(number)
        return time.monotonic() - began

    def _watch(self) -> None:
        while True:
            time.sleep(_CHECK_S)
            now = time.monotonic()
            with self._lock:
                due = [(number, *wait) for number, wait in self._waits.items() if now >= wait[2]]
                for number, what, began, _ in due:
                    self._waits[number] = (what, began, now + AGAIN_S)
            for _, what, began, _ in due:
                report_wait(what, now - began)


_WAITS = _Waits()


def report_wait(what: str, since_s: float) -> None:
    """Report a wait that began `since_s` seconds ago."""
    if _WAITS.report is not None:
        _WAITS.report(f"waiting for {what}, {since_s:.0f} s so far")


@contextmanager
def waiting_for(what: str, *, is_logged: bool = True) -> Iterator[None]:
    """Report `what` if the context takes longer than `FIRST_S`, and log its end if it `is_logged`."""
    number = _WAITS.begin(what)
    try:
        yield
    finally:
        seconds = _WAITS.end(number)
        if is_logged:
            _LOG.debug("waited %.3f s for %s", seconds, what)


@contextmanager
def reported_by(report: Callable[[str], None]) -> Iterator[None]:
    """Within the context, pass the reports to `report`, in a thread of its own."""
    before, _WAITS.report = _WAITS.report, report
    try:
        yield
    finally:
        _WAITS.report = before
