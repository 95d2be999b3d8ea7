"""Runs the user's commands (hooks, and the commands of a `command` server) with a time limit.

A command may leave processes running, such as the server of `start`, or a process that `before_trial` starts
and `after_trial` ends. If a command exceeds its time limit or is interrupted, dbdyno ends its whole process
group. `during_trial` runs until dbdyno stops this command and all its children; if dbdyno is killed, the
kernel kills the command.

Commands run without a shell, and get few variables of dbdyno's environment, which may hold other secrets.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from dbdyno import passwords
from dbdyno.servers.kinds import process
from dbdyno.servers.server import ServerProblem

_LOG = logging.getLogger(__name__)

# How many bytes dbdyno stores of a command's output: the last ones.
OUTPUT_BYTES = 1_000_000
# Seconds for a command to clean up after SIGTERM.
GRACE_S = 10.0
# Seconds for the children of `during_trial` to end after SIGINT, which the background jobs of a shell ignore.
CHILDREN_S = 1.0

# The variables of dbdyno's environment that each command gets, and the prefixes of further ones.
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "USER")
INHERITED_PREFIXES = ("LC_", "DBDYNO_")


def environment(
    facts: Mapping[str, str], secrets: Collection[str], listed: Collection[str]
) -> dict[str, str]:
    """The environment of a command: `facts`, the inherited variables, and those that the experiment lists.

    `secrets` are the names of the variables with the passwords of the experiment, which no command gets.
    """

    def is_inherited(name: str) -> bool:
        if name == passwords.VARIABLE or name in secrets:
            return False
        return name in listed or name in INHERITED or name.startswith(INHERITED_PREFIXES)

    return {name: value for name, value in os.environ.items() if is_inherited(name)} | dict(facts)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    argv: tuple[str, ...]
    # None if dbdyno ended it at its time limit.
    exit_status: int | None
    seconds: float
    # Standard output and standard error.
    output: str
    errors: str

    def failure(self) -> str:
        """Why the command failed; empty if it did not."""
        if self.exit_status == 0:
            return ""
        last = next((line for line in reversed((self.errors or self.output).splitlines()) if line), "")
        reason = (
            f"took longer than {self.seconds:.3g} s, so dbdyno ended it"
            if self.exit_status is None
            else f"ended with exit status {self.exit_status}"
        )
        return f"{self.argv[0]!r} {reason}" + (f": {last.strip()[:300]}" if last else "")


class RunningCommand:
    """A running command. Its output goes to unnamed files, so it never blocks on a pipe."""

    def __init__(
        self,
        argv: Sequence[str],
        variables: Mapping[str, str],
        *,
        endless: bool = False,
        folder: Path | None = None,
    ) -> None:
        """Start the command, in `folder`; `variables` are its whole environment.

        `endless` is for a command that runs until `finish`; it ends with the thread that started it. Raises
        ServerProblem if the program does not exist or cannot be run.
        """
        if shutil.which(argv[0]) is None:
            raise ServerProblem(f"the command {argv[0]!r} does not exist or is not executable")
        self._argv = tuple(argv)
        self._began = time.monotonic()
        with contextlib.ExitStack() as stack:
            self._output: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            self._errors: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            try:
                self._process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._errors,
                    env=variables,
                    cwd=folder,
                    # Ctrl-C reaches only dbdyno, which then stops the command.
                    start_new_session=True,
                    preexec_fn=functools.partial(process.die_with_parent, os.getpid()) if endless else None,  # noqa: PLW1509 — it only makes system calls.
                )
            except (OSError, ValueError) as error:
                raise _start_failure(argv[0], error) from error
            # `_result` closes the two files.
            stack.pop_all()
        # The arguments may contain what only the experiment should.
        _LOG.debug("started process %d: %s", self._process.pid, argv[0])

    def wait(self, timeout_s: float) -> CommandResult:
        """Wait until the command ends; after `timeout_s`, end it."""
        return self._result(self._status(timeout_s))

    def finish(self, timeout_s: float) -> CommandResult:
        """Stop the command and its children with SIGINT and wait; an end by this signal is not a failure."""
        # The process is not reaped yet, so its id is not reused, and the signal still reaches the rest of its
        # group.
        was_running = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        self._signal(signal.SIGINT)
        status = self._status(timeout_s)
        self._end_children()
        stopped = was_running and status in (-signal.SIGINT, 128 + signal.SIGINT)
        return self._result(0 if stopped else status)

    def _status(self, timeout_s: float) -> int | None:
        """The exit status; None if the command exceeded its time limit and was ended."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._end()
            return None
        except BaseException:
            self._end()
            raise

    def _end_children(self) -> None:
        """Wait for the remaining processes of the group, then send them SIGTERM, then SIGKILL."""
        try:
            for number, wait_s in ((signal.SIGTERM, CHILDREN_S), (signal.SIGKILL, GRACE_S)):
                deadline = time.monotonic() + wait_s
                while (remaining := self._has_children()) and time.monotonic() < deadline:
                    time.sleep(0.02)
                if not remaining:
                    return
                self._signal(number)
        except BaseException:
            self._signal(signal.SIGKILL)
            raise

    def _has_children(self) -> bool:
        """Whether a process of the command's process group runs. Zombies do not count."""
        group = self._process.pid
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return any(_is_running_in(process, group) for process in psutil.process_iter())

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        # Kills the whole process group.
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _result(self, status: int | None) -> CommandResult:
        seconds = time.monotonic() - self._began
        _LOG.debug("process %d ended with status %s after %.3f s", self._process.pid, status, seconds)
        return CommandResult(self._argv, status, seconds, _text(self._output), _text(self._errors))


def _is_running_in(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (ProcessLookupError, psutil.Error):
        return False


def _start_failure(program: str, error: OSError | ValueError) -> ServerProblem:
    """Why the system could not start an existing program."""
    # A ValueError means that an argument contains a zero byte.
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    detail = {
        errno.ENOEXEC: " (a script names its interpreter in its first line, as in #!/bin/sh)",
        errno.ENOENT: " (the interpreter in its first line does not exist)",
    }.get(getattr(error, "errno", None) or 0, "")
    return ServerProblem(f"the command {program!r} cannot be started: {why}{detail}")


def run(
    argv: Sequence[str], variables: Mapping[str, str], timeout_s: float, folder: Path | None = None
) -> CommandResult:
    """Run a command until it ends, in `folder`. Raises ServerProblem if the program does not exist."""
    return RunningCommand(argv, variables, folder=folder).wait(timeout_s)


def _text(file: IO[bytes]) -> str:
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - OUTPUT_BYTES))
        return file.read().decode(errors="replace")
