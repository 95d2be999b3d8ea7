"""Lets only one dbdyno at a time measure on this machine, because two would slow each other down.

::

    DIRECTORY/measuring          locked by the process that measures; contains its command
    DIRECTORY/sharing-PID        locked by a process that shares the machine (--share-machine)

The kernel releases the locks (flock) when a process ends in any way. They hold among the processes of one
user.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dbdyno.servers.workspace import Lock

# Seconds between two attempts to get the lock.
POLL_S = 0.5


@contextmanager
def only_measurement(command: str, tell: Callable[[str], None], *, share: bool) -> Iterator[None]:
    """Wait until no other dbdyno measures on this machine, then keep others waiting within the context.

    With `share`, do not wait. The messages of others name `command`; `tell` prints the messages of this one.
    """
    name = f"{command} (process {os.getpid()})"
    try:
        directory = _directory()
        lock = Lock(directory / (f"sharing-{os.getpid()}" if share else "measuring"))
    except OSError as error:
        tell(f"other dbdyno processes on this machine cannot be found: {error}")
        yield
        return
    if share:
        lock.acquire(wait=False)
    else:
        _acquire(lock, tell)
    try:
        lock.write(name)
        if not share:
            _wait_for_sharing(directory, tell)
        yield
    finally:
        if share:
            lock.remove()
        lock.release()


def _acquire(lock: Lock, tell: Callable[[str], None]) -> None:
    """Acquire a lock; while another process holds it, tell once for whom this one waits."""
    waits_for = ""
    while not lock.acquire(wait=False):
        holder = _read(lock.path)
        if holder and holder != waits_for:
            waits_for = holder
            tell(f"waiting for {holder}, which measures on this machine (--share-machine starts at once)")
        time.sleep(POLL_S)


def _wait_for_sharing(directory: Path, tell: Callable[[str], None]) -> None:
    for path in directory.glob("sharing-*"):
        try:
            lock = Lock(path)
        except OSError:
            # A link, which is no lock of dbdyno.
            continue
        try:
            _acquire(lock, tell)
            lock.remove()
        finally:
            lock.release()


def _read(path: Path) -> str:
    try:
        return Lock.read(path)
    except OSError:
        return ""


def _directory() -> Path:
    """The directory of the locks, which only this user may use: below XDG_RUNTIME_DIR, else below /run/user,
    else below the directory of temporary files. Raises OSError.
    """
    user = os.geteuid()
    declared, usual = os.environ.get("XDG_RUNTIME_DIR", ""), Path(f"/run/user/{user}")
    if declared and Path(declared).is_dir():
        path = Path(declared) / "dbdyno"
    elif usual.is_dir():
        path = usual / "dbdyno"
    else:
        path = Path(tempfile.gettempdir()) / f"dbdyno-{user}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    # Everyone may create a name in the directory of temporary files.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o077:
        raise PermissionError(f"{path} does not belong to this user alone")
    return path
