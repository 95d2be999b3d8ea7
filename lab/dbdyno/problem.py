"""What a user can mend, as one exception: the thing, the value, the limit and the way out.

Every layer raises it, and only the command line catches it, prints it and chooses the exit code.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit code means. 1 is reserved for gates."""

    DONE = 0
    USAGE = 2
    NOT_REACHABLE = 3
    NOT_COMPARABLE = 4
    INTERRUPTED = 130


class Problem(Exception):  # noqa: N818 — the user's problem, and no error of ours.
    """One sentence about what is wrong and one about the way out.

    `exit_code` is 2 for configuration, 3 for a server that cannot be reached, 4 for what failed in a run.
    """

    def __init__(self, text: str, way_out: str = "", exit_code: int = ExitCode.USAGE) -> None:
        super().__init__(text)
        self.text = text
        self.way_out = way_out
        self.exit_code = int(exit_code)
