"""Empty data directories that were created once and are copied for the next server of the same software.

A server's installer takes seconds, most of which it waits for a disk. Each test instance and each load begins
with an empty directory, so a command would run it several times.

::

    empty/<key>/.dbdyno              the mark of dbdyno (`owned_folder`)
    empty/<key>/fingerprint          that of the files; a directory whose files were changed is created again
    empty/<key>/data/                the data directory
    empty/<key>.lock                 held while it is created or copied
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dbdyno.servers import owned_folder
from dbdyno.servers.account import ServerUser
from dbdyno.servers.snapshots.cleaning import remove, remove_unfinished
from dbdyno.servers.snapshots.copying import fingerprint
from dbdyno.servers.workspace import Workspace

# Number of most recently used directories that are kept.
KEPT_MAX = 4
CHUNK_BYTES = 1 << 20
_ZEROS = bytes(CHUNK_BYTES)


def software_key(command: Sequence[str], directory: Path) -> str:
    """The key of what an installer's command creates: its words without the server's `directory`, and the
    programs among them as they are now.
    """
    words = [word.replace(str(directory), "") for word in command]
    paths = [path.resolve() for word in command if (path := Path(word)).is_absolute() and path.is_file()]
    stats = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
    return hashlib.sha256(repr((words, stats)).encode("utf-8", "surrogateescape")).hexdigest()[:20]


def copy_or_create(workspace: Workspace, key: str, target: Path, create: Callable[[], None]) -> None:
    """Fill `target` with a copy of the directory of this key; if there is none, by `create`, and keep a copy.

    Raises what `create` raises, and OSError if the copy fails.
    """
    with workspace.locked(workspace.empty / f"{key}.lock"):
        kept = workspace.empty / key
        if _is_complete(kept, workspace.root):
            os.utime(kept)
            _copy(kept / "data", target, workspace.user)
            return
        create()
        _keep(target, kept, workspace)


def _is_complete(kept: Path, root: Path) -> bool:
    try:
        known = (kept / "fingerprint").read_text()
    except OSError:
        return False
    return owned_folder.is_owned(kept, root) and known == fingerprint(kept / "data")


def _keep(data: Path, kept: Path, workspace: Workspace) -> None:
    """Keep a copy if there is space."""
    unfinished = kept.with_suffix(owned_folder.UNFINISHED)
    try:
        for directory in (kept, unfinished):
            if not owned_folder.remove(directory, workspace.root):
                return
        owned_folder.create(unfinished, workspace.root)
        _copy(data, unfinished / "data", None)
        (unfinished / "fingerprint").write_text(fingerprint(unfinished / "data"))
        unfinished.rename(kept)
    except OSError:
        owned_folder.remove(unfinished, workspace.root)
    if workspace.removes:
        remove_unused(workspace, KEPT_MAX)


def remove_unused(workspace: Workspace, keep: int) -> int:
    """Remove all but the `keep` directories that were used last and those in use, and what interrupted builds
    have left. Returns the number of removed directories.
    """
    kept = sorted(
        (path for path in workspace.empty.iterdir() if path.is_dir() and not path.suffix),
        key=lambda path: path.lstat().st_mtime,
        reverse=True,
    )
    remove_unfinished(workspace.empty)
    return sum(remove(workspace.empty, directory) for directory in kept[keep:])


def _copy(source: Path, target: Path, user: ServerUser | None) -> None:
    """Copy a directory without its holes, for a user. The files are not synced: what a trial needs of them is
    loaded first, and then copied in full.
    """
    target.mkdir(mode=0o700)
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir() and not path.is_symlink():
            copy.mkdir(mode=0o700)
        else:
            _copy_file(path, copy)
        if user is not None:
            user.own(copy)
    if user is not None:
        user.own(target)


def _copy_file(source: Path, target: Path) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660)
    try:
        size = 0
        while chunk := os.read(reading, CHUNK_BYTES):
            if chunk != _ZEROS[: len(chunk)]:
                os.pwrite(writing, chunk, size)
            size += len(chunk)
        os.ftruncate(writing, size)
    finally:
        os.close(reading)
        os.close(writing)
