"""The directories of private servers and snapshots, and their locks.

::

    <base>/servers/<variant>/         data, temporary files and log of one server, until it is closed
    <base>/servers/slot-<n>/          one slot, which the servers of a comparison use in rotation
    <base>/snapshots/<key>/           loaded data directories, kept between runs
    <base>/empty/<key>/               data directories as installed, kept between runs

A process locks each directory that it uses (flock). The kernel releases the lock when the process ends, so
the next run recognises and removes the directories of a killed run, if they have the mark of dbdyno
(`owned_folder`).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dbdyno.servers import owned_folder
from dbdyno.servers.account import ServerUser, server_user
from dbdyno.servers.server import MachineProblem, ServerProblem

# File systems that production databases do not use: in memory, or a union of file systems.
UNUSUAL_FILESYSTEMS = {
    "tmpfs": "the data are in memory and no write ever reaches a disk",
    "ramfs": "the data are in memory and no write ever reaches a disk",
    "overlay": "every write passes a container's overlay file system",
    "overlayfs": "every write passes a container's overlay file system",
}

# The beginning of a lock's file.
LOCK_MARK = b"dbdyno\n"

# Maximum number of names to try for a server's directory.
ATTEMPTS = 1000

# `sun_path` of a unix socket has 108 bytes, including the terminating zero (unix(7)).
SOCKET_PATH_MAX = 107

# The longest socket name, which is PostgreSQL's. It applies to all products, so that a path is too long
# either for all of them or for none.
SOCKET_NAME_LONGEST = ".s.PGSQL.65535"


class Lock:
    """An advisory lock on a file, held until `release` or until the process ends.

    The process that holds the lock may remove the file. A lock on a removed file is not valid, and `acquire`
    tries again. Raises OSError, also for a symbolic link.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = self._open()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(self.path, flags | os.O_CREAT, 0o600)
        os.pwrite(descriptor, LOCK_MARK, 0)
        return descriptor

    @staticmethod
    def read(path: Path) -> str:
        """The text that the holder of a lock has written."""
        return path.read_text(errors="replace").removeprefix(LOCK_MARK.decode()).strip()

    def write(self, text: str) -> None:
        """Write a text into the file, for the messages of others."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, LOCK_MARK + text.encode(), 0)

    def remove(self) -> None:
        """Remove the file, if dbdyno has created it; the caller holds the lock."""
        if self._descriptor >= 0 and os.pread(self._descriptor, len(LOCK_MARK), 0) == LOCK_MARK:
            self.path.unlink(missing_ok=True)

    def acquire(self, *, shared: bool = False, wait: bool = True) -> bool:
        """Acquire or change the lock; without `wait`, returns False if another process holds it."""
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            try:
                fcntl.flock(self._descriptor, operation | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                return False
            if self._is_current():
                return True
            os.close(self._descriptor)
            self._descriptor = self._open()

    def _is_current(self) -> bool:
        try:
            return os.fstat(self._descriptor).st_ino == self.path.lstat().st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass
class Workspace:
    """The directory of servers and snapshots. Create it with `Workspace.open`, and close it at the end."""

    base: Path
    user: ServerUser
    # Warnings about this directory for the report, such as that it is in memory.
    warnings: tuple[str, ...]
    filesystem: str
    # The folder of the run whose servers these are; empty without a run.
    run: str = ""
    # Whether it removes what killed runs have left: only a command that measures does.
    removes: bool = False
    _locks: dict[Path, Lock] = field(default_factory=dict)

    @classmethod
    def open(cls, results: Path, *, removes: bool = False) -> Workspace:
        """A workspace below `results`, or in /var/tmp or /tmp if the servers' user has no access to
        `results`. With `removes` it removes what killed runs have left, and kills their processes.

        Raises ServerProblem if no directory can be used.
        """
        user = server_user()
        refusals = []
        for base in (results.absolute() / ".servers", *_fallback_directories()):
            try:
                _create_base(base, user)
            except OSError as error:
                refusals.append(f"{base}: {error.strerror or error}")
                continue
            filesystem = filesystem_of(base)
            unusual = UNUSUAL_FILESYSTEMS.get(filesystem)
            warnings = (f"the servers' data are in {base} on {filesystem}: {unusual}",) if unusual else ()
            workspace = cls(base, user, warnings, filesystem, removes=removes)
            if removes:
                workspace.remove_leftovers()
            return workspace
        raise ServerProblem(
            "no directory can hold the servers' data: " + "; ".join(refusals),
            f"choose a results directory that the user {user.name} can enter",
        )

    @property
    def root(self) -> Path:
        """The folder below which no symbolic link is followed."""
        return self.base.parent

    @property
    def servers(self) -> Path:
        """The directories of servers."""
        return self.base / "servers"

    @property
    def snapshots(self) -> Path:
        """The cache of loaded data directories."""
        return self.base / "snapshots"

    @property
    def empty(self) -> Path:
        """The data directories as installed."""
        return self.base / "empty"

    def server_directory(self, name: str) -> Path:
        """A new private directory for one server. The same name gives the same path, unless that path is in
        use.

        A server keeps its path, which is part of its identity, in all groups of a variant, also after a
        resume.
        """
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:40] or "server"
        for attempt in range(1, ATTEMPTS):
            suffix = "" if attempt == 1 else f"-{attempt}"
            path = self.servers / f"{slug}{suffix}"
            if self._reserve(path):
                return path
        raise ServerProblem(f"{ATTEMPTS} servers named {name!r} are open", exit_code=4)

    def slot_directories(self, count: int) -> list[Path]:
        """New private directories for the servers of one comparison, with paths of equal length.

        The paths are the same in every run. If another process uses one of them, all of them get a common
        number as a prefix, because slots with paths of different length would not be equivalent.
        """
        width = len(str(count))
        for attempt in range(1, ATTEMPTS):
            prefix = "" if attempt == 1 else f"run-{attempt}-"
            names = [f"{prefix}slot-{number:0{width}}" for number in range(1, count + 1)]
            paths = [self.servers / name for name in names]
            reserved = list(itertools.takewhile(self._reserve, paths))
            if len(reserved) == count:
                return paths
            for path in reserved:
                self.discard(path)
        raise ServerProblem(f"{ATTEMPTS} comparisons use {self.base}", exit_code=4)

    def _reserve(self, path: Path) -> bool:
        """Lock a server's directory and create it again; False if it is in use, or may not be removed."""
        if path in self._locks:
            return False
        try:
            lock = Lock(path.with_suffix(".lock"))
        except OSError:
            if not os.path.lexists(path.with_suffix(".lock")):
                raise
            return False
        is_free = lock.acquire(wait=False)
        if is_free and os.path.lexists(path):
            is_free = self.removes and owned_folder.is_owned(path, self.root)
        if not is_free:
            lock.release()
            return False
        self._locks[path] = lock
        self.empty_directory(path)
        return True

    def empty_directory(self, directory: Path) -> None:
        """Empty a server's directory, or create it. Nothing of an earlier run writes to it. Raises
        ServerProblem.
        """
        owned_folder.end_processes(directory, self.root)
        owned_folder.remove(directory, self.root)
        owned_folder.create(directory, self.root)
        self.user.own(directory)

    def reachable(self, programs: Path | None) -> Path | None:
        """The folder of a server's programs, or a copy of it if the servers' user has no access to it.

        The copy is used until the original changes. Raises ServerProblem if there is no space.
        """
        if programs is None or not programs.is_dir() or self.user.may_enter(programs):
            return programs
        status = programs.stat()
        inputs = f"marked {programs.resolve()} {status.st_ino} {status.st_mtime_ns}"
        copy = self.base / "programs" / hashlib.sha256(os.fsencode(inputs)).hexdigest()[:20]
        owned_folder.require_folder(copy.parent)
        copy.parent.chmod(0o711)
        with self.locked(copy.with_suffix(".lock")):
            if not owned_folder.is_owned(copy, self.root):
                unfinished = copy.with_suffix(owned_folder.UNFINISHED)
                owned_folder.remove(unfinished, self.root)
                owned_folder.create(unfinished, self.root)
                try:
                    shutil.copytree(programs, unfinished, symlinks=True, dirs_exist_ok=True)
                except (OSError, shutil.Error) as error:
                    owned_folder.remove(unfinished, self.root)
                    raise ServerProblem(
                        f"the user {self.user.name}, under whom servers run, cannot enter {programs}, and it "
                        f"could not be copied to {self.base}: {error}",
                        "move the programs to a folder that every user can read",
                    ) from error
                # The folder's own mode may have denied access.
                unfinished.chmod(0o755)
                unfinished.rename(copy)
        return copy

    def discard(self, directory: Path) -> None:
        """Remove a server's directory and release its name; idempotent."""
        owned_folder.remove(directory, self.root)
        if lock := self._locks.pop(directory, None):
            lock.remove()
            lock.release()

    def require_space(self, needed_bytes: int, purpose: str) -> None:
        """Raises MachineProblem when less than `needed_bytes` are free."""
        free = shutil.disk_usage(self.base).free
        if free < needed_bytes:
            raise MachineProblem(
                f"no space left for {purpose}: it needs {format_megabytes(needed_bytes)}, "
                f"{self.base} has {format_megabytes(free)} free",
                "free some space, choose another results directory, or fewer or smaller tables",
                exit_code=4,
            )

    @contextmanager
    def locked(self, path: Path) -> Iterator[Lock]:
        """Acquire the lock file `path`, waiting if necessary, and hold it."""
        lock = Lock(path)
        lock.acquire()
        try:
            yield lock
        finally:
            lock.release()

    def close(self) -> None:
        """Remove the directories of servers; snapshots stay. Idempotent."""
        for directory in list(self._locks):
            self.discard(directory)

    def remove_leftovers(self) -> None:
        """Remove the directories of ended processes, which are those without a lock, if they have a mark."""
        for path in sorted(self.servers.glob("*.lock")):
            try:
                lock = Lock(path)
            except OSError:
                # A link, or something else that dbdyno did not create.
                continue
            directory = path.with_suffix("")
            if lock.acquire(wait=False):
                owned_folder.end_processes(directory, self.root)
                if owned_folder.remove(directory, self.root):
                    lock.remove()
            lock.release()

    def unmarked(self) -> list[Path]:
        """What is in the folders of dbdyno and has no mark, so that dbdyno does not remove it."""
        folders = (self.servers, self.snapshots, self.empty)
        return [entry for folder in folders for entry in owned_folder.unmarked(folder, self.root)]


