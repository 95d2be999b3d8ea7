"""A snapshot of loaded data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.servers.snapshots.copying import METHOD
from dbdyno.servers.workspace import Lock


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
