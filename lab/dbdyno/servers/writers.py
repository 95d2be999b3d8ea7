"""Finds and kills the processes that still write to the directory of a killed run.

The kernel kills a server together with dbdyno, and an installer kills its own process group. A process may
nevertheless be left for a moment, for example a backend of PostgreSQL. A directory is used again only when
nothing writes to it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from dbdyno.servers.server import ServerProblem

PROC = Path("/proc")
# Maximum seconds for a killed process to end: it may have to release a lot of memory.
END_S_MAX = 30.0
POLL_S = 0.02


def end_writers(directory: Path) -> None:
    """Kill all processes that have a file below `directory` open for writing. Readers, such as `tail -f`,
    stay.

    Everything that dbdyno starts in this directory has its log open for writing. The caller holds the
    directory's lock. Raises ServerProblem if a process does not end.
    """
    deadline = time.monotonic() + END_S_MAX
    while writers := list(_writers(directory)):
        for pid in writers:
            _kill(pid, directory)
        if time.monotonic() > deadline:
            raise ServerProblem(
                f"process {writers[0]} of an earlier run still writes to {directory}, and cannot be killed",
                "end that process, or choose another results directory",
                exit_code=4,
            )
        time.sleep(POLL_S)


def _writers(directory: Path) -> Iterator[int]:
    prefix = f"{directory.resolve()}/"
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid() and _writes_below(entry, prefix):
            yield int(entry.name)


def _writes_below(process: Path, prefix: str) -> bool:
    # The process may end meanwhile, or belong to another user, whose processes dbdyno did not start.
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()).startswith(prefix) and _is_writable(process, descriptor.name):
                    return True
    return False


def _is_writable(process: Path, descriptor: str) -> bool:
    lines = (process / "fdinfo" / descriptor).read_text().splitlines()
    flags = next(line.split()[1] for line in lines if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _kill(pid: int, directory: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # The handle names one process even if its id is used again.
            if _writes_below(PROC / str(pid), f"{directory.resolve()}/"):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
