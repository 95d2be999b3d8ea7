"""SHA-256 digests of the files of a folder, in its file digests.jsonl (its list).

::

    {"digests": 2}                                                   the format
    {"file": "schedule.json", "sha256": …}                           noted before the file is written
    {"file": "trials/0001/digests.jsonl", "sha256": null}            the trial has begun (again)
    {"file": "trials/0001/digests.jsonl", "sha256": …, "bytes": …}   it has ended; the list had so many bytes

So the list of a run tells which trials there must be. A process may be killed at any instant, so a file may
have each of its noted digests, and a file that exists has been noted. The digests show mistakes and naive
changes of files. Anyone who can write to the folder can write the digests too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "digests.jsonl"
# The key of the first line, which experiment.json has too, and its value.
KEY, FORMAT = "digests", 2
# The file that ends a trial, and the folder of the trials.
_LAST, _TRIALS = "trial.json", "trials"
# Files without which a run is incomplete. Others may have been removed by dbdyno itself.
_REQUIRED = frozenset(
    {
        "experiment.json",
        "schedule.json",
        "checks.json",
        "plan.json",
        "server.json",
        "trial.json",
        "events.jsonl.gz",
        "chosen_afterwards.json",
    }
)
# Files that count as changed if they are there and were not noted: the list has lost its end.
_NOTED = _REQUIRED | {
    "experiment.toml",
    "environment.json",
    "verdict.json",
    "measured.json",
    "explained.json",
}


@dataclass
class _List:
    """The content of a list."""

    # Whether it begins with the format. Then every file that exists has been noted.
    is_complete: bool = False
    is_damaged: bool = False
    # Name -> all noted digests of a file.
    files: dict[str, set[str]] = field(default_factory=dict)
    # Name of a list in a subfolder -> its size and digest when it was noted last; None: it may change.
    lists: dict[str, tuple[int, str] | None] = field(default_factory=dict)


def start(folder: Path) -> None:
    """Note the digests of all files that are written into `folder` from now on. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(folder / NAME, flags, 0o666))
    _append(folder / NAME, {KEY: FORMAT})


def note(path: Path, content: Path) -> None:
    """Note the digest of `path`, which gets the bytes of `content`, if its folder notes digests. The file
    that ends a trial also notes the trial's list in the list of the run. Raises OSError.
    """
    listed = path.with_name(NAME)
    if not listed.exists():
        return
    _append(listed, {"file": path.name, "sha256": _digest(content)})
    if path.name == _LAST:
        note_folder(path.parents[2], path.parent)


def note_folder(folder: Path, below: Path, *, is_open: bool = False) -> None:
    """Note in the list of `folder` that the one of the folder `below` is complete or, with `is_open`, that it
    may change. Raises OSError.
    """
    listed, inner = folder / NAME, below / NAME
    if not listed.exists() or not (is_open or inner.exists()):
        return
    entry: dict[str, Any] = {"file": str(inner.relative_to(folder)), "sha256": None}
    if not is_open:
        content = inner.read_bytes()
        entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    _append(listed, entry)


def changed(folder: Path, *, is_marked: bool = False, only: Collection[str] | None = None) -> list[str]:
    """The files and folders of `folder` that were changed or removed since they were written, by their
    relative paths, and all symbolic links. Raises OSError.

    `is_marked`: something else says that the folder notes digests. `only`: compare only these files, and look
    whether the folders of trials are there.
    """
    while True:
        before = _size(folder)
        # If experiment.json has lost the mark, the lists of the trials show that the run had one.
        has_list = is_marked or any((entry / NAME).exists() for entry in folders(folder / _TRIALS))
        lost = [NAME] if has_list and not os.path.lexists(folder / NAME) else []
        names = sorted({*lost, *_links(folder, deep=only is None), *_changed(folder, is_marked, only)})
        # Another process may have replaced a file meanwhile; it has noted that first.
        if not names or _size(folder) == before:
            return names


def _changed(folder: Path, is_marked: bool, only: Collection[str] | None) -> Iterator[str]:
    """`changed` of the list of a run."""
    listed = _read(folder / NAME)
    if is_marked and not listed.is_complete:
        yield NAME
    yield from _changed_files(folder, listed, only)
    for name, noted in listed.lists.items():
        yield from _changed_below(folder, name, noted, is_quick=only is not None)
    for below in folders(folder / _TRIALS):
        name = f"{_TRIALS}/{below.name}"
        if f"{name}/{NAME}" in listed.lists:
            continue
        if listed.is_complete and _is_file(below / _LAST):
            yield name


