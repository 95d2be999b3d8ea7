"""Errors that the user can fix. Every package raises them; only `commands` catches and prints them."""

from __future__ import annotations

import sys
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the commands. WORSE and UNDECIDED are results of a gate (--max-loss). Without a gate
    `dbdyno report` exits with 1 if no chart was rendered.
    """

    DONE = 0
    WORSE = 1
    USAGE = 2
    NOT_REACHABLE = 3
    NOT_COMPARABLE = 4
    UNDECIDED = 5
    INTERRUPTED = 130


class Problem(Exception):  # noqa: N818 — a problem of the user's setup, not a bug.
    """An error that the user can fix: a sentence with the fact and its consequence, and one with the fix.

    `exit_code` is 2 for configuration, 3 for a server that cannot be reached, 4 for a failed run.
    """

    def __init__(self, text: str, fix: str = "", exit_code: int = ExitCode.USAGE) -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix
        self.exit_code = int(exit_code)

    @property
    def with_fix(self) -> str:
        """The text, with the fix in brackets."""
        return f"{self.text} ({self.fix})" if self.fix else self.text


def is_interrupted() -> bool:
    """Whether a KeyboardInterrupt is being handled, or an exception that was raised while one was."""
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
