"""Copies data directories in full: every byte is written, synced, and evicted from the page cache.

After a sparse or reflinked copy, the first writes of a trial would have to allocate blocks. The kernel would
write an unsynced copy back during the trial. With a copy in the page cache, a variant that uses buffered
reads would start warm, and a variant that uses O_DIRECT would start cold. `sendfile` writes holes as zeros
and never shares blocks between files, while `copy_file_range` may.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dbdyno.servers.account import ServerUser

METHOD = "full copy, synced, dropped from the page cache"

CHUNK_BYTES = 64 * 1024 * 1024
# Files that are synced at the same time share the commits of the file system's journal.
SYNCING_THREADS = 8
_LOG = logging.getLogger(__name__)


def tree_bytes(directory: Path) -> int:
    """The sum of the sizes of all files below `directory`, in bytes."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def require_no_link(directory: Path) -> None:
    """Raise OSError if there is a symbolic link in a directory: a copy would have the file that it names."""
    for path in directory.rglob("*"):
        if path.is_symlink():
            raise OSError(errno.ELOOP, f"{path} is a symbolic link")


def fingerprint(directory: Path) -> str:
    """A digest of the names, sizes and times of all files of a directory, and of its links."""
    entries = []
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            name = os.fsencode(path.relative_to(directory))
            entries.append((name, status.st_mode, status.st_size, status.st_mtime_ns))
    return hashlib.sha256(repr(entries).encode()).hexdigest()


def copy_tree(source: Path, target: Path, user: ServerUser) -> int:
    """Copy a directory into `target`, which must not exist; returns the bytes written. Raises OSError, also
    for a symbolic link.
    """
    began = time.monotonic()
    require_no_link(source)
    target.mkdir(mode=0o700)
    written, copies = 0, list[Path]()
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(mode=0o700)
        elif path.is_file():
            written += _copy_file(path, copy)
            copies.append(copy)
            user.own(copy)
    _sync_and_evict(copies)
    # Innermost directories first: a directory gets its new owner only when all its files are complete.
    for directory in sorted((path for path in target.rglob("*") if path.is_dir()), reverse=True):
        _sync_directory(directory)
        user.own(directory)
    _sync_directory(target)
    user.own(target)
    seconds = time.monotonic() - began
    _LOG.debug("copied %.1f MiB from %s to %s in %.3f s", written / 2**20, source, target, seconds)
    return written


def sync_tree(directory: Path) -> None:
    """Write every file and directory below `directory` to disk and evict it from the page cache."""
    paths = list(directory.rglob("*"))
    _sync_and_evict(path for path in paths if path.is_file())
    for path in paths:
        if path.is_dir():
            _sync_directory(path)
    _sync_directory(directory)


def _copy_file(source: Path, target: Path) -> int:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660)
        try:
            size = os.fstat(reading).st_size
            if size:
                # One allocation reduces fragmentation, and fails early if there is no space.
                os.posix_fallocate(writing, 0, size)
            done = 0
            while done < size:
                count = os.sendfile(writing, reading, done, min(CHUNK_BYTES, size - done))
                if count == 0:
                    raise OSError(f"{source} shrank while it was copied")
                done += count
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return size


def _sync_and_evict(files: Iterable[Path]) -> None:
    with ThreadPoolExecutor(SYNCING_THREADS) as pool:
        list(pool.map(_sync_and_evict_file, files))


def _sync_and_evict_file(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
