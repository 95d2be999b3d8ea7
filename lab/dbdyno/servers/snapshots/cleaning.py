"""Lists the snapshots in the cache, and removes those that were not used for the longest time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.servers import owned_folder
from dbdyno.servers.workspace import Lock


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
            text = ", ".join(f"{one['name']} ({one['rows']:,} rows)" for one in tables) or "no generated rows"
        else:
            text = "data of a script"
        return f"{self.inputs.get('product', 'server')}, {text}"


def cached_snapshots(folder: Path) -> list[CachedSnapshot]:
    """The complete snapshots in the cache's folder that have the mark of dbdyno, the last used first."""
    snapshots: list[CachedSnapshot] = []
    for manifest in folder.glob("*/snapshot.json"):
        directory = manifest.parent
        if directory.suffix == owned_folder.UNFINISHED or not owned_folder.is_owned(directory, _root(folder)):
            continue
        try:
            content, used = json.loads(manifest.read_text()), manifest.stat().st_mtime
            snapshots.append(CachedSnapshot(directory, int(content["bytes"]), used, dict(content["made_of"])))
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            # Another process has just removed it, or it is damaged; the next run with the same data replaces
            # it.
            continue
    return sorted(snapshots, key=lambda one: one.last_used, reverse=True)


def remove_unused(snapshots: Path, keep: int) -> list[CachedSnapshot]:
    """Remove all snapshots except the `keep` that were used last and those in use, and the remains of
    interrupted builds. Returns the removed snapshots.
    """
    removed = [one for one in cached_snapshots(snapshots)[keep:] if remove(snapshots, one.directory)]
    remove_unfinished(snapshots)
    return removed


def remove_unfinished(snapshots: Path) -> None:
    """Remove the remains of interrupted builds."""
    for unfinished in snapshots.glob(f"*{owned_folder.UNFINISHED}"):
        remove(snapshots, unfinished)


def remove(snapshots: Path, directory: Path) -> bool:
    """Remove a directory of the cache unless another process uses it, or it has no mark; whether it was
    removed.
    """
    try:
        lock = Lock(snapshots / f"{directory.stem}.lock")
    except OSError:
        return False
    try:
        if not lock.acquire(wait=False) or not owned_folder.remove(directory, _root(snapshots)):
            return False
        if directory.suffix != owned_folder.UNFINISHED:
            lock.remove()
        return True
    finally:
        lock.release()


def _root(snapshots: Path) -> Path:
    """See `Workspace.root`."""
    return snapshots.parents[1]
