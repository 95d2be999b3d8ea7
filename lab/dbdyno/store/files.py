"""Writes files atomically: to a temporary name, then sync, then rename.

A run that is killed at any time leaves only complete files. An error of the operating system (no space, no
permission) becomes a StoreProblem that names the path.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from dbdyno.problem import ExitCode, Problem
from dbdyno.store import digests

# The disk is full, the quota is used up, the file size limit (ulimit -f) is reached.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
COPY_BYTES = 1 << 20
# Maximum bytes of a JSON file; a run of a thousand trials has some 10 MB.
JSON_BYTES_MAX = 1 << 28


# The fix for a file that cannot be read.
RESTORE = "Restore the file from a copy"


class StoreProblem(Problem):
    """A file of a run cannot be written or read."""


class ChangedRun(StoreProblem):
    """Files of a run were changed since they were written; `listed` names the first ones."""

    def __init__(self, path: Path, changed: Sequence[str], fix: str) -> None:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        self.listed = f"{', '.join(changed[:3])}{more}"
        super().__init__(
            f"{path}: changed since it was measured: {self.listed}", fix, ExitCode.NOT_COMPARABLE
        )


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into a StoreProblem."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise StoreProblem(
                f"no space left for {path} ({os.strerror(error.errno)})",
                "Make room and repeat the command; an interrupted comparison continues with --resume",
                ExitCode.NOT_COMPARABLE,
            ) from error
        if error.errno == errno.ELOOP:
            raise StoreProblem(f"{path} is a symbolic link, which dbdyno does not follow", RESTORE) from error
        raise StoreProblem(
            f"{path}: {error.strerror or error}",
            "Choose another folder with --results DIR, or fix its permissions",
        ) from error


@contextmanager
def _open_replacement(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end. After an error `path` is unchanged. Raises
    StoreProblem.
    """
    temporary = path.with_name(f".{path.name}.partial")
    with store_errors(path):
        try:
            # An interrupted write may have left one, and a run of another user may have a link there.
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            # Before the file exists: a file without its digest would look changed.
            digests.note(path, temporary)
            temporary.replace(path)
            _sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def write(path: Path, content: bytes) -> None:
    """Write a complete file, or leave the old one unchanged. Raises StoreProblem."""
    with _open_replacement(path) as file:
        file.write(content)


def create(path: Path, content: bytes) -> None:
    """Write a new file; after an error none of it is left. Raises StoreProblem if there is no space, OSError
    otherwise.
    """
    # Without a buffer, whose rest would be written at the end.
    with path.open("xb", buffering=0) as file:
        try:
            file.write(content)
            os.fsync(file.fileno())
        except OSError as error:
            path.unlink()
            if error.errno in NO_SPACE:
                with store_errors(path):
                    raise
            raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON. Rejects NaN and infinity, which JSON does not have. Raises
    StoreProblem.
    """
    write(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The JSON in `path`. Raises StoreProblem if the file is missing or invalid."""
    with open_regular(path) as file:
        content = file.read(JSON_BYTES_MAX + 1)
    if len(content) > JSON_BYTES_MAX:
        raise StoreProblem(f"{path} has more than {JSON_BYTES_MAX:,} bytes", RESTORE)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StoreProblem(f"{path} is not valid JSON: {error}", RESTORE) from error


@contextmanager
def open_regular(path: Path, *, follows_links: bool = False) -> Iterator[BinaryIO]:
    """Open a file for reading. Raises StoreProblem, also for a pipe or a device, which could block, and for a
    symbolic link, unless `follows_links`: the user has named the file.
    """
    with store_errors(path):
        # Opening a pipe would wait for a writer.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise StoreProblem(f"{path} is not a regular file", RESTORE)
            yield file


def compress(path: Path) -> None:
    """Replace `path` by `path`.gz. Equal content gives equal bytes. Raises StoreProblem."""
    with (
        _open_replacement(path.with_name(path.name + ".gz")) as file,
        path.open("rb") as source,
        # The default level takes ten times as long for 3 % less, after every trial.
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as compressed,
    ):
        shutil.copyfileobj(source, compressed, COPY_BYTES)
    with store_errors(path):
        path.unlink()


def make_folder(path: Path) -> None:
    """Make `path` and its parents. Raises StoreProblem."""
    with store_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def _sync_folder(path: Path) -> None:
    """Make a rename in the folder durable. Ignores file systems that cannot sync a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
