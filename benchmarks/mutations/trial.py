"""Calls a reader with a document and classes how it ends: accepted, refused with a message, or wrong."""

from __future__ import annotations

import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import typer

from dbdyno.problem import Problem

TIME_LIMIT_S = 5.0
# Growth of this process's memory by one document.
MEMORY_LIMIT_KIB = 512 * 1024


class TooLong(BaseException):
    """A reader took longer than the limit. Not an Exception, so that no reader handles it."""


@dataclass
class Tally:
    """The counts of one kind of document."""

    kind: str
    accepted: int = 0
    refused: int = 0
    # What went wrong -> a document that shows it.
    wrong: dict[str, bytes] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0

    @property
    def total(self) -> int:
        """The number of documents."""
        return self.accepted + self.refused + self.counts.total()

    def add(self, document: bytes, read: Callable[[], object]) -> None:
        """Count how `read` ends."""
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        why = ""
        try:
            with _time_limit():
                read()
            self.accepted += 1
        except (Problem, typer.Exit):
            self.refused += 1
        except TooLong:
            why = f"not ended after {TIME_LIMIT_S:g} s"
        except Wrong as wrong:
            why = str(wrong)
        except Exception as error:  # every other error would be a traceback for the user
            why = _describe(error)
        if not why and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > MEMORY_LIMIT_KIB:
            why = "took more than 512 MiB"
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if why:
            self.counts[why] += 1
            self.wrong.setdefault(why, document)

    def text(self) -> str:
        """The counts in one line, and one line for each thing that went wrong."""
        lines = [
            f"{self.kind}: {self.total} documents, {self.accepted} accepted, {self.refused} refused, "
            f"{self.counts.total()} wrong; the longest took {self.longest_s:.2f} s"
        ]
        return "\n".join([*lines, *(f"  {count} x {why}" for why, count in self.counts.most_common())])

    def keep(self, folder: Path) -> None:
        """Store a document of each thing that went wrong."""
        for number, (why, document) in enumerate(self.wrong.items(), start=1):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self.kind.replace(' ', '-')}-{number}").write_bytes(document)
            (folder / f"{self.kind.replace(' ', '-')}-{number}.why").write_text(why)


class Wrong(Exception):  # noqa: N818 — a finding.
    """What a reader did wrong, other than raising an error."""


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _describe(error: Exception) -> str:
    """Type and place, without values, so that equal errors have equal descriptions."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "/dbdyno/" in one.filename]
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{place}"