def format_megabytes(count: int) -> str:
    """A number of bytes as text: "1,234 MB"."""
    return f"{count / 1e6:,.0f} MB"


def filesystem_of(path: Path) -> str:
    """The type of the file system that holds `path`, such as "ext4"; "" when unknown."""
    resolved = path.resolve()
    mounts = [
        (len(partition.mountpoint), partition.fstype)
        for partition in psutil.disk_partitions(all=True)
        if resolved.is_relative_to(partition.mountpoint)
    ]
    return max(mounts, default=(0, ""))[1]


def socket_directory(preferred: Path, user: ServerUser) -> Path:
    """`preferred`, or a new short directory when a socket's path in it would be too long for the kernel, or
    has a character that a list of directories in a configuration file could not have.
    """
    is_short = len(os.fsencode(preferred / SOCKET_NAME_LONGEST)) <= SOCKET_PATH_MAX
    if is_short and not set(",'\"\\") & set(str(preferred)):
        return preferred
    short = Path(tempfile.mkdtemp(prefix="dbdyno-", dir="/tmp"))
    user.own(short, 0o700)
    return short


def _fallback_directories() -> list[Path]:
    """Directories outside the results directory, disk before memory; one per user."""
    name = f"dbdyno-{os.geteuid()}"
    return [Path("/var/tmp") / name, Path(tempfile.gettempdir()) / name]  # noqa: S108 — ownership is checked.


def _create_base(base: Path, user: ServerUser) -> None:
    """Raises OSError, and ServerProblem for a symbolic link."""
    base.parent.mkdir(parents=True, exist_ok=True)
    # The servers' user may enter its own directory below, but cannot list these.
    mode = 0o711 if user.switches else 0o700
    owned_folder.require_folder(base)
    base.chmod(mode)
    if not user.may_enter(base):
        raise PermissionError(errno.EACCES, f"the user {user.name}, under whom servers run, cannot enter it")
    for name in ("servers", "snapshots", "empty"):
        owned_folder.require_folder(base / name)
        (base / name).chmod(mode)
