"""The user's own commands: run with a time limit, their words kept.

What a command leaves running when it ends in time is the user's: the server of `start`, what `before_trial`
starts for `after_trial` to end. One that takes too long, or is interrupted, is ended with its whole process
group. `during_trial` has no end of its own: it is told to stop, what it has started ends with it, and should
dbdyno be killed, the kernel ends it.

No shell takes part, and no password is in their environment, as far as dbdyno knows the variables that hold
one: its own, those of the databases' clients, and each variant's `password_env`.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import psutil

from dbdyno.servers import process
from dbdyno.servers.server import PASSWORD_VARIABLE, ServerProblem

# Of what a command says, the end is kept.
WORDS_BYTES = 1_000_000
# A command that was told to stop may put its house in order.
GRACE_S = 10.0
# What `during_trial` has started has heard the same signal, but for what a shell starts in the background.
CHILDREN_S = 1.0

# Where mysql and psql look for a password.
CLIENTS_VARIABLES = ("MYSQL_PWD", "PGPASSWORD")


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

    def __init__(
        self,
        argv: Sequence[str],
        facts: Mapping[str, str],
        secrets: Collection[str] = (),
        *,
        endless: bool = False,
    ) -> None:
        """Start it. `facts` are added to its environment, and the variables named `secrets` taken out.

        `endless` is for one that runs until it is told to stop: it ends with the thread that has started it.
        Raises ServerProblem where there is no such program, or it cannot be run.
        """
        if shutil.which(argv[0]) is None:
            raise ServerProblem(f"the command {argv[0]!r} is not there, or may not be run")
        self._argv = tuple(argv)
        self._began = time.monotonic()
        hidden = {PASSWORD_VARIABLE, *CLIENTS_VARIABLES, *secrets}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        with contextlib.ExitStack() as stack:
            self._output: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            self._complaints: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            try:
                self._process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._complaints,
                    env={**kept, **facts},
                    # Ctrl-C reaches dbdyno alone, which passes it on in order.
                    start_new_session=True,
                    preexec_fn=functools.partial(process.end_with, os.getpid()) if endless else None,  # noqa: PLW1509 — it only makes system calls.
                )
            except (OSError, ValueError) as error:
                raise _not_started(argv[0], error) from error
            # Closed by `_ended`.
            stack.pop_all()

    def wait(self, timeout_s: float) -> Ended:
        """Wait for its end, at most that long; then it is ended."""
        return self._ended(self._status(timeout_s))

    def finish(self, timeout_s: float) -> Ended:
        """Tell it to stop (SIGINT), and wait for that. Stopping when told is no fault of it.

        What it has started and left running ends too.
        """
        # Not waited for yet, so its number is nobody else's and what is left of its group hears it.
        told = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        self._signal(signal.SIGINT)
        status = self._status(timeout_s)
        self._end_children()
        stopped = told and status in (-signal.SIGINT, 128 + signal.SIGINT)
        return self._ended(0 if stopped else status)

    def _status(self, timeout_s: float) -> int | None:
        """Its exit status; None where it took too long and was ended."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._end()
            return None
        except BaseException:
            self._end()
            raise

    def _end_children(self) -> None:
        """Wait for what it has left running; then tell it to end, and then end it."""
        try:
            for number, patience_s in ((signal.SIGTERM, CHILDREN_S), (signal.SIGKILL, GRACE_S)):
                deadline = time.monotonic() + patience_s
                while (left := self._has_children()) and time.monotonic() < deadline:
                    time.sleep(0.02)
                if not left:
                    return
                self._signal(number)
        except BaseException:
            self._signal(signal.SIGKILL)
            raise

    def _has_children(self) -> bool:
        """Whether anything of its process group runs. Zombies that nobody waits for do not."""
        group = self._process.pid
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return any(_runs_in(found, group) for found in psutil.process_iter())

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


def _runs_in(found: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(found.pid) == group and bool(found.status() != psutil.STATUS_ZOMBIE)
    except (ProcessLookupError, psutil.Error):
        return False


def _not_started(program: str, error: OSError | ValueError) -> ServerProblem:
    """Why the system did not start a program that is there."""
    # A ValueError is about its arguments: a zero byte in one of them.
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    hint = {
        errno.ENOEXEC: " (a script names its interpreter in its first line, as in #!/bin/sh)",
        errno.ENOENT: " (the interpreter in its first line is not there)",
    }.get(getattr(error, "errno", None) or 0, "")
    return ServerProblem(f"the command {program!r} cannot be started: {why}{hint}")


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
