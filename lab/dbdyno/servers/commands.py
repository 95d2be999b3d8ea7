"""The user's own commands: run with a time limit, their words kept, their children ended with them.

No shell takes part, and no password is in their environment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from dbdyno.servers.server import PASSWORD_VARIABLE, ServerProblem

# Of what a command says, the end is kept.
WORDS_BYTES = 1_000_000
# A command that was told to stop may put its house in order.
GRACE_S = 10.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    argv: tuple[str, ...]
    # None: it was ended when its time was over.
    exit_status: int | None
    seconds: float
    # Standard output, and standard error.
    output: str
    complaints: str

    def fault(self) -> str:
        """What went wrong, in words; empty when it ended well."""
        if self.exit_status == 0:
            return ""
        said = next((line for line in reversed((self.complaints or self.output).splitlines()) if line), "")
        how = (
            f"took longer than {self.seconds:.3g} s and was ended"
            if self.exit_status is None
            else f"ended with exit status {self.exit_status}"
        )
        return f"{self.argv[0]!r} {how}" + (f": {said.strip()[:300]}" if said else "")


class Running:
    """A command that has been started. Its words go to unnamed files, so that it never waits for a reader."""

    def __init__(self, argv: Sequence[str], facts: Mapping[str, str], secrets: Collection[str] = ()) -> None:
        """Start it. `facts` are added to its environment, and the variables named `secrets` taken out.

        Raises ServerProblem where there is no such program.
        """
        if shutil.which(argv[0]) is None:
            raise ServerProblem(f"the command {argv[0]!r} is not there, or may not be run")
        self._argv = tuple(argv)
        self._began = time.monotonic()
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 — closed by `ended`.
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        hidden = {PASSWORD_VARIABLE, *secrets}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._complaints,
            env={**kept, **facts},
            # Ctrl-C reaches dbdyno alone; and its children end with it.
            start_new_session=True,
        )

    def wait(self, timeout_s: float) -> Ended:
        """Wait for its end, at most that long; then it is ended."""
        try:
            status: int | None = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._end()
            status = None
        except BaseException:
            self._end()
            raise
        return self._ended(status)

    def finish(self, timeout_s: float) -> Ended:
        """Tell it to stop (SIGINT), and wait for that. Stopping when told is no fault of it."""
        told = self._process.poll() is None
        if told:
            self._signal(signal.SIGINT)
        ended = self.wait(timeout_s)
        if told and ended.exit_status in (-signal.SIGINT, 128 + signal.SIGINT):
            return Ended(ended.argv, 0, ended.seconds, ended.output, ended.complaints)
        return ended

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        # Whatever it has left behind, too.
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _ended(self, status: int | None) -> Ended:
        seconds = time.monotonic() - self._began
        return Ended(self._argv, status, seconds, _words(self._output), _words(self._complaints))


def run(
    argv: Sequence[str], facts: Mapping[str, str], timeout_s: float, secrets: Collection[str] = ()
) -> Ended:
    """Run a command to its end. Raises ServerProblem where there is no such program."""
    return Running(argv, facts, secrets).wait(timeout_s)


def _words(file: IO[bytes]) -> str:
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - WORDS_BYTES))
        return file.read().decode(errors="replace")
