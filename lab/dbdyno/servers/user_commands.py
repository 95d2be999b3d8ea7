"""The user's own commands: dbdyno runs them with a time limit and keeps their output.

A command may leave processes running: the server of `start`, or what `before_trial` starts and `after_trial`
ends. dbdyno ends one that exceeds its time, or is interrupted, with its whole process group. `during_trial`
runs until dbdyno stops it with all that it has started; if dbdyno is killed, the kernel ends it.

There is no shell. dbdyno removes the variables that hold passwords from their environment: its own, those of
the databases' clients, and each variant's `password_env`.
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

from dbdyno.servers.kinds import process
from dbdyno.servers.server import PASSWORD_VARIABLE, ServerProblem

# The last bytes of a command's output that dbdyno keeps.
OUTPUT_BYTES = 1_000_000
# Seconds for a command to clean up after SIGTERM.
GRACE_S = 10.0
# Seconds for the children of `during_trial`, which got the same signal; a shell's background jobs ignore it.
CHILDREN_S = 1.0

# Where mysql and psql look for a password.
CLIENTS_VARIABLES = ("MYSQL_PWD", "PGPASSWORD")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    argv: tuple[str, ...]
    # None where dbdyno ended it after its time limit.
    exit_status: int | None
    seconds: float
    # Standard output, and standard error.
    output: str
    errors: str

    def failure(self) -> str:
        """Why it failed; empty where it did not."""
        if self.exit_status == 0:
            return ""
        last = next((line for line in reversed((self.errors or self.output).splitlines()) if line), "")
        how = (
            f"took longer than {self.seconds:.3g} s, so dbdyno ended it"
            if self.exit_status is None
            else f"ended with exit status {self.exit_status}"
        )
        return f"{self.argv[0]!r} {how}" + (f": {last.strip()[:300]}" if last else "")


class Running:
    """A running command. Its output goes to unnamed files, so that it never waits for a reader."""

    def __init__(
        self,
        argv: Sequence[str],
        facts: Mapping[str, str],
        secrets: Collection[str] = (),
        *,
        endless: bool = False,
    ) -> None:
        """Start it. `facts` are added to its environment, and the variables named `secrets` taken out.

        `endless` is for one that runs until `finish`: it ends with the thread that started it.
        Raises ServerProblem where there is no such program, or it cannot be run.
        """
        if shutil.which(argv[0]) is None:
            raise ServerProblem(f"the command {argv[0]!r} does not exist, or may not be run")
        self._argv = tuple(argv)
        self._began = time.monotonic()
        hidden = {PASSWORD_VARIABLE, *CLIENTS_VARIABLES, *secrets}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        with contextlib.ExitStack() as stack:
            self._output: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            self._errors: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            try:
                self._process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._errors,
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
        """Wait for its end, at most that long; then end it."""
        return self._ended(self._status(timeout_s))

    def finish(self, timeout_s: float) -> Ended:
        """Stop it with SIGINT and wait; its end by that signal is not a failure.

        Its children end too.
        """
        # Not waited for yet, so no other process has its number, and the signal reaches the rest of its
        # group.
        ran = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        self._signal(signal.SIGINT)
        status = self._status(timeout_s)
        self._end_children()
        stopped = ran and status in (-signal.SIGINT, 128 + signal.SIGINT)
        return self._ended(0 if stopped else status)

    def _status(self, timeout_s: float) -> int | None:
        """Its exit status; None where it took too long, so that it was ended."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._end()
            return None
        except BaseException:
            self._end()
            raise

    def _end_children(self) -> None:
        """Wait for the processes it left running, send them SIGTERM, then SIGKILL."""
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
        """Whether anything of its process group runs. Zombies do not count."""
        group = self._process.pid
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return any(_runs_in(process, group) for process in psutil.process_iter())

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        # The rest of its group too.
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _ended(self, status: int | None) -> Ended:
        seconds = time.monotonic() - self._began
        return Ended(self._argv, status, seconds, _text(self._output), _text(self._errors))


def _runs_in(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and bool(process.status() != psutil.STATUS_ZOMBIE)
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


def _text(file: IO[bytes]) -> str:
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - OUTPUT_BYTES))
        return file.read().decode(errors="replace")
