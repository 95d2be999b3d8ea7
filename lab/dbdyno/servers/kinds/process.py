"""Starts and stops a server as a child process with its own user and CPUs, which never outlives dbdyno.

This module needs Linux, for parent-death signals, CPU sets and /proc.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import resource
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from dbdyno.experiment.base import format_cpus, parse_cpus
from dbdyno.servers import owned_folder
from dbdyno.servers.account import ServerUser
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.usage import process_tree
from dbdyno.waiting import waiting_for


class Child(Protocol):
    """A server's process or container: the part of `subprocess.Popen`'s interface that dbdyno uses."""

    returncode: int | None

    # Process id on this machine.
    pid: int

    def poll(self) -> int | None:
        """The exit status; None while the process runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process ends. Raises subprocess.TimeoutExpired."""

    def send_signal(self, number: int, /) -> None:
        """Send a signal to the process."""

    def kill(self) -> None:
        """Kill the process."""


# How long a signal may stop a server that starts, in seconds, and how often dbdyno looks.
STOPPED_S_MAX = 10.0
_CHECK_S = 0.5

_LOG = logging.getLogger(__name__)

# `prctl` option from <linux/prctl.h>.
PR_SET_PDEATHSIG = 1

# Runs an installer or a proxy, which starts other programs. The shell leads their process group; at SIGTERM,
# which the kernel sends when dbdyno ends, it kills the group.
_AS_GROUP = ("/bin/sh", "-c", 'trap "kill -KILL 0" TERM; "$@" & wait "$!"', "sh")

# Loaded before any fork, because a child must not import or open anything between fork and exec.
_LIBC = ctypes.CDLL(None, use_errno=True)

# dbdyno later binds itself to the client's CPUs, which a server without a declared CPU set must not inherit.
_CPUS_AT_START = frozenset(os.sched_getaffinity(0))


def server_cpus(cpus: str | None) -> frozenset[int]:
    """The CPUs of a server: its declared set, or all CPUs that dbdyno had when it started."""
    return _CPUS_AT_START if cpus is None else parse_cpus(cpus)


def online_cpus() -> frozenset[int]:
    """The CPUs of this machine that are online."""
    try:
        return parse_cpus(Path("/sys/devices/system/cpu/online").read_text().strip())
    except (OSError, ValueError):
        return frozenset(range(os.cpu_count() or 1))


def open_files_max() -> int:
    """The maximum number of files a child may have open: the hard limit of this process."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1_048_576 if hard == resource.RLIM_INFINITY else hard


class StopWatch:
    """Finds a server that a signal (SIGSTOP) stops while it starts."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._last_running = time.monotonic()

    def require_running(self, what: str) -> None:
        """Raise ServerProblem if the process was stopped in all calls of the last `STOPPED_S_MAX` seconds."""
        now = time.monotonic()
        if not _is_stopped(self._child.pid):
            self._last_running = now
        elif now - self._last_running > STOPPED_S_MAX:
            raise ServerProblem(
                f"{what} does not start: a signal has stopped its process (pid {self._child.pid}) for "
                f"{STOPPED_S_MAX:g} s",
                "find out what sends it SIGSTOP",
                exit_code=4,
            )


def wait_for_installer(child: Child, what: str) -> int:
    """Wait until a program that installs has ended, and return its exit status. Raises ServerProblem if a
    signal stops it.
    """
    watch = StopWatch(child)
    with waiting_for(f"{what} to be initialised"):
        while True:
            try:
                return child.wait(timeout=_CHECK_S)
            except subprocess.TimeoutExpired:
                watch.require_running(what)


def _is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process or one of its descendants."""
    return any(_state(entry) == "T" for entry in process_tree(pid))


