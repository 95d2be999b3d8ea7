"""The data directories that a workspace keeps between runs: loaded ones (snapshots), and empty ones.

A server's installer takes seconds, most of which it waits for a disk. Each test instance and each load begins
with an empty directory, so a command would run it several times. So an empty directory is created once, and
copied for the next server of the same software.

::

    snapshots/<key>/                 see `cache`
    empty/<key>/.dbdyno              the mark of dbdyno (`owned_folder`)
    empty/<key>/fingerprint          that of the files; a directory whose files were changed is created again
    empty/<key>/data/                the data directory
    empty/<key>.lock                 held while it is created or copied

Directories that were not used for the longest time are removed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.servers import owned_folder
from dbdyno.servers.account import ServerUser
from dbdyno.servers.snapshots.copying import METHOD, fingerprint
from dbdyno.servers.workspace import Lock, Workspace

# Number of most recently used empty directories that are kept.
_EMPTY_MAX = 4
_CHUNK_BYTES = 1 << 20
_ZEROS = bytes(_CHUNK_BYTES)


@dataclass(frozen=True)
class Snapshot:
    """A loaded data directory that no server uses. Other processes cannot remove it until `close`."""

    key: str
    data: Path
    # Size of all files.
    bytes: int
    # The inputs of the key's hash: product, version, options, data and seed.
    inputs: Mapping[str, Any]
    method: str = METHOD
    _lock: Lock | None = field(default=None, repr=False, compare=False)

    def close(self) -> None:
        """Release the snapshot's lock, so that other processes may remove the snapshot. Idempotent."""
        if self._lock is not None:
            self._lock.release()


@dataclass(frozen=True)
class CachedSnapshot:
    """A complete snapshot in the cache."""

    directory: Path
    bytes: int
    # Seconds since the epoch.
    last_used: float
    # The inputs of the key; see `cache`.
    inputs: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Its name in the cache."""
        return self.directory.name

    def describe(self) -> str:
        """What it holds, such as "mariadb, 10 tables of 20,000 rows"."""
        data = self.inputs.get("data", {})
        tables = data.get("tables")
        if isinstance(tables, int):
            text = f"{tables} table{'' if tables == 1 else 's'} of {data.get('table_size', 0):,} rows"
        elif isinstance(tables, list):
            text = (
                ", ".join(f"{table['name']} ({table['rows']:,} rows)" for table in tables)
                or "no generated rows"
            )
        else:
            text = "data of a script"
        return f"{self.inputs.get('product', 'server')}, {text}"


def cached_snapshots(workspace: Workspace) -> list[CachedSnapshot]:
    """The complete snapshots that have the mark of dbdyno, the last used first."""
    snapshots: list[CachedSnapshot] = []
    for manifest in workspace.snapshots.glob("*/snapshot.json"):
        directory = manifest.parent
        is_complete = directory.suffix != owned_folder.UNFINISHED
        if not is_complete or not owned_folder.is_owned(directory, workspace.root):
            continue
        try:
            content, used = json.loads(manifest.read_text()), manifest.stat().st_mtime
            snapshots.append(CachedSnapshot(directory, int(content["bytes"]), used, dict(content["made_of"])))
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            # Another process has just removed it, or it is damaged; the next run with the same data replaces
            # it.
            continue
    return sorted(snapshots, key=lambda snapshot: snapshot.last_used, reverse=True)


def remove_unused_snapshots(workspace: Workspace, keep: int) -> list[CachedSnapshot]:
    """Remove all snapshots except the `keep` that were used last and those in use, and the remains of
    interrupted builds. Returns the removed snapshots.
    """
    removed = [
        snapshot for snapshot in cached_snapshots(workspace)[keep:] if _remove(snapshot.directory, workspace)
    ]
    _remove_unfinished(workspace.snapshots, workspace)
    return removed


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


def remove_unused_empty(workspace: Workspace, keep: int) -> int:
    """Remove all but the `keep` empty directories that were used last and those in use, and what interrupted
    builds have left. Returns the number of removed directories.
    """
    kept = sorted(
        (path for path in workspace.empty.iterdir() if path.is_dir() and not path.suffix),
        key=lambda path: path.lstat().st_mtime,
        reverse=True,
    )
    _remove_unfinished(workspace.empty, workspace)
    return sum(_remove(directory, workspace) for directory in kept[keep:])


def _remove_unfinished(folder: Path, workspace: Workspace) -> None:
    """Remove the remains of interrupted builds."""
    for unfinished in folder.glob(f"*{owned_folder.UNFINISHED}"):
        _remove(unfinished, workspace)


def _remove(directory: Path, workspace: Workspace) -> bool:
    """Remove a directory unless another process uses it, or it has no mark; whether it was removed."""
    try:
        lock = Lock(directory.with_suffix(".lock"))
    except OSError:
        return False
    try:
        if not lock.acquire(wait=False) or not owned_folder.remove(directory, workspace.root):
            return False
        if directory.suffix != owned_folder.UNFINISHED:
            lock.remove()
        return True
    finally:
        lock.release()


def _is_complete(kept: Path, root: Path) -> bool:
    try:
        text = (kept / "fingerprint").read_text()
    except OSError:
        return False
    return owned_folder.is_owned(kept, root) and text == fingerprint(kept / "data")


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
        remove_unused_empty(workspace, _EMPTY_MAX)


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
        while chunk := os.read(reading, _CHUNK_BYTES):
            if chunk != _ZEROS[: len(chunk)]:
                os.pwrite(writing, chunk, size)
            size += len(chunk)
        os.ftruncate(writing, size)
    finally:
        os.close(reading)
        os.close(writing)