def _changed_below(
    folder: Path, name: str, noted: tuple[int, str] | None, *, is_quick: bool
) -> Iterator[str]:
    """`changed` of a folder with its own list, `name`, of which `noted` was noted last: size and digest, or
    None if the folder may change; files may then be missing too.
    """
    below, relative = (folder / name).parent, Path(name).parent
    is_open = noted is None
    if below.is_symlink() or not below.is_dir():
        if noted is not None:
            yield str(relative)
        return
    if is_quick:
        return
    if noted is not None and not _begins_with(folder / name, *noted):
        yield name
    listed = _read(below / NAME)
    yield from (str(relative / file) for file in _changed_files(below, listed, None, is_open=is_open))
    # An earlier attempt moves into the folder of the next one, and its list does not.
    for inner, inner_noted in listed.lists.items() if relative.parent.name == _TRIALS else ():
        names = _changed_below(below, inner, None if is_open else inner_noted, is_quick=False)
        yield from (str(relative / entry) for entry in names)


def _changed_files(
    folder: Path, listed: _List, only: Collection[str] | None, *, is_open: bool = False
) -> Iterator[str]:
    """The files of a folder, without its subfolders, that are not as its list says."""
    if listed.is_damaged:
        yield NAME
    for name, expected in listed.files.items():
        path = folder / name
        if only is not None and name not in only:
            continue
        if _is_file(path):
            if _digest(path) not in expected:
                yield name
        elif name in _REQUIRED and not is_open and not path.with_name(f".{name}.partial").exists():
            yield name
    if listed.is_complete:
        unknown = _NOTED - listed.files.keys()
        yield from (name for name in unknown if (only is None or name in only) and _is_file(folder / name))


def _read(path: Path) -> _List:
    """A list; the last line may be incomplete, because a process was killed while it wrote it."""
    listed = _List()
    if not _is_file(path):
        listed.is_damaged = os.path.lexists(path)
        return listed
    *lines, _incomplete = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        try:
            entry = json.loads(line)
            if number == 0:
                listed.is_complete = entry.get(KEY) == FORMAT
                listed.is_damaged = not listed.is_complete
                continue
            name, digest = str(entry["file"]), entry["sha256"]
            if Path(name).name == name:
                listed.files.setdefault(name, set()).add(str(digest))
            elif Path(name).is_absolute() or ".." in Path(name).parts or Path(name).name != NAME:
                listed.is_damaged = True
            else:
                listed.lists[name] = None if digest is None else (int(entry["bytes"]), str(digest))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            listed.is_damaged = True
    return listed


def _begins_with(path: Path, size: int, digest: str) -> bool:
    """Whether a list begins with the bytes of which the digest was noted; later notes follow them."""
    if not _is_file(path):
        return False
    with path.open("rb") as file:
        content = file.read(size)
    return len(content) == size and hashlib.sha256(content).hexdigest() == digest


def _append(path: Path, entry: dict[str, Any]) -> None:
    """Append a line durably, or raise OSError and leave the list as it was."""
    line = json.dumps(entry).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            # The computer lost its power during the last line.
            size = os.pread(descriptor, size, 0).rfind(b"\n") + 1
            os.ftruncate(descriptor, size)
        if os.write(descriptor, line) != len(line):
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _links(folder: Path, *, deep: bool) -> Iterator[str]:
    """The symbolic links in a folder, or only those among its files and its trials."""
    top = (folder, folder / _TRIALS)
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if (path := Path(parent, name)).is_symlink():
                yield str(path.relative_to(folder))
        if not deep:
            folders[:] = [name for name in folders if Path(parent, name) in top]


def folders(path: Path) -> list[Path]:
    """The folders in a folder, without links and without hidden ones, such as the one of an attempt that is
    just being moved; none if it does not exist, or is a link itself.
    """
    if path.is_symlink() or not path.is_dir():
        return []
    entries = (entry for entry in path.iterdir() if not entry.name.startswith("."))
    return sorted(entry for entry in entries if entry.is_dir() and not entry.is_symlink())


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(folder: Path) -> tuple[int, ...]:
    """The sizes of the lists of a run and of its trials."""
    lists = (entry / NAME for entry in (folder, *folders(folder / _TRIALS)))
    return tuple(entry.lstat().st_size if os.path.lexists(entry) else -1 for entry in lists)