def _state(pid: int) -> str:
    """The state in /proc/PID/stat, which follows the name in parentheses (proc(5)); empty after its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def start(
    arguments: Sequence[str],
    *,
    user: ServerUser,
    cpus: str | None,
    directory: Path,
    output: Path,
    has_children: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program as `user` on `cpus`, with its output in the file `output`.

    The kernel sends the child SIGKILL when the thread that called this function ends for any reason, so
    call it from a thread that lives as long as the server should. If the program `has_children` that do not
    end with it, these are killed too. CPUs are set before exec, because servers derive settings from the
    number of CPUs. The child leads its own session: Ctrl-C reaches only dbdyno, which then stops the server.

    Raises ServerProblem when this machine lacks one of the CPUs.
    """
    requested = server_cpus(cpus)
    if missing := requested - online_cpus():
        raise ServerProblem(
            f"server.cpus is {cpus!r}, but this machine has no CPU {format_cpus(missing)}; "
            f"it has {format_cpus(online_cpus())}",
            "choose CPUs of this machine",
        )
    program, text = arguments[0], shlex.join(arguments)
    if has_children:
        arguments = [*_AS_GROUP, *arguments]
    prepare = _before_exec(os.getpid(), requested, signal.SIGTERM if has_children else signal.SIGKILL)
    # A process that outlives dbdyno is known by the mark that it has open.
    mark = owned_folder.open_mark(directory)
    try:
        # The directory belongs to the server's user, who could put a link there.
        with open(output, "ab", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW)) as file:
            child = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=directory,
                env={**_environment(), owned_folder.DIRECTORY_VARIABLE: str(directory)},
                start_new_session=True,
                pass_fds=() if mark is None else (mark,),
                **user.popen_options(),
                # Runs after the switch to the server's user, which would clear the parent-death signal.
                preexec_fn=prepare,  # noqa: PLW1509 — it only makes system calls.
            )
    except subprocess.SubprocessError as error:
        raise ServerProblem(
            f"{program} could not be started on CPUs {format_cpus(requested)}; this process may use "
            f"{format_cpus(_CPUS_AT_START)}",
            "choose server.cpus among those",
        ) from error
    finally:
        if mark is not None:
            os.close(mark)
    _LOG.debug("started process %d on CPUs %s: %s", child.pid, format_cpus(requested), text)
    return child


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Called in a child before exec: the kernel then sends it a signal when the thread that started it ends.

    `parent` is the id of the parent process; if it has already ended, the child exits.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _before_exec(parent: int, cpus: frozenset[int], number: int) -> Callable[[], None]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def prepare() -> None:
        die_with_parent(parent, number)
        os.sched_setaffinity(0, cpus)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        # A core file of a server with a large buffer pool would fill the experiment's disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return prepare


def _environment() -> dict[str, str]:
    """The environment of a server: messages are in English, and secrets of the user's shell are left out."""
    inherited = ("PATH", "LD_LIBRARY_PATH", "TZ", "TMPDIR")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"
    return {name: os.environ[name] for name in inherited if name in os.environ} | {
        "PATH": path,
        "LC_ALL": "C",
        "HOME": "/",
    }


def end(process: Child, number: int | None = None, *, clean: bool, timeout_s: float) -> float:
    """Stop or kill the process, wait until it ends, and return how many seconds that took. Then kill the rest
    of its process group.

    `number` is the signal to send; the default is SIGTERM for a clean stop and SIGKILL otherwise. If a clean
    stop takes longer than `timeout_s`, the process is killed and ServerProblem is raised.
    """
    began = time.monotonic()
    if process.poll() is None:
        process.send_signal(number or (signal.SIGTERM if clean else signal.SIGKILL))
        # A process that was stopped (SIGSTOP) handles no signal but SIGKILL until it continues, and
        # PostgreSQL waits for all its processes.
        process.send_signal(signal.SIGCONT)
        for entry in process_tree(process.pid):
            # The processes of a container belong to another user.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(entry, signal.SIGCONT)
    try:
        process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        if clean:
            raise ServerProblem(
                f"process {process.pid} did not stop within {timeout_s:g} s and was killed", exit_code=4
            ) from error
    finally:
        kill_group(process)
    seconds = time.monotonic() - began
    _LOG.debug("process %d ended within %.3f s", process.pid, seconds)
    return seconds


def kill_group(leader: Child) -> None:
    """Kill what an ended process that `start` has started has left in its process group."""
    # A group keeps its number from other processes while it has members.
    if isinstance(leader, subprocess.Popen):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
