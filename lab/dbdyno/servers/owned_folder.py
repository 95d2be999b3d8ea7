"""The directories that dbdyno creates and removes again: their mark, and what may be removed or killed there.

Such a directory has the file `.dbdyno` (its mark), which names it. Nothing without a mark is ever removed,
and no process is killed that did not inherit the mark of its directory from dbdyno. `root` is a folder that
the user has named, such as that of the results: it may be a symbolic link, and nothing below it may be one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from dbdyno.servers.server import MachineProblem, ServerProblem

MARK = ".dbdyno"
# The environment variable of a server's processes with its directory, for programs that close inherited files
# and for containers, which inherit none.
DIRECTORY_VARIABLE = "DBDYNO_SERVER_DIRECTORY"
UNFINISHED = ".unfinished"
# Maximum seconds for a killed process to end: it may have to release a lot of memory.
END_S_MAX = 30.0
POLL_S = 0.02

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FIX = "dbdyno follows no symbolic link below the folder that you name: replace the link by a folder"


@contextlib.contextmanager
def open_folder(path: Path, root: Path) -> Iterator[int]:
    """A descriptor of the folder `path` below `root`. Raises OSError, also for a link between them."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in path.relative_to(root).parts:
            below = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def require_folder(path: Path) -> None:
    """Create a folder unless it exists. Raises ServerProblem if it is a link, and OSError if it belongs to
    another user, who may have created it first in a folder that everybody may write to.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise ServerProblem(f"{path} is a symbolic link", _FIX)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "it is not a folder")
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EACCES, "it belongs to another user")


def create(path: Path, root: Path, mode: int = 0o700) -> None:
    """Create a directory with a mark. Raises MachineProblem, also if one without a mark is there."""
    try:
        with open_folder(path.parent, root) as parent:
            # An empty one: dbdyno was killed before it could write the mark.
            with contextlib.suppress(OSError):
                os.rmdir(path.name, dir_fd=parent)
            os.mkdir(path.name, mode, dir_fd=parent)
            new = os.open(path.name, _FOLDER, dir_fd=parent)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                mark = os.open(MARK, flags, 0o600, dir_fd=new)
                try:
                    os.write(mark, _content(path.name))
                finally:
                    os.close(mark)
            finally:
                os.close(new)
    except FileExistsError as error:
        raise MachineProblem(
            f"{path} exists, and dbdyno did not create it (it has no mark {MARK})",
            "remove it, or choose another folder",
            exit_code=4,
        ) from error
    except OSError as error:
        raise MachineProblem(
            f"the directory {path} could not be created: {error.strerror or error}",
            "free some space or choose another results directory",
            exit_code=4,
        ) from error


def is_owned(path: Path, root: Path) -> bool:
    """Whether `path` is a directory with the mark of dbdyno, and no link leads to it."""
    try:
        with open_folder(path, root) as descriptor:
            mark = os.open(
                MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor
            )
            try:
                status = os.fstat(mark)
                is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
                return (
                    is_file and status.st_uid == os.geteuid() and os.read(mark, 1000) == _content(path.name)
                )
            finally:
                os.close(mark)
    except OSError:
        return False


def remove(path: Path, root: Path, *, marked: Path | None = None) -> bool:
    """Remove a directory with a mark; whether it does not exist any more.

    `marked` is the directory that has the mark, if not `path` itself. A directory without a mark stays, and
    so does one behind a link, or with a mount point.
    """
    if not os.path.lexists(path):
        return True
    if not is_owned(marked or path, root) or _has_mount(path):
        return False
    with contextlib.suppress(OSError), open_folder(path.parent, root) as parent:
        with open_folder(path, root) as descriptor:
            # The mark goes last: if this is interrupted, the rest still has it.
            for name in sorted(os.listdir(descriptor), key=MARK.__eq__):  # noqa: PTH208
                if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                    shutil.rmtree(name, dir_fd=descriptor)
                else:
                    os.unlink(name, dir_fd=descriptor)
        os.rmdir(path.name, dir_fd=parent)
    return not os.path.lexists(path)


def unmarked(folder: Path, root: Path) -> list[Path]:
    """The directories and links in a folder of dbdyno that have no mark, so that dbdyno leaves them."""
    entries = sorted(folder.iterdir())
    return [
        entry for entry in entries if entry.is_symlink() or (entry.is_dir() and not is_owned(entry, root))
    ]


def open_mark(directory: Path) -> int | None:
    """A descriptor of the mark of a directory, or of its parent, for the processes that dbdyno starts there;
    None if there is no mark.
    """
    for folder in (directory, directory.parent):
        with contextlib.suppress(OSError):
            return os.open(folder / MARK, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    return None


def end_processes(directory: Path, root: Path) -> None:
    """Kill the processes that dbdyno has started in a directory with a mark, which an earlier run has left.

    The kernel kills a server together with dbdyno, and an installer kills its own process group. A process
    may nevertheless be left for a moment, for example a backend of PostgreSQL. The caller holds the lock of
    the directory. Raises ServerProblem if a process does not end.
    """
    if not is_owned(directory, root):
        return
    deadline = time.monotonic() + END_S_MAX
    while left := [pid for pid in _processes() if _is_started_in(pid, directory)]:
        for pid in left:
            _kill(pid, directory)
        if time.monotonic() > deadline:
            raise ServerProblem(
                f"process {left[0]} of an earlier run still uses {directory}, and cannot be killed",
                "end that process, or choose another results directory",
                exit_code=4,
            )
        time.sleep(POLL_S)


def _content(name: str) -> bytes:
    return b"dbdyno " + os.fsencode(name.removesuffix(UNFINISHED)) + b"\n"


def _has_mount(path: Path) -> bool:
    """Whether something is mounted on or below a directory (proc_pid_mountinfo(5))."""
    real = os.path.realpath(path)
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        escaped = line.split(b" ")[4]
        point = os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), escaped))
        if point == real or point.startswith(f"{real}/"):
            return True
    return False


def _processes() -> list[int]:
    names = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [int(name) for name in names if int(name) != os.getpid()]


def _is_started_in(pid: int, directory: Path) -> bool:
    """Whether dbdyno has started a process, or one of its ancestors, in this directory: it has the mark open
    for appending, or the variable in its environment and a file below the directory open for writing.
    """
    process = Path("/proc", str(pid))
    # The process may end meanwhile, or belong to another user, whose processes dbdyno did not start.
    with contextlib.suppress(OSError):
        mark = (directory / MARK).lstat()
        real = os.path.realpath(directory)
        has_variable = _started_in(process).is_relative_to(real)
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                status = descriptor.stat()
                is_mark = (status.st_dev, status.st_ino) == (mark.st_dev, mark.st_ino)
                # Flags are read only where they decide: this looks at every open file of the machine.
                if is_mark and _flags(process, descriptor.name) & os.O_APPEND:
                    return True
                is_below = has_variable and descriptor.readlink().is_relative_to(real)
                if is_below and _flags(process, descriptor.name) & os.O_ACCMODE != os.O_RDONLY:
                    return True
    return False


def _started_in(process: Path) -> Path:
    name = os.fsencode(f"{DIRECTORY_VARIABLE}=")
    for entry in (process / "environ").read_bytes().split(b"\0"):
        if entry.startswith(name):
            return Path(os.path.realpath(os.fsdecode(entry.removeprefix(name))))
    return Path("/")


def _flags(process: Path, descriptor: str) -> int:
    lines = (process / "fdinfo" / descriptor).read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("flags:")), 8)


def _kill(pid: int, directory: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # The handle names one process even if its id is used again.
            if _is_started_in(pid, directory):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
